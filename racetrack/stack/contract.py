"""The contract of a stack: what each runtime offers to the rest of the harness."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from racetrack.config import Settings

Say = Callable[[str], None]
OnReady = Callable[[str], None]


def ignore(_service: str) -> None:
    """Do nothing when a service is ready."""


class Accounting(Protocol):
    """The kernel's account of all processes of a service, including those that have ended."""

    def cpu_s(self) -> float:
        """Return the CPU seconds since the service was started."""

    def memory_bytes(self) -> int:
        """Return the memory it uses now, including page cache and files on tmpfs."""


@dataclass(frozen=True)
class Endpoints:
    """The addresses of the services, as seen from this machine."""

    kafka: str  # host:port
    registry: str  # URL of the Confluent-compatible API
    connect: str  # URL of Kafka Connect's REST API
    mysql_host: str
    mysql_port: int
    loadgen_host: str
    loadgen_port: int
    redis: str  # host:port, if the engine needs it


@dataclass(frozen=True)
class InternalEndpoints:
    """The addresses at which the stack's own services find what an engine reads."""

    kafka: str  # host:port
    registry: str  # URL of the Confluent-compatible API
    redis: str  # host:port, if the engine needs it
    scripts: str  # the folder that holds scripts/


@dataclass(frozen=True)
class DataFolder:
    """A folder of the services' data whose file system must not fill up.

    `name` identifies the file system in messages; `remedy`, a clause without a full stop, names a
    way to give it more room.
    """

    path: Path  # as this machine can read it
    name: str
    remedy: str


@dataclass(frozen=True)
class Unmeasurable:
    """The reason why CPU and memory of a stack can't be measured from here, and a remedy: two
    clauses without a full stop."""

    why: str
    remedy: str


@dataclass(frozen=True)
class RunningStack:
    """A stack that was left running on purpose."""

    runtime: str
    engine: str
    workload: str
    since: str
    expected: Sequence[str]  # the services that were started
    # The live services: name → pids, none if they can't be seen.
    services: Mapping[str, Sequence[int]]


class Stack(Protocol):
    """The services of one run. Service names are the same in every runtime: `mysql`, `broker`,
    `registry`, `debezium`, `redis`, `loadgen`, and each engine's own."""

    runtime: str
    settings: Settings

    @property
    def unmeasurable(self) -> Unmeasurable | None:
        """Set if the services' processes can't be seen from here.

        Such a stack is good for trying things: `pids` returns none, `accounting` None, and there is
        no experiment.
        """

    @property
    def data_in_memory(self) -> bool:
        """Whether the services keep their data in memory (tmpfs), not on a disk."""

    @property
    def endpoints(self) -> Endpoints:
        """The addresses of the services, as seen from this machine."""

    @property
    def internal_endpoints(self) -> InternalEndpoints:
        """The addresses of an engine's input, as seen by its service."""

    def prepare(self, services: Sequence[str], say: Say) -> None:
        """Clear what a killed run left; check that the services can be started.

        Raises:
            SetupError: something is missing that can't be installed.
            BusyError: a stack of this name was left running, or a port is taken.
        """

    def start(
        self, services: Sequence[str], logs: Path | None, say: Say, on_ready: OnReady = ignore
    ) -> None:
        """Install what is missing, start the services in parallel, and return when all are healthy.

        `on_ready` is called with the name of each healthy service, from any thread. Until `stop` or
        `leave_running`, a watchdog ends the services if this process is killed. Their output goes
        to `logs`, the `stack` folder of a run; if None, to the stack's data, and is removed with
        it.

        Raises:
            SetupError: something can't be installed.
            RacetrackError: a service did not start; the message ends with the end of its log.
        """

    def apart(self, services: Sequence[str]) -> list[str]:
        """Return the services that run separately from all before them: if the broker is the
        registry too, it is returned once."""

    def pids(self, services: Sequence[str]) -> dict[str, list[int]]:
        """Return all live processes of each service, its main process first; none while it is
        killed or if they can't be seen."""

    def helpers(self) -> list[int]:
        """Return the processes of what runs the services, such as a Docker engine."""

    def accounting(self, service: str) -> Accounting | None:
        """Return the kernel's account of a service, if it has one of its own."""

    def folders_in_memory(self, service: str) -> Sequence[Path]:
        """Return the service's own folders on tmpfs, as paths of this machine."""

    def data_folders(self) -> Sequence[DataFolder]:
        """Return the services' data folders; natively known before they start, in containers only
        while they run."""

    def log_of(self, service: str) -> Path:
        """Return the file that the service's output goes to, growing while it runs."""

    def where_logs(self) -> str:
        """Return a path or command that shows the output of a stack left running."""

    def program(self, service: str, name: str) -> str:
        """Return the command that runs a program of a service, where the service runs."""

    def died(self) -> Mapping[str, str]:
        """Return services that ended unasked: name → how, with the end of their log. A service that
        `kill` ended is left out until it is started again."""

    def survives_kill(self, service: str) -> bool:
        """Return whether `restart` finds the data of a killed service; engines keep none."""

    def kill(self, services: Sequence[str]) -> None:
        """End services as a crash does: all processes at once. One may end because of another.
        Return when they are gone."""

    def pause(self, service: str) -> None:
        """Stop all processes of a service; their connections stay open."""

    def resume(self, service: str) -> None:
        """Continue a paused service."""

    def restart(self, service: str) -> None:
        """Start a killed service on the data it left, and return when it is healthy.

        MySQL has its tables, the broker its topics, Debezium its position. An engine starts empty.

        Raises:
            RacetrackError: it did not start; the message ends with the end of its log.
        """

    def versions(self) -> Mapping[str, str]:
        """Return the version of every started part, as reported by the part or its archive."""

    def stop(self, say: Say) -> None:
        """End everything that was started, by any process, and remove its data. Idempotent."""

    @property
    def unprepared(self) -> tuple[str, ...]:
        """Services that lack the results that speed up later starts."""

    def speed_up_next_start(self, say: Say) -> None:
        """Make missing results that speed up later starts; call after `stop`. May be interrupted,
        and is then left for the end of the next run."""

    def leave_running(self, engine: str) -> None:
        """Leave the stack running when this command ends."""

    def running(self) -> RunningStack | None:
        """Return the stack that `leave_running` left running, if there is one."""
