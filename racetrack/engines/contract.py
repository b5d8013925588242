"""The contract of an engine; a new one is one folder here and one script a workload."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from racetrack import plugins
from racetrack.config import Settings
from racetrack.errors import RacetrackError, UsageError
from racetrack.results.defects import InjectedDefect
from racetrack.stack.contract import Endpoints, Stack
from racetrack.workloads.contract import Query, TracedView, find_workload

if TYPE_CHECKING:
    import pyarrow


class DemoError(RacetrackError):
    """The engine refused the demo; the message holds the engine's error."""


class NoSuchView(RacetrackError):
    """The engine's demo does not make this view."""


@dataclass(frozen=True)
class Summary:
    """The row of the engine's `Workload.summary` when it last changed.

    `timestamp_ms` is when it changed and `max_received_at_ms` when the newest pageview was due that
    it had counted, both epoch milliseconds; `dt_ms` is the published freshness, now − the latter.
    """

    timestamp_ms: int
    total: int
    max_received_at_ms: int
    dt_ms: float


@dataclass(frozen=True)
class Progress:
    """One changed row of `Workload.progress`: what the engine has counted of one partition."""

    timestamp_ms: int
    partition: int
    total: int
    max_received_at_ms: int


@dataclass(frozen=True)
class Seen:
    """What the row of a partition in a traced view said when it last changed, see
    `racetrack.workloads.contract.TracedView`: a count of marks, or a time in epoch milliseconds.

    `timestamp_ms` is when who reads the view could see it, epoch milliseconds.
    """

    timestamp_ms: int
    view: str  # `TracedView.name`
    partition: int
    value: int


@dataclass(frozen=True)
class Access:
    """Data with which a client in any process reaches the engine of a running stack."""

    settings: Settings
    endpoints: Endpoints
    log_of: Callable[[str], Path]  # file with the output of one of the engine's own services
    namespace: str  # see `Engine.namespace`
    queries: Sequence[Query] = ()  # those that the client repeats; it reads other views once


class Reader(Protocol):
    """A client of an engine, as one of its users would have it; in a process of its own."""

    def rows(self, view: str, key: str, among: Sequence[int]) -> "pyarrow.Table":
        """Return the rows that a view holds now: all of them; or, if `key` is not empty, those
        whose column `key` is one of `among`.

        Columns have the names of the script. The workload lists the views and columns that are
        verified, and which types will do. Further columns and the order of rows are ignored. The
        engine may be behind its input, but the rows are one state of the view, without an
        uncommitted part.

        Raises:
            NoSuchView: this engine's demo has no such view.
            RacetrackError: the engine does not answer.
        """


class Engine(ABC):
    """One streaming engine. Every method may be called from a thread of its own.

    What an engine must say is abstract; the rest has the answer of an engine whose services belong
    to the stack, that keeps nothing outside them, and that needs no warning.
    """

    name: str  # as typed on the command line and in run folders
    title: str  # as a person knows it
    order: int = 1_000  # where it is in lists: lower first, as in the README
    needs: tuple[str, ...] = ()  # services it needs beside the database, broker and generator
    services: tuple[str, ...] = ()  # its own services, those whose cost is the engine's cost
    runtimes: tuple[str, ...] = ("native", "compose")  # those that can start it
    # It reads each table's changes by the schema of when its demo was loaded, so that numbers of a
    # column whose type is changed later would be wrong.
    keeps_first_schemas: bool = False
    # How the names of its scripts end, such as `.sql`: it can race on a workload that has one in
    # `scripts/`. None: it has no script, and counts the main topic of any.
    script_ending: str = ""
    is_published: bool = False  # one of the two of the published experiment
    version_part: str = ""  # the key of its own version in `run.json`'s `versions`
    # How much later than `Workload.progress` its `Workload.summary` may say the same, or earlier,
    # where both are told by when they were written, each by itself.
    summary_after_ms: int = 0

    @property
    def scripts(self) -> Mapping[str, str]:
        """Workload → the name of what a person pastes for it, of those that it can race on; none
        if it has no script for any."""
        if not self.script_ending:
            return {}
        names = plugins.workload_names()
        paths = {name: find_workload(name).script(self.script_ending) for name in names}
        return {name: path.name for name, path in paths.items() if path.exists()}

    def script(self, settings: Settings) -> Path:
        """Return the script that a person pastes for the workload of these settings.

        Raises:
            UsageError: there is none.
        """
        path = find_workload(settings.workload).script(self.script_ending)
        if not path.exists():
            raise UsageError(
                f"{self.title} can't race on the workload {settings.workload}: there is no"
                f" scripts/{path.name}. It has scripts for {', '.join(self.scripts)}."
            )
        return path

    def demo_waits_for(self, settings: Settings) -> tuple[str, ...]:  # noqa: ARG002
        """Return the services that the script waits for itself: it is loaded as soon as all others
        are ready."""
        return ()

    def services_in(self, settings: Settings) -> tuple[str, ...]:  # noqa: ARG002
        """Its own services that a stack of these settings starts: none if it runs elsewhere."""
        return self.services

    def namespace(self, settings: Settings) -> str:  # noqa: ARG002
        """Return the name of the run's part of an engine that others use too; empty where the whole
        engine is the run's own."""
        return ""

    def processes(self, stack: Stack) -> Mapping[str, list[int]]:
        """Return the live processes on this machine whose cost is the engine's, by service name."""
        return stack.pids(self.services_in(stack.settings))

    def check(self, stack: Stack) -> None:  # noqa: B027
        """Look at what can be known before anything starts; nothing has been prepared yet.

        Raises:
            RacetrackError: this engine can't run on this stack with these settings.
        """

    def prepare_inputs(self, stack: Stack) -> None:  # noqa: B027
        """Make what the demo's script takes for granted and can't make itself, such as topics.

        `./race up` calls it, since a person will paste the script; `load_demo` is on its own.
        """

    @abstractmethod
    def load_demo(self, stack: Stack) -> None:
        """Run the demo's script in the engine and return when all its views are there.

        Raises:
            DemoError: the engine refused it.
        """

    def reload_demo(self, stack: Stack) -> None:
        """Have the demo's views again after the engine's services were killed and started anew:
        the whole demo once more, for an engine whose memory is gone with its process.

        Raises:
            DemoError: the engine refused it.
        """
        self.load_demo(stack)

    @abstractmethod
    def updates(self, stack: Stack, stop: threading.Event) -> Iterator[Summary | Progress]:
        """Every change of the two progress views, as the engine tells it, until `stop` is set."""

    def seen(
        self,
        stack: Stack,  # noqa: ARG002
        traced: Sequence[TracedView],  # noqa: ARG002
        stop: threading.Event,  # noqa: ARG002
    ) -> Iterator[Seen]:
        """Every change of the marks' rows in these views, by what the engine's users read them
        with, until `stop` is set. None: its views can't be followed."""
        return iter(())

    def access(self, stack: Stack) -> Access:
        """Return what a client needs to reach this engine in a running stack."""
        namespace = self.namespace(stack.settings)
        return Access(stack.settings, stack.endpoints, stack.log_of, namespace)

    def read_view(self, stack: Stack, view: str) -> "pyarrow.Table":
        """Return all rows that a view of the demo holds now, read once; see `Reader.rows`.

        Raises:
            NoSuchView: this engine's demo has no such view.
            RacetrackError: the engine does not answer.
        """
        with self.reader(self.access(stack)) as reader:
            return reader.rows(view, "", ())

    def reader(self, access: Access) -> AbstractContextManager[Reader]:  # noqa: ARG002
        """Return a client that reads the demo's views as the engine's users do.

        Raises:
            NoSuchView: there is no such client.
            RacetrackError: the engine does not answer.
        """
        raise NoSuchView(f"{self.title}'s views can't be read.")

    def clock_slack_ms(self, settings: Settings) -> int:  # noqa: ARG002
        """How far behind the machine's clock the one may be by which a view that is read moves its
        time window, in milliseconds: usually two update cycles."""
        return 2_000

    def unload(self, stack: Stack) -> None:  # noqa: B027
        """Remove what `load_demo` made outside the stack; called before the stack ends."""

    def remarks(self, stack: Stack) -> list[str]:  # noqa: ARG002
        """Return lines to print once the demo is loaded."""
        return []

    def versions(self, stack: Stack) -> Mapping[str, str]:  # noqa: ARG002
        """Part → version of what runs outside the stack; asked once the demo is loaded."""
        return {}

    def absent_views(self, settings: Settings) -> Sequence[str]:  # noqa: ARG002
        """Return the workload's views that its script does not make, since the engine can't express
        them: reports say `12 of 17 views` beside its figures."""
        return ()

    def guarantee(self, settings: Settings) -> str:  # noqa: ARG002
        """Return how often an event counts after the engine was killed (docs/faults.md), such as
        `exactly once`; empty: not known."""
        return ""

    def caveats(self, settings: Settings) -> list[str]:  # noqa: ARG002
        """Return what a reader must know before comparing a run of this engine with another."""
        return []

    @abstractmethod
    def usage_hints(self, stack: Stack) -> list[str]:
        """Lines that tell a person how to use the engine by hand while the stack is up."""


class CalibrationEngine(Engine):
    """The engine that measures the harness itself: it has the defects that its settings give it."""

    @abstractmethod
    def settings_of(self, defect: InjectedDefect) -> Mapping[str, str]:
        """Return the settings, by their names in `.env`, that give it this defect and no other."""
