"""Clients of the agents on the nodes (kubernetes/base/agent.py): one line of JSON per request."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from racetrack.clock import wait_until
from racetrack.stack.contract import DataFolder, NodeSample, PodUsage, ServiceClock, sum_known
from racetrack.stack.elsewhere import measure_clock
from racetrack.stack.kubernetes import pods
from racetrack.stack.kubernetes.kubectl import ClusterFailed, Kubectl
from racetrack.stack.kubernetes.manifests import SERVICE
from racetrack.stack.kubernetes.pods import Pod

NAME, PORT = "agent", 7070  # its service, and its port in pods
CONNECT_WITHIN_S, ANSWER_WITHIN_S = 1.0, 5.0
# For this long after a failed request, further requests fail at once, so that an agent out of reach
# does not delay a run.
REST_S = 1.0
FIRST_ANSWER_WITHIN_S = 30.0
# An agent is queried again only if its newest sample is older.
RECENT_S = 2.0
NOT_USAGE = ("groups", "folders")  # keys of a pod in a sample that are not fields of `PodUsage`
REMEDY = "Raise its sizeLimit and the pod's memory in the manifest"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Agent:
    """Client of the agent on one node; see `racetrack.stack.contract.NodeAgent`. Any thread may
    call it.

    `service_of` maps a pod's name to its service, or to None if the pod is not measured. `boot_id`
    identifies the harness's machine.
    """

    def __init__(
        self,
        node: str,
        address: tuple[str, int],
        service_of: Callable[[str], str | None],
        boot_id: Path = BOOT_ID,
    ) -> None:
        self.node, self._address, self._service_of = node, address, service_of
        self.where = f"{address[0]}:{address[1]}"
        self._boot_id = boot_id.read_text().strip()
        self._lock = threading.Lock()
        self._wire: socket.socket | None = None
        self._rests_until_s = 0.0
        self._read_s = 0.0
        self._groups: frozenset[str] | None = None
        self._uids: Mapping[str, str] = {}
        self._folders: Sequence[DataFolder] = ()

    def clock(self) -> ServiceClock:
        """Return the offset of the node's clock, computed from several round trips."""
        return measure_clock(f"node {self.node}", lambda: float(self._ask("clock")))

    def sample(self) -> NodeSample:
        """Take a sample now and return it."""
        return self._sample(self._ask("sample"))

    def after(self, number: int) -> list[NodeSample]:
        """Return the samples with numbers after `number` that the agent still has."""
        return [self._sample(each) for each in self._ask(f"after {number}")]

    def memory(self) -> dict[str, tuple[int | None, int | None]]:
        """Return proportional set size and files on tmpfs of each service, in bytes."""
        found: dict[str, tuple[int | None, int | None]] = {}
        for pod, of in self._ask("memory").items():
            if service := self._service_of(pod):
                pss, tmpfs = found.get(service, (0, 0))
                found[service] = sum_known(pss, of["pss"]), sum_known(tmpfs, of["tmpfs"])
        return found

    def has_ended(self, container_id: str) -> bool:
        """Return whether a container that was running has no process any more; False while the
        agent can't be reached."""
        if not self._refresh():
            return False
        groups = self._groups
        return groups is not None and not any(container_id in name for name in groups)

    def folders(self) -> Sequence[DataFolder]:
        """Return the in-memory volumes (tmpfs) of the services' pods on this node. If the agent
        can't be reached, use its newest sample."""
        self._refresh()
        return self._folders

    def uids(self, service: str) -> list[str]:
        """Return the uids of a service's pods on this node that belong to the run. If the agent
        can't be reached, use its newest sample."""
        with contextlib.suppress(OSError):
            self.sample()
        return [uid for uid, pod in self._uids.items() if self._service_of(pod) == service]

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._disconnect()

    def _refresh(self) -> bool:
        """Take a sample if the newest is not recent; return False if that fails."""
        try:
            if time.monotonic() - self._read_s > RECENT_S:
                self.sample()
        except OSError:
            return False
        return True

    def _sample(self, read: Mapping[str, Any]) -> NodeSample:
        self._read_s = time.monotonic()
        self._groups = frozenset(name for pod in read["pods"] for name in pod["groups"])
        self._uids = {pod["uid"]: pod["pod"] for pod in read["pods"]}
        self._folders = [
            data_folder(pod["pod"], point, free, total)
            for pod in read["pods"]
            if self._service_of(pod["pod"])
            for point, (free, total) in pod["folders"].items()
        ]
        return NodeSample(
            number=read["number"],
            at_ms=read["at_ms"],
            machine="" if read["machine"] == self._boot_id else read["machine"],
            pods=[
                PodUsage(
                    service=service, **{key: of for key, of in pod.items() if key not in NOT_USAGE}
                )
                for pod in read["pods"]
                if (service := self._service_of(pod["pod"]))
            ],
            noise=read["noise"],
        )

    def _ask(self, request: str) -> Any:
        """Return the answer; if the connection was lost, connect once more.

        Raises:
            OSError: there was no answer.
        """
        with self._lock:
            if time.monotonic() < self._rests_until_s:
                raise ConnectionError(f"the agent on {self.node} did not answer just now")
            was_connected = self._wire is not None
            try:
                try:
                    return self._exchange(request)
                except OSError:
                    if not was_connected:
                        raise
                    return self._exchange(request)
            except OSError:
                self._rests_until_s = time.monotonic() + REST_S
                raise

    def _exchange(self, request: str) -> Any:
        try:
            if self._wire is None:
                self._wire = socket.create_connection(self._address, timeout=CONNECT_WITHIN_S)
                self._wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._wire.settimeout(ANSWER_WITHIN_S)
            self._wire.sendall(f"{request}\n".encode())
            answer = bytearray()
            while not answer.endswith(b"\n"):
                if not (more := self._wire.recv(1 << 16)):
                    raise ConnectionError(f"the agent on {self.node} closed the connection")
                answer += more
            return json.loads(answer)
        # The rest of a half-read answer must not be taken for the next answer.
        except BaseException:
            self._disconnect()
            raise

    def _disconnect(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None


def data_folder(pod: str, point: str, free: int, total: int) -> DataFolder:
    """Return a pod's in-memory volume that is mounted at `point`. `free` and `total` are in
    bytes."""
    path = Path("/", pod, point.lstrip("/"))
    return DataFolder(path, f"{point} of the pod {pod}", REMEDY, space=(free, total))


def wait_until_there(
    kubectl: Kubectl, nodes: Collection[str], within_s: float = FIRST_ANSWER_WITHIN_S
) -> list[Pod]:
    """Wait until there is an agent on each of these nodes; return their pods.

    Raises:
        ClusterFailed: an agent was not ready in time.
    """
    found: list[Pod] = []

    def all_ready() -> bool:
        found[:] = [
            pod
            for pod in pods.read(kubectl)
            if pod.service == NAME and pod.node in nodes and pod.is_ready
        ]
        return {pod.node for pod in found} == set(nodes)

    if not wait_until(all_ready, within_s, REST_S):
        late = sorted(set(nodes) - {pod.node for pod in found})
        raise ClusterFailed(
            f"The agent on {', '.join(late)} was not ready within {within_s:.0f} s. See"
            f" `kubectl -n {kubectl.namespace} describe pods -l {SERVICE}={NAME}`."
        )
    return found


def first_clock(agent: Agent, within_s: float = FIRST_ANSWER_WITHIN_S) -> ServiceClock:
    """Return the offset of a node's clock; repeat the request until the agent, which has just
    become ready, answers.

    Raises:
        ClusterFailed: the agent can't be reached in time.
    """
    give_up_s = time.monotonic() + within_s
    while True:
        try:
            return agent.clock()
        except OSError as error:
            if time.monotonic() > give_up_s:
                raise ClusterFailed(
                    f"The agent on {agent.node} does not answer at {agent.where}: {error}. Nothing"
                    " between this machine and the nodes may block NodePorts."
                ) from None
        time.sleep(REST_S)


def by_prefix(services: Mapping[str, str]) -> Callable[[str], str | None]:
    """Return a function that finds the service of a pod named `<name>-...`. `services` maps names
    of services in containers to the harness's names."""
    longest_first = sorted(services, key=len, reverse=True)

    def service_of(pod: str) -> str | None:
        found = next((name for name in longest_first if pod.startswith(f"{name}-")), None)
        return found and services[found]

    return service_of
