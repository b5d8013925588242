"""State of the pods of a stack."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from racetrack.stack.kubernetes.kubectl import Kubectl
from racetrack.stack.kubernetes.manifests import SERVICE

# Reasons why a container is waiting that do not resolve by themselves.
FINAL = (
    "ErrImageNeverPull",
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
)
MEMORY_RAN_OUT = "OOMKilled"
OTHERS = "it waits for other services"


@dataclass(frozen=True)
class Pod:
    """State of a pod at the time when the cluster was queried."""

    name: str
    service: str
    node: str
    container_id: str  # "" before its container was created
    image: str  # with its digest, if the node reports one
    has_started: bool
    is_ready: bool
    is_ending: bool  # it was deleted, and still runs
    problem: str  # why it can't become ready; "" if it can
    waits_for: str  # why it is not ready yet
    ip: str = ""


def read(kubectl: Kubectl) -> list[Pod]:
    """Return the pods of the stack."""
    return read_all(kubectl.get("pods", f"--selector={SERVICE}"))


def read_all(described: Iterable[Mapping[str, Any]]) -> list[Pod]:
    """Return the pods that the cluster describes."""
    return [_read(each) for each in described]


def _read(described: Mapping[str, Any]) -> Pod:
    status = described["status"]
    (container,) = status.get("containerStatuses") or [{}]
    ended = _ending(container, described["spec"])
    return Pod(
        name=described["metadata"]["name"],
        service=described["metadata"]["labels"][SERVICE],
        node=described["spec"].get("nodeName", ""),
        container_id=container.get("containerID", "").rpartition("/")[2],
        image=_image(container),
        has_started="running" in container.get("state", {}) or bool(ended),
        is_ready=_conditions(status).get("Ready", {}).get("status") == "True",
        is_ending="deletionTimestamp" in described["metadata"],
        problem=ended or "; ".join(problems(status)),
        waits_for=_waits_for(status),
        ip=status.get("podIP", ""),
    )


def _image(container: Mapping[str, Any]) -> str:
    name, digest = str(container.get("image", "")), str(container.get("imageID", ""))
    return f"{name}@{digest.rpartition('@')[2]}" if "@" in digest else f"{name} (id {digest})"


def _ending(container: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    """Return how the container ended, even if it has been started again since then."""
    for state in (container.get("state", {}), container.get("lastState", {})):
        if ended := state.get("terminated"):
            if ended.get("reason") == MEMORY_RAN_OUT:
                return f"killed by the kernel, because memory ran out: {_memory(container, spec)}"
            return f"exit code {ended['exitCode']}"
    return ""


def _memory(container: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    """Return whose memory ran out when the kernel killed this container."""
    limits = {of["name"]: of.get("resources", {}).get("limits", {}) for of in spec["containers"]}
    if limit := limits.get(container["name"], {}).get("memory"):
        return f"its container may use {limit} (docs/cluster.md)"
    return "that of its node, since its container has no limit"


def problems(status: Mapping[str, Any]) -> Iterator[str]:
    """Yield why a pod with this status can't start."""
    kinds = ("initContainerStatuses", "containerStatuses")
    for container in (each for kind in kinds for each in status.get(kind, [])):
        waiting = container["state"].get("waiting", {})
        if waiting.get("reason") in FINAL:
            yield f"{waiting['reason']}: {waiting.get('message', container['image'])}"
    if status["phase"] == "Failed":
        yield str(status.get("message", status.get("reason", "its pod failed")))


def why_on_no_node(status: Mapping[str, Any]) -> str:
    """Return why a pod with this status is on no node; "" if it is on one."""
    scheduled = _conditions(status).get("PodScheduled", {})
    if scheduled.get("status") != "False":
        return ""
    return f"it is on no node: {scheduled.get('message', 'not scheduled yet')}"


def _conditions(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {each["type"]: each for each in status.get("conditions", [])}


def _waits_for(status: Mapping[str, Any]) -> str:
    if why := why_on_no_node(status):
        return why
    init = status.get("initContainerStatuses", [])
    if any("running" in each["state"] for each in init):
        return OTHERS
    return "its startup probe has not succeeded"
