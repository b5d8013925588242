"""Faults of a cluster: deletion of a pod, drain of a node, and cut of a node's network."""

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from racetrack.config import Settings
from racetrack.errors import RacetrackError, UsageError
from racetrack.stack import processes
from racetrack.stack.containers import called
from racetrack.stack.kubernetes import manifests, orphans, pods
from racetrack.stack.kubernetes.kubectl import ClusterFailed, Kubectl
from racetrack.stack.kubernetes.manifests import Workload

ENGINE_NODE = "role.racetrack.dev/engine"
CUT = "racetrack.dev/cut"  # label of pods whose network is cut
# A command in a pod: it succeeds if the broker can be reached.
REACHES_BROKER = ("timeout", "3", "bash", "-c", ": >/dev/tcp/redpanda/9092")
DRAINED_WITHIN_S = 60.0
GONE_WITHIN_S = 60.0
LOOK_EVERY_S = 0.2
# KUBERNETES_CUT_COMMAND may run for this much longer than the cut.
CUT_GRACE_S = 30.0


class Disruptions:
    """Implementation of `racetrack.stack.contract.Cluster`.

    `ready` waits until all pods of the given sets (`Workload`) are ready. `forget` is called with
    the names of pods that are about to end, so that their end is expected.
    """

    def __init__(
        self,
        settings: Settings,
        kubectl: Kubectl,
        nodes: Sequence[Mapping[str, Any]],
        ready: Callable[[Sequence[Workload]], None],
        forget: Callable[[Collection[str]], None],
    ) -> None:
        self._settings, self._kubectl = settings, kubectl
        self._ready, self._forget = ready, forget
        self._roles = {
            each["metadata"]["name"]: [
                label for label in each["metadata"]["labels"] if label.startswith(manifests.ROLE)
            ]
            for each in nodes
        }

    def require_pod(self, pod: str, services: Sequence[str]) -> None:
        """Check that one of these services will have a pod of this name.

        Raises:
            UsageError: there will be no such pod.
        """
        there = [name for each in self._workloads(services) for name in each.pods]
        if pod not in there:
            raise UsageError(f"There will be no pod {pod!r} of the engine: {', '.join(there)}.")

    def require_node(self, node: str) -> None:
        """Check that a node exists and is for engines only, so that the other services keep running
        without it.

        Raises:
            UsageError: there is no such node, or it is also for other services.
        """
        if self._roles.get(node) != [ENGINE_NODE]:
            only = [name for name, roles in self._roles.items() if roles == [ENGINE_NODE]]
            raise UsageError(
                f"{node!r} is not a node that is only there for the engine (label {ENGINE_NODE})."
                f" Such nodes: {', '.join(only) or 'none'}."
            )

    def delete_pod(self, pod: str) -> None:
        """Delete a pod as `kubectl delete pod` does, and return when it has ended. The cluster
        creates it again at once."""
        self._forget([pod])
        self._kubectl.run("delete", "pod", pod, f"--timeout={GONE_WITHIN_S:.0f}s")

    def drain(self, node: str) -> None:
        """Drain a node as `kubectl drain` does: its pods end, and none is put there until
        `undo_drain`. Other users' pods stay."""
        self._forget(self._on(node))
        owner = f"{orphans.DRAINED_FOR}={self._kubectl.namespace}"
        self._kubectl.run("label", "node", node, owner, "--overwrite")
        self._kubectl.run(
            "drain",
            node,
            "--ignore-daemonsets",
            "--delete-emptydir-data",
            f"--pod-selector={orphans.OURS}",
            f"--timeout={DRAINED_WITHIN_S:.0f}s",
            within_s=DRAINED_WITHIN_S + 5,
        )

    def undo_drain(self) -> None:
        """Allow pods on the drained nodes again."""
        orphans.uncordon(self._kubectl)

    def cut(self, node: str, for_s: float) -> None:
        """Cut a node's network for `for_s` seconds, and return when it works again.

        Raises:
            RacetrackError: the network could not be cut.
        """
        if self._settings.kubernetes_cut_command:
            self._run_command(node, for_s)
        else:
            self._cut_pods(node, for_s)

    def wait_until_ready(self, services: Sequence[str]) -> None:
        """Wait until all pods of these services are ready again.

        Raises:
            RacetrackError: a pod failed, or was not ready in time.
        """
        self._ready(self._workloads(services))

    def _on(self, node: str) -> list[str]:
        return [pod.name for pod in pods.read(self._kubectl) if pod.node == node]

    def _workloads(self, services: Sequence[str]) -> list[Workload]:
        names = [called(service) for service in services]
        return manifests.workloads(manifests.of_services(self._kubectl, self._settings, names))

    def _run_command(self, node: str, for_s: float) -> None:
        command = [*shlex.split(self._settings.kubernetes_cut_command), node, f"{for_s:g}"]
        mark = processes.mark_command(self._settings.stack_name, "cut")
        try:
            done = subprocess.run(
                command,
                # The user's environment may contain the address of the cluster.
                env={**os.environ, **mark},
                capture_output=True,
                text=True,
                check=False,
                timeout=for_s + CUT_GRACE_S,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RacetrackError(f"KUBERNETES_CUT_COMMAND failed: {error}") from None
        if done.returncode:
            raise RacetrackError(f"`{shlex.join(command)}` failed: {done.stderr.strip()}")

    def _cut_pods(self, node: str, for_s: float) -> None:
        """Cut the network of all pods on a node by a NetworkPolicy."""
        on_node = self._on(node)
        self._kubectl.run("label", "pods", *on_node, f"{CUT}=yes", "--overwrite")
        self._kubectl.apply([_policy()])
        began_s = time.monotonic()
        try:
            if self._reaches_broker(on_node[0]):
                raise RacetrackError(
                    "This cluster does not enforce NetworkPolicy, so the network was not cut. Use"
                    " a network plugin that does, or set KUBERNETES_CUT_COMMAND."
                )
            time.sleep(max(0.0, began_s + for_s - time.monotonic()))
        finally:
            self._kubectl.run("delete", "networkpolicy", "cut", "--ignore-not-found")

    def _reaches_broker(self, pod: str) -> bool:
        try:
            self._kubectl.run("exec", pod, "--", *REACHES_BROKER)
        except ClusterFailed:
            return False
        return True


def _policy() -> manifests.Object:
    """Return a policy that forbids pods with the label CUT all traffic."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "cut"},
        "spec": {
            "podSelector": {"matchLabels": {CUT: "yes"}},
            "policyTypes": ["Ingress", "Egress"],
        },
    }
