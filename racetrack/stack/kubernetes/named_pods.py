"""Pods of services that the user provides. The user names the pods by a label. The agents measure
these pods, and nothing changes them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from racetrack.config import Settings
from racetrack.errors import SetupError
from racetrack.stack import provided
from racetrack.stack.elsewhere import Elsewhere
from racetrack.stack.kubernetes.kubectl import Kubectl
from racetrack.stack.kubernetes.manifests import ROLE

# The node role of each service; all services that are not in this table have the role `engine`.
ROLES = {"broker": "broker", "registry": "support"}


@dataclass(frozen=True)
class NamedPod:
    """A pod of a service that the user provides; `name` is `<namespace>/<pod>`."""

    service: str  # the service's name in the stack, such as `broker`
    name: str
    node: str
    image: str


def find(
    kubectl: Kubectl,
    settings: Settings,
    used: Sequence[Elsewhere],
    nodes: Mapping[str, Sequence[str]],
) -> list[NamedPod]:
    """Return the ready pods that the settings name; check that each is on a node of its role.

    `used` are the services that the run uses; `nodes` maps the ready nodes to their roles.

    Raises:
        SetupError: no such pod is ready, or a pod's node lacks the role of its service.
    """
    found = []
    for service in used:
        if text := provided.pods_of(service, settings):
            pods = list(_of(service, text, kubectl))
            if not pods:
                raise SetupError(
                    f"{provided.pods_setting(service)}={text}: no pod with this label is ready. See"
                    f" `kubectl --namespace {text.replace('/', ' get pods --selector ', 1)}`."
                )
            for pod in pods:
                _require_placed(pod, nodes.get(pod.node, ()), settings)
            found += pods
    return found


def _of(service: Elsewhere, text: str, kubectl: Kubectl) -> Iterator[NamedPod]:
    namespace, _, label = text.partition("/")
    for each in kubectl.get("pods", f"--namespace={namespace}", f"--selector={label}"):
        conditions = {one["type"]: one["status"] for one in each["status"].get("conditions", [])}
        if conditions.get("Ready") == "True":
            name = f"{namespace}/{each['metadata']['name']}"
            yield NamedPod(service.service, name, each["spec"]["nodeName"], _images(each))


def _images(pod: Mapping[str, Any]) -> str:
    return ", ".join(each["image"] for each in pod["spec"]["containers"])


def _require_placed(pod: NamedPod, roles: Sequence[str], settings: Settings) -> None:
    """Check that a pod's node has the label of its role, and no other role.

    Raises:
        SetupError: the node lacks the label, or has another role.
    """
    label = f"{ROLE}{ROLES.get(pod.service, 'engine')}"
    if label not in roles:
        raise SetupError(
            f"The pod {pod.name} runs on the node {pod.node}, which is not there for it. If no"
            f" other part of the run is to be there: `kubectl label node {pod.node} {label}=`."
        )
    if others := [each for each in roles if each != label and not settings.kubernetes_small]:
        raise SetupError(
            f"The pod {pod.name} runs on the node {pod.node}, which also has the role {others[0]}."
            f" Remove it (`kubectl label node {pod.node} {others[0]}-`), or set"
            " KUBERNETES_SMALL=true."
        )
