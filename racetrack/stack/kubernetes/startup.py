"""Start of pods: waits until all are ready, copies their logs, and reports failures."""

import subprocess
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from racetrack.clock import wait_until
from racetrack.stack.containers import shown
from racetrack.stack.contract import OnReady, Say
from racetrack.stack.kubernetes import pods
from racetrack.stack.kubernetes.kubectl import Kubectl
from racetrack.stack.kubernetes.manifests import Workload
from racetrack.stack.kubernetes.pods import OTHERS, Pod
from racetrack.stack.supervisor import ServiceError, with_log

READY_WITHIN_S = 300.0
LOOK_EVERY_S = 0.5
GONE_WITHIN_S = 60.0
LOG_ENDS_WITHIN_S = 5.0


class Logs:
    """Log files of pods. A `kubectl logs` process copies each pod's output while the pod writes it.

    `shown` returns the harness's name for a service in a pod.
    """

    def __init__(self, kubectl: Kubectl, folder: Path, shown: Callable[[str], str] = shown) -> None:
        self._kubectl, self._folder, self.shown = kubectl, folder, shown
        # By pod and container.
        self._followers: dict[tuple[str, str], subprocess.Popen[bytes]] = {}

    def file_of(self, pod: Pod) -> Path:
        """Return the file that receives the output of a pod. It has the name of the service for its
        first pod, and of the pod for each further one."""
        is_first = pod.name == f"{pod.service}-0"
        return self._folder / f"{self.shown(pod.service) if is_first else pod.name}.log"

    def follow(self, pod: Pod) -> None:
        """Begin to copy the output of a pod whose container was started. Idempotent."""
        key = pod.name, pod.container_id
        if key not in self._followers:
            log = self.file_of(pod)
            self._followers[key] = self._kubectl.follow_log(pod.name, pod.service, log)

    def with_log(self, what: str, pod: Pod) -> str:
        """Return what happened to a pod, and the end of its log."""
        return with_log(what, self.file_of(pod))

    def close(self) -> None:
        """Wait for the remaining output; the pods have ended."""
        give_up = time.monotonic() + LOG_ENDS_WITHIN_S
        for follower in self._followers.values():
            try:
                follower.wait(max(0.0, give_up - time.monotonic()))
            except subprocess.TimeoutExpired:
                follower.kill()
                follower.wait()
        self._followers.clear()


def wait_until_ready(
    kubectl: Kubectl, logs: Logs, workloads: Sequence[Workload], say: Say, on_ready: OnReady
) -> list[Pod]:
    """Wait until all pods of these workloads are ready; return them.

    Raises:
        ServiceError: a pod failed, or was not ready in time.
    """
    began = time.monotonic()
    ready: set[str] = set()
    services = {each.service for each in workloads}
    wanted = {name: each.service for each in workloads for name in each.pods}
    while True:
        found = [pod for pod in pods.read(kubectl) if pod.name in wanted and not pod.is_ending]
        for pod in found:
            if pod.has_started:
                logs.follow(pod)
        _raise_failed(found, logs)
        there = {pod.name for pod in found if pod.is_ready}
        late = {service for name, service in wanted.items() if name not in there}
        for service in sorted(services - late - ready):
            say(f"  {logs.shown(service)} ready after {time.monotonic() - began:.1f} s")
            on_ready(service)
        ready = services - late
        if not late:
            return found
        if time.monotonic() - began > READY_WITHIN_S:
            raise _too_late(found, late, logs)
        time.sleep(LOOK_EVERY_S)


def wait_until_ending(kubectl: Kubectl, names: Collection[str]) -> None:
    """Wait until the cluster has accepted the deletion of these pods, which may still run.

    Raises:
        ServiceError: a pod was not deleted in time.
    """
    _wait(lambda: all(pod.is_ending for pod in _named(kubectl, names)), names, "deleted")


def wait_until_gone(kubectl: Kubectl, names: Collection[str]) -> None:
    """Wait until these pods are gone.

    Raises:
        ServiceError: a pod was not gone in time.
    """
    _wait(lambda: not _named(kubectl, names), names, "gone")


def _named(kubectl: Kubectl, names: Collection[str]) -> list[Pod]:
    return [pod for pod in pods.read(kubectl) if pod.name in names]


def _wait(until: Callable[[], bool], names: Collection[str], what: str) -> None:
    if not wait_until(until, GONE_WITHIN_S, LOOK_EVERY_S):
        raise ServiceError(f"{', '.join(names)}: not {what} within {GONE_WITHIN_S:.0f} s.")


def _raise_failed(found: Sequence[Pod], logs: Logs) -> None:
    for pod in found:
        if pod.problem:
            what = f"{logs.shown(pod.service)} did not start: {pod.name}: {pod.problem}"
            raise ServiceError(logs.with_log(what, pod))


def _too_late(found: Sequence[Pod], late: Collection[str], logs: Logs) -> ServiceError:
    """Return the error for services that are late. It names a pod that is not waiting for other
    services, if there is one, because that pod is the cause."""
    slow = sorted(
        (pod for pod in found if not pod.is_ready),
        key=lambda pod: (OTHERS in pod.waits_for, pod.name),
    )
    first = logs.shown(slow[0].service if slow else min(late))
    why = f"{slow[0].name}: {slow[0].waits_for}" if slow else "it has no pod"
    what = f"{first} was not ready within {READY_WITHIN_S:.0f} s: {why}"
    return ServiceError(logs.with_log(what, slow[0]) if slow else what)
