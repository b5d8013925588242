"""Start of pods: waits until all are ready, copies their logs, and reports failures."""

import subprocess
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from racetrack.errors import RacetrackError
from racetrack.stack import processes
from racetrack.stack.containers import shown
from racetrack.stack.contract import OnReady, Say
from racetrack.stack.kubernetes import pods
from racetrack.stack.kubernetes.kubectl import Kubectl
from racetrack.stack.kubernetes.pods import Pod

READY_WITHIN_S = 180.0
LOOK_EVERY_S = 0.5
LOG_ENDS_WITHIN_S = 5.0


class ServiceError(RacetrackError):
    """A service did not start; the message ends with the last lines of its log."""


class Logs:
    """Copies of the output of pods, each made by a `kubectl logs` while it is written."""

    def __init__(self, kubectl: Kubectl, folder: Path) -> None:
        self._kubectl, self._folder = kubectl, folder
        self._followers: dict[str, subprocess.Popen[bytes]] = {}  # by pod

    def file(self, service: str) -> Path:
        """Return the file that receives the output of a service's pods."""
        return self._folder / f"{shown(service)}.log"

    def follow(self, pod: Pod) -> None:
        """Begin to copy the output of a pod whose container was started. Idempotent."""
        if pod.name not in self._followers:
            log = self.file(pod.service)
            self._followers[pod.name] = self._kubectl.follow_log(pod.name, pod.service, log)

    def tail(self, service: str) -> str:
        """Return the end of a service's log."""
        file = self.file(service)
        return processes.log_tail(file) if file.exists() else "    (no output)"

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
    kubectl: Kubectl, logs: Logs, services: Collection[str], say: Say, on_ready: OnReady
) -> list[Pod]:
    """Wait until all pods of these services are ready; return them.

    Raises:
        ServiceError: a pod failed, or was not ready in time.
    """
    began = time.monotonic()
    ready: set[str] = set()
    while True:
        found = [pod for pod in pods.read(kubectl) if pod.service in services]
        for pod in found:
            if pod.has_started:
                logs.follow(pod)
        _raise_failed(found, logs)
        late = {pod.service for pod in found if not pod.is_ready}
        late |= set(services) - {pod.service for pod in found}
        for service in sorted(set(services) - late - ready):
            say(f"  {shown(service)} ready after {time.monotonic() - began:.1f} s")
            on_ready(shown(service))
        ready = set(services) - late
        if not late:
            return found
        if time.monotonic() - began > READY_WITHIN_S:
            raise _too_late(found, sorted(late), logs)
        time.sleep(LOOK_EVERY_S)


def _raise_failed(found: Sequence[Pod], logs: Logs) -> None:
    for pod in found:
        if pod.problem:
            raise ServiceError(
                f"{shown(pod.service)} did not start: {pod.problem}; the end of its log:\n"
                f"{logs.tail(pod.service)}"
            )


def _too_late(found: Sequence[Pod], late: Sequence[str], logs: Logs) -> ServiceError:
    why = {pod.service: pod.waits_for for pod in found if not pod.is_ready}
    first = min(late, key=lambda name: "other services" in why.get(name, ""))
    return ServiceError(
        f"{shown(first)} was not ready within {READY_WITHIN_S:.0f} s:"
        f" {why.get(first, 'it has no pod')}; the end of its log:\n{logs.tail(first)}"
    )
