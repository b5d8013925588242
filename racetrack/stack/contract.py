"""What a runtime offers to the rest of the harness, whatever it starts its services with."""

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
    """The kernel's account of all processes of a service, those that have ended too."""

    def cpu_s(self) -> float:
        """CPU seconds since the service was started."""

    def memory_bytes(self) -> int:
        """What it has in memory now, with the files that it caches or keeps on tmpfs."""


@dataclass(frozen=True)
class Endpoints:
    """Where the harness reaches the services, as seen from this machine."""

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
    """Where the stack's own services find what an engine reads, as seen from where they run."""

    kafka: str  # host:port
    registry: str  # URL of the Confluent-compatible API
    redis: str  # host:port, if the engine needs it
    scripts: str  # the folder that holds scripts/


@dataclass(frozen=True)
class DataFolder:
    """A folder of the services' data whose file system must not fill up. `name` is how a person
    knows the file system; `remedy`, a clause without a full stop, says how to give it more room."""

    path: Path  # as this machine can read it
    name: str
    remedy: str


@dataclass(frozen=True)
class Unmeasurable:
    """Why CPU and memory of a stack's services can't be read from here, and what to do: two clauses
    without a full stop."""

    why: str
    remedy: str


@dataclass(frozen=True)
class RunningStack:
    """A stack that was put up on purpose: for which engine, on which workload, since when, and what
    lives of it."""

    runtime: str
    engine: str
    workload: str
    since: str
    expected: Sequence[str]  # the services that were started
    # Those that live: name → pids, none where they can't be seen.
    services: Mapping[str, Sequence[int]]


class Stack(Protocol):
    """The services of one run. Service names are the same in every runtime:
    `mysql`, `broker`, `registry`, `debezium`, `redis`, `loadgen`, and each engine's own."""

    runtime: str
    settings: Settings

    @property
    def unmeasurable(self) -> Unmeasurable | None:
        """Set where the services' processes can't be seen from here. Such a stack is good for
        playing: `pids` names none, `accounting` is None, and there is no experiment."""

    @property
    def data_in_memory(self) -> bool:
        """Whether the services keep their data in memory (tmpfs), not on a disk."""

    @property
    def endpoints(self) -> Endpoints:
        """Where the services listen, as seen from this machine."""

    @property
    def internal_endpoints(self) -> InternalEndpoints:
        """Where an engine's service finds its input, as it sees it."""

    def prepare(self, services: Sequence[str], say: Say) -> None:
        """Clear what a killed run left behind; see that the services can be started.

        Raises:
            SetupError: something is missing that can't be installed.
            BusyError: a stack of this name was put up on purpose, or a port is taken.
        """

    def start(
        self, services: Sequence[str], logs: Path | None, say: Say, on_ready: OnReady = ignore
    ) -> None:
        """Install what is missing and start the services, all side by side; return when each has
        passed its health check. `on_ready` is called with the name of each that has, from any
        thread. Until `stop` or `leave_running` a watchdog ends them, should this process be killed.

        Their output goes to `logs`, the `stack` folder of a run; without it, to where the stack's
        data is, and goes with it.

        Raises:
            SetupError: something can't be installed.
            RacetrackError: a service did not come up; the message ends with its last words.
        """

    def apart(self, services: Sequence[str]) -> list[str]:
        """Those of the services that run apart from all before them: where the broker is the
        registry too, it is named once."""

    def pids(self, services: Sequence[str]) -> dict[str, list[int]]:
        """All live processes of each of these services, its main process first; none while it is
        killed, or where they can't be seen."""

    def helpers(self) -> list[int]:
        """The processes of what runs the services, such as a Docker engine's."""

    def accounting(self, service: str) -> Accounting | None:
        """The kernel's account of a service, where services have one of their own."""

    def folders_in_memory(self, service: str) -> Sequence[Path]:
        """The service's own folders that lie on tmpfs, as this machine can read them."""

    def data_folders(self) -> Sequence[DataFolder]:
        """Where services keep data; natively known before they start, in containers while they
        run."""

    def log_of(self, service: str) -> Path:
        """The file that the service's output goes to, growing while it runs."""

    def where_logs(self) -> str:
        """Where a person finds the output of a stack that stands."""

    def program(self, service: str, name: str) -> str:
        """What a person types to run a program that comes with a service, on the service's side."""

    def died(self) -> Mapping[str, str]:
        """Services that ended though nobody asked them to: name → how, with their last words.
        One that `kill` ended is not among them until it was started again."""

    def survives_kill(self, service: str) -> bool:
        """Whether `restart` finds what a killed service kept; an engine keeps nothing anyway."""

    def kill(self, services: Sequence[str]) -> None:
        """End services as a crash does: all their processes, at once, unasked. One may end because
        of another. Returns when they are gone."""

    def pause(self, service: str) -> None:
        """Stop all processes of a service where they are; their connections stay open."""

    def resume(self, service: str) -> None:
        """Let a paused service go on."""

    def restart(self, service: str) -> None:
        """Start a service that was killed once more, on the data that it left, and return when it
        is ready: MySQL has its tables, the broker its topics, Debezium the place where it was.
        An engine starts empty.

        Raises:
            RacetrackError: it did not come up; the message ends with its last words.
        """

    def versions(self) -> Mapping[str, str]:
        """The version of every part that was started, as the part itself or its archive says."""

    def stop(self, say: Say) -> None:
        """End everything that was started, whoever started it, and remove its data. Idempotent."""

    def speed_up_next_start(self, say: Say) -> None:
        """Once the stack is stopped: make what makes later starts faster, if it is missing. It may
        be interrupted, and is then left for the end of the next run."""

    def leave_running(self, engine: str) -> None:
        """Let the stack stand when this command ends."""

    def running(self) -> RunningStack | None:
        """The stack that `leave_running` left standing, if there is one."""
