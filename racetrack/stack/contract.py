"""Contract of a stack: the interface that each runtime implements for the rest of the harness."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from racetrack.config import Settings
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.mysql_endpoint import MysqlEndpoint

Say = Callable[[str], None]
OnReady = Callable[[str], None]


def ignore(_service: str) -> None:
    """Do nothing: the default for `on_ready`."""


class Accounting(Protocol):
    """CPU time and memory of all processes of a service, according to the kernel.

    CPU time includes processes that have ended.
    """

    def cpu_s(self) -> float:
        """Return the CPU seconds since the service was started."""

    def memory_bytes(self) -> int:
        """Return the memory that the service uses now, including page cache and files on tmpfs."""


@dataclass(frozen=True)
class Endpoints:
    """Addresses of the services, as seen from this machine."""

    kafka: KafkaEndpoint
    registry: str  # URL of the Confluent-compatible API
    connect: str  # URL of Kafka Connect's REST API
    mysql: MysqlEndpoint
    loadgen_host: str
    loadgen_port: int
    redis: str  # host:port, if the engine needs Redis


@dataclass(frozen=True)
class InternalEndpoints:
    """Addresses of an engine's inputs, as seen by the engine's service."""

    kafka: KafkaEndpoint
    registry: str  # URL of the Confluent-compatible API
    redis: str  # host:port, if the engine needs Redis
    scripts: str  # the folder `scripts`


@dataclass(frozen=True)
class DataFolder:
    """A folder with data of services, whose file system must not fill up.

    `name` identifies the file system in messages. `remedy` is a clause without a full stop that
    names a way to get more space. If the folder is on another machine, `path` only identifies it,
    and `space` has its free and total bytes.
    """

    path: Path
    name: str
    remedy: str
    space: tuple[int, int] | None = None


@dataclass(frozen=True)
class Unmeasurable:
    """Reason why CPU and memory of a stack can't be measured here, and a remedy.

    Both are clauses without a full stop.
    """

    why: str
    remedy: str


@dataclass(frozen=True)
class ServiceClock:
    """Difference of a service's clock from this machine's: `offset_ms` ± `uncertainty_ms`.

    The service's clock is ahead if the offset is positive.
    """

    title: str  # the service's name in a sentence, such as `the broker`
    offset_ms: float
    uncertainty_ms: float

    @classmethod
    def covering(cls, title: str, clocks: Sequence["ServiceClock"]) -> "ServiceClock":
        """Return one clock for a service on several nodes; its uncertainty covers all their
        clocks."""
        lowest = min(each.offset_ms - each.uncertainty_ms for each in clocks)
        highest = max(each.offset_ms + each.uncertainty_ms for each in clocks)
        return cls(title, (lowest + highest) / 2, (highest - lowest) / 2)

    def __str__(self) -> str:
        ahead = "ahead of" if self.offset_ms >= 0 else "behind"
        return (
            f"{self.title}'s clock is {abs(self.offset_ms):.1f} ms {ahead} this machine's,"
            f" ± {self.uncertainty_ms:.1f} ms"
        )


class Cluster(Protocol):
    """A cluster, for faults that hit its pods and nodes. Only pods of engines can be hit: the other
    services would lose their data."""

    def require_pod(self, pod: str, services: Sequence[str]) -> None:
        """Check that one of these services will have a pod of this name.

        Raises:
            UsageError: there will be no such pod.
        """

    def require_node(self, node: str) -> None:
        """Check that a node exists and has only pods of engines.

        Raises:
            UsageError: there is no such node, or it has other pods.
        """

    def delete_pod(self, pod: str) -> None:
        """Delete a pod, and return when it has ended. The cluster creates it again at once."""

    def drain(self, node: str) -> None:
        """End all pods on a node, and keep new ones away until `undo_drain`."""

    def undo_drain(self) -> None:
        """Allow pods on the drained nodes again."""

    def cut(self, node: str, for_s: float) -> None:
        """Cut a node's network for `for_s` seconds, and return when it works again."""

    def wait_until_ready(self, services: Sequence[str]) -> None:
        """Wait until all pods of these services are ready again.

        Raises:
            RacetrackError: a pod failed, or was not ready in time.
        """


@dataclass(frozen=True)
class PodUsage:
    """Resources that a pod has used since it was created, and its memory now.

    `periods` counts the scheduling periods with a CPU limit, and `throttled` those in which the pod
    reached the limit.
    """

    service: str
    pod: str
    uid: str
    cpu_s: float
    cpu_user_s: float
    rss_bytes: int
    memory_bytes: int  # with page cache and tmpfs
    periods: int
    throttled: int
    throttled_s: float


@dataclass(frozen=True)
class NodeSample:
    """State of a node and of its pods at `at_ms`, epoch milliseconds by the node's clock."""

    number: int
    at_ms: float
    machine: str  # nodes with the same value share a machine; empty if it is the harness's
    pods: Sequence[PodUsage]
    # The columns of `noise.csv`, and `helpers_s`: CPU seconds of the cluster's own programs.
    noise: Mapping[str, float | None]


def sum_known(one: int | None, other: int | None) -> int | None:
    """Return the sum of two nodes' figures; None if one of them is unknown."""
    return None if one is None or other is None else one + other


class NodeAgent(Protocol):
    """Program on a node that samples the services' pods there once a second.

    All methods raise OSError while the node can't be reached.
    """

    node: str

    def clock(self) -> ServiceClock:
        """Return the offset of the node's clock. Its uncertainty is half the round trip."""

    def sample(self) -> NodeSample:
        """Return a sample of this moment."""

    def after(self, number: int) -> Sequence[NodeSample]:
        """Return the samples with numbers after `number`, including those from while the connection
        was lost."""

    def memory(self) -> Mapping[str, tuple[int | None, int | None]]:
        """Return service → (proportional set size, size of its files on tmpfs), in bytes."""


@dataclass(frozen=True)
class RunningStack:
    """A stack that `./race up` left running."""

    runtime: str
    engine: str
    workload: str
    since: str
    expected: Sequence[str]  # the services that were started
    # Live services: name → process ids, an empty list if they can't be seen here.
    services: Mapping[str, Sequence[int]]


class Stack(Protocol):
    """Services of one run.

    Service names are the same in every runtime: `mysql`, `broker`, `registry`, `debezium`, `redis`,
    `loadgen`, and the names of each engine's services.
    """

    runtime: str
    settings: Settings

    @property
    def unmeasurable(self) -> Unmeasurable | None:
        """Reason why the services' processes can't be seen here; None if they can.

        A stack that can't be measured can only be tried out, not used for experiments: `pids`
        returns empty lists and `accounting` returns None.
        """
        return None

    @property
    def clocks(self) -> Mapping[str, ServiceClock]:
        """Clocks of services on other machines, as measured by `prepare` or `start`, by service."""

    @property
    def agents(self) -> Sequence[NodeAgent]:
        """Agents on the services' nodes, since `start`.

        Empty if the services' processes can be measured from this process. If there are agents,
        `pids` returns nothing, and `accounting` None.
        """
        return ()

    @property
    def data_in_memory(self) -> bool:
        """True if the services keep their data in memory (tmpfs), not on a disk."""

    @property
    def endpoints(self) -> Endpoints:
        """Addresses of the services, as seen from this machine."""

    @property
    def internal_endpoints(self) -> InternalEndpoints:
        """Addresses of an engine's inputs, as seen by the engine's service."""

    def prepare(self, services: Sequence[str], say: Say) -> None:
        """Remove what a killed run left behind; check that the services can be started, and that
        those that run elsewhere can be used. `services` contains both.

        Raises:
            SetupError: a component is missing and can't be installed, or a service that runs
                elsewhere can't be used.
            BusyError: a stack of this name was left running, or a port is taken.
        """

    def start(
        self, services: Sequence[str], logs: Path | None, say: Say, on_ready: OnReady = ignore
    ) -> None:
        """Install missing components, start the services in parallel, wait until all are healthy.

        `on_ready` is called with the name of each service that becomes healthy, from any thread.
        The output of services goes to the folder `logs` (`stack` in a run's folder). If `logs` is
        None, it goes to the stack's data folder, which `stop` removes. If this process is killed
        before `stop` or `leave_running`, a watchdog stops the services.

        Raises:
            SetupError: a component can't be installed.
            RacetrackError: a service did not start; the message ends with the last lines of its
                log.
        """

    def apart(self, services: Sequence[str]) -> list[str]:
        """Return `services` without those that share their processes with an earlier one.

        If the broker is also the schema registry, only the first of the two is returned.
        """

    def pids(self, services: Sequence[str]) -> dict[str, list[int]]:
        """Return the ids of all live processes of each service, the main process first.

        The list is empty for a killed service, and if processes can't be seen here.
        """

    def helpers(self) -> list[int]:
        """Return the ids of processes that serve the runtime itself, such as the Docker engine."""
        return []

    def accounting(self, service: str) -> Accounting | None:
        """Return the kernel's accounting of a service, or None if it has no control group."""

    def folders_in_memory(self, service: str) -> Sequence[Path]:
        """Return the service's folders on tmpfs, as paths that are valid on this machine."""

    def data_folders(self) -> Sequence[DataFolder]:
        """Return the services' data folders.

        The native runtime returns them even before the start, a container runtime only while the
        containers run.
        """

    def log_of(self, service: str) -> Path:
        """Return the file that receives the service's output while it runs."""

    def where_logs(self) -> str:
        """Return a path or a command for reading the output of a stack that was left running."""

    def program(self, service: str, name: str) -> str:
        """Return the command that runs a service's program, in its container if it has one."""

    def died(self) -> Mapping[str, str]:
        """Return services that ended unexpectedly: name → exit code and the end of the log.

        A service that `kill` ended is left out until it is started again.
        """

    def survives_kill(self, service: str) -> bool:
        """Return whether a killed service keeps its data for `restart`. What an engine keeps, its
        classes say."""

    def kill(self, services: Sequence[str]) -> None:
        """End services as a crash would, by killing all their processes; return when they are gone.

        Other services may end as a consequence.
        """

    def pause(self, service: str) -> None:
        """Stop all processes of a service; their connections stay open."""

    def resume(self, service: str) -> None:
        """Continue a paused service."""

    def restart(self, service: str) -> None:
        """Start a killed service with the data that it left, and return when it is healthy.

        MySQL keeps its tables, the broker its topics, and Debezium its position. An engine starts
        empty.

        Raises:
            RacetrackError: the service did not start; the message ends with the last lines of its
                log.
        """

    @property
    def cluster(self) -> Cluster | None:
        """The cluster, for faults that hit its pods and nodes; None in other runtimes."""
        return None

    def versions(self) -> Mapping[str, str]:
        """Return component → version of all started services."""

    def stop(self, say: Say) -> None:
        """Stop all services of this stack, whichever process started them, and remove their data.

        Remove also what the run created in services that run elsewhere. Idempotent.
        """

    @property
    def unprepared(self) -> tuple[str, ...]:
        """Services without the prebuilt files that speed up later starts (see prebuilt.py). Images
        always contain these files."""
        return ()

    def component_folders(self) -> Sequence[Path]:
        """Return the folders of the installed components of services on this machine; none if they
        are in images."""
        return ()

    def speed_up_next_start(self, say: Say) -> None:
        """Make missing prebuilt files that speed up later starts; call this after `stop`.

        If it is interrupted, the next run does it.
        """

    def leave_running(self, engine: str) -> None:
        """Leave the stack running when this command ends."""

    def running(self) -> RunningStack | None:
        """Return the stack that `leave_running` left running, if there is one."""
