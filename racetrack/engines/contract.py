"""Contract between the harness and an engine.

A new engine needs a folder in `racetrack/engines/` and one script per workload."""

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
from racetrack.results.classes import Classes
from racetrack.results.defects import InjectedDefect
from racetrack.stack import provided
from racetrack.stack.contract import Endpoints, Stack
from racetrack.stack.elsewhere import RUN_NAME
from racetrack.workloads.contract import Query, TracedView, find_workload, workload_in

if TYPE_CHECKING:
    import pyarrow


class DemoError(RacetrackError):
    """The engine refused the demo. The message contains the engine's error."""


class NoSuchView(RacetrackError):
    """The engine's demo does not create this view."""


@dataclass(frozen=True)
class Summary:
    """An update of the only row of the view `Workload.summary`, or of the sum of all partitions.

    The row changed at `timestamp_ms`. The newest event counted was due at `max_received_at_ms`.
    Both are epoch milliseconds. `dt_ms` is the freshness as defined in 2022: `timestamp_ms` minus
    `max_received_at_ms`.
    """

    timestamp_ms: int
    total: int
    max_received_at_ms: int
    dt_ms: float


@dataclass(frozen=True)
class Progress:
    """An update of a row of the view `Workload.progress`: the engine's count for one partition; or
    of its position there. The fields are those of `Summary`."""

    timestamp_ms: int
    partition: int
    total: int
    max_received_at_ms: int


@dataclass(frozen=True)
class Seen:
    """An update of a partition's tracer row in a traced view.

    `value` is the number of tracer events in the view, or the due time of the newest one in epoch
    milliseconds; see `racetrack.workloads.contract.TracedView`. `timestamp_ms` is when a client
    could first read this value, in epoch milliseconds. `partition` is ALL_PARTITIONS if the view
    has no tracer rows.
    """

    timestamp_ms: int
    view: str  # `TracedView.name`
    partition: int
    value: int


@dataclass(frozen=True)
class Access:
    """Data that a client in another process needs to connect to the engine of a running stack."""

    settings: Settings
    endpoints: Endpoints
    namespace: str  # see `Engine.namespace`
    queries: Sequence[Query] = ()  # queries that the client repeats; other views are read once


class Reader(Protocol):
    """A client that reads an engine's views as the engine's users do. It runs in its own
    process."""

    def rows(self, view: str, key: str, among: Sequence[int]) -> "pyarrow.Table":
        """Return the current rows of a view, with the column names of the script. If `key` is not
        empty, return only the rows whose column `key` has one of the values `among`.

        The rows must be a consistent, committed state of the view, but may lag behind the input.
        `racetrack.workloads.contract` describes the columns and types that are verified.

        Raises:
            NoSuchView: the engine's demo has no such view.
            RacetrackError: the engine does not answer.
        """


class Engine(ABC):
    """A streaming engine. Any thread may call any method.

    Every engine must implement the abstract methods. The default implementations of the other
    methods suit an engine whose results need no caveat. If the user may provide a service of the
    engine, so that it runs elsewhere, the engine's folder has an `elsewhere.py` (see
    `racetrack.stack.elsewhere`).
    """

    name: str  # name on the command line and in run folders
    title: str  # name in reports and messages
    order: int = 1_000  # position in lists such as the README's; lower first
    needs: tuple[str, ...] = ()  # services needed in addition to database, broker and generator
    services: tuple[str, ...] = ()  # the engine's own services, whose cost is the engine's cost
    runtimes: tuple[str, ...] = ("native", "compose")  # runtimes that can start the engine
    # Runtimes in which the engine can have several replicas (ENGINE_REPLICAS). They share the
    # partitions of the input.
    scalable_on: tuple[str, ...] = ()
    # True if the engine decodes CDC messages by the schemas that it found when its demo was loaded.
    # It would read wrong numbers if the type of a column changed later.
    keeps_first_schemas: bool = False
    # Suffix of the engine's scripts, such as `.sql`. The engine supports the workloads for which
    # there is such a script in `scripts/`. Empty for an engine without a script, which only counts
    # the main topic of any workload.
    script_ending: str = ""
    # True if the engine can use a Kafka that the user provides: all its clients use the properties
    # and the topic prefix of `KafkaEndpoint`.
    kafka_elsewhere: bool = False
    # Service whose clock sets the timestamps of view updates; empty: this machine's clock.
    stamped_by: str = ""
    is_published: bool = False  # True for the two engines of the experiment of 2022
    version_part: str = ""  # key of the engine's own version in `versions` of `run.json`
    # The summary view may report events this much later than the progress view. 0, unless the
    # engine writes the two views independently.
    summary_after_ms: int = 0

    # Tables of which the engine reads each row once, so that its views do not follow updates. If
    # there are updates, its views are verified with the rows that it read.
    ignores_updates_of: tuple[str, ...] = ()

    # Places outside the engine's own services to which it writes under fixed names. Two engines
    # with a common place can't be in a group.
    writes_to: tuple[str, ...] = ()
    sink_format: str = "Avro"  # format in which the script writes to the topic `Workload.sink`

    @property
    def members(self) -> "tuple[Engine, ...]":
        """The members of a group of engines that read the same input; otherwise only this
        engine."""
        return (self,)

    @property
    def scripts(self) -> Mapping[str, str]:
        """File names of the engine's scripts by workload, for all workloads that it supports. A
        user can run these scripts in the engine. Empty if the engine has no scripts."""
        if not self.script_ending:
            return {}
        names = plugins.workload_names()
        paths = {name: find_workload(name).script(self.script_ending) for name in names}
        existing = {name: path for name, path in paths.items() if path.exists()}
        return {name: str(path.relative_to(plugins.SCRIPTS)) for name, path in existing.items()}

    def script(self, settings: Settings) -> Path:
        """Return the path of the engine's script for the workload of these settings.

        Raises:
            UsageError: the engine has no script for this workload.
        """
        path = find_workload(settings.workload).script(self.script_ending)
        if not path.exists():
            raise UsageError(
                f"{self.title} can't run the workload {settings.workload}: there is no"
                f" scripts/{path.relative_to(plugins.SCRIPTS)}. It has scripts for"
                f" {', '.join(self.scripts)}."
            )
        return path

    def programs(self, settings: Settings) -> list[Path]:
        """Return the paths of the script and of the selected views' programs, in the order in which
        they run.

        Raises:
            UsageError: the engine has no script for this workload.
        """
        workload = find_workload(settings.workload)
        of_views = workload.scripts_of_views(self.script_ending, settings)
        return [self.script(settings), *of_views.values()]

    def demo_waits_for(self, settings: Settings) -> tuple[str, ...]:  # noqa: ARG002
        """Return the services for which the script itself waits. The harness runs the script as
        soon as all other services are ready."""
        return ()

    def needs_in(self, settings: Settings) -> tuple[str, ...]:
        """Return `needs` of a stack with these settings, whose workload may have no tables."""
        return find_workload(settings.workload).needed(self.needs)

    def services_in(self, settings: Settings) -> tuple[str, ...]:
        """Return the engine's own services that a stack with these settings starts: all except
        those that the user provides."""
        return tuple(provided.here(self.services, settings))

    def runs_elsewhere(self, settings: Settings) -> bool:
        """Return whether the user provides a service of the engine."""
        return any(service.service in self.services for service in provided.configured(settings))

    def measured_services(self, settings: Settings) -> tuple[str, ...]:
        """Return the engine's own services if the CPU and memory of all of them are measured, else
        none: those of a service that the user provides are unknown."""
        return () if self.runs_elsewhere(settings) else self.services

    def namespace(self, settings: Settings) -> str:
        """Return a name that sets this run's objects apart in an engine that the user provides and
        others also use; empty if only this run uses the engine."""
        return RUN_NAME if self.runs_elsewhere(settings) else ""

    def processes(self, stack: Stack) -> Mapping[str, list[int]]:
        """Return the live processes on this machine whose cost is the engine's, by service name.
        The result is empty if the user provides a service of the engine: then the cost of the other
        services is not the engine's cost."""
        own = self.services_in(stack.settings)
        return {} if self.runs_elsewhere(stack.settings) else stack.pids(own)

    def observer_in(self, settings: Settings) -> "Engine":  # noqa: ARG002
        """Return the engine whose code follows and reads the views with these settings: by default
        this engine. Its `stamped_by` and `summary_after_ms` apply."""
        return self

    def check(self, stack: Stack) -> None:  # noqa: B027
        """Check, before anything is started, that the engine can run.

        Raises:
            RacetrackError: the engine can't run on this stack with these settings.
        """

    def prepare_inputs(self, stack: Stack) -> None:  # noqa: B027
        """Create what the demo's script expects but can't create itself, such as topics.

        `./race up` calls this, because the user will run the script. `load_demo` must call it
        itself.
        """

    @abstractmethod
    def load_demo(self, stack: Stack) -> None:
        """Run the demo's script in the engine; return when all views exist.

        Raises:
            DemoError: the engine refused the script.
        """

    def reload_demo(self, stack: Stack) -> None:
        """Restore the demo's views after the engine's services were killed and restarted. By
        default load the demo again, as needed by an engine that keeps its state in memory.

        Raises:
            DemoError: the engine refused the script.
        """
        self.load_demo(stack)

    @abstractmethod
    def updates(self, stack: Stack, stop: threading.Event) -> Iterator[Summary | Progress]:
        """Yield every update of the two progress views, until `stop` is set. Not called for a
        workload with `positions`, whose progress is computed from `seen`."""

    def watch(self, stack: Stack) -> Callable[[], None]:  # noqa: ARG002
        """Return a function that is called while there are no new results, and that raises
        RacetrackError if the engine has failed. By default it never raises, which suits engines
        whose process ends when they fail: the stack detects that."""
        return lambda: None

    def traced_views(self, settings: Settings) -> Sequence[TracedView]:
        """Return the traced views that `seen` can follow, by default those of the workload."""
        return workload_in(settings).traced_views

    def seen(
        self,
        stack: Stack,  # noqa: ARG002
        traced: Sequence[TracedView],  # noqa: ARG002
        stop: threading.Event,  # noqa: ARG002
    ) -> Iterator[Seen]:
        """Yield every update of the tracer rows in these views, as a user's client would receive
        it, until `stop` is set. Yield nothing if the engine's views can't be followed."""
        return iter(())

    def clients(self, settings: Settings) -> Mapping[str, list[int]]:  # noqa: ARG002
        """Return the live processes of the clients by which `updates` and `seen` receive the
        engine's results with these settings, by name, if they have processes of their own. Their
        cost is neither the engine's nor the harness's."""
        return {}

    def access(self, stack: Stack) -> Access:
        """Return what a client needs to reach this engine in a running stack."""
        namespace = self.namespace(stack.settings)
        return Access(stack.settings, stack.endpoints, namespace)

    def read_view(self, stack: Stack, view: str) -> "pyarrow.Table":
        """Return all current rows of a view of the demo; see `Reader.rows`.

        Raises:
            NoSuchView: the engine's demo has no such view.
            RacetrackError: the engine does not answer.
        """
        with self.reader(self.access(stack)) as reader:
            return reader.rows(view, "", ())

    def reader(self, access: Access) -> AbstractContextManager[Reader]:  # noqa: ARG002
        """Return a client that reads the demo's views as the engine's users do.

        Raises:
            NoSuchView: the engine has no such client.
            RacetrackError: the engine does not answer.
        """
        raise NoSuchView(f"{self.title}'s views can't be read.")

    def bytes_per_event(self, settings: Settings) -> float:  # noqa: ARG002
        """Return the bytes of heap that each event of the main topic needs, if the engine keeps
        them all: the size of a heap divided by the number of events that filled it. 0 if its memory
        does not grow with the number of events, or if that is unknown."""
        return 0.0

    def clock_slack_ms(self, settings: Settings) -> int:  # noqa: ARG002
        """Return how far the clock that moves a view's time window may be behind the machine's
        clock when the view is read, in milliseconds. Usually two update cycles."""
        return 2_000

    def remarks(self, stack: Stack) -> list[str]:  # noqa: ARG002
        """Return lines to print for the user after the demo has been loaded."""
        return []

    def versions(self, stack: Stack) -> Mapping[str, str]:  # noqa: ARG002
        """Return the versions of the engine's components that the stack did not install, by name.
        Called after the demo has been loaded."""
        return {}

    def absent_views(self, settings: Settings) -> Sequence[str]:  # noqa: ARG002
        """Return the workload's views that the script does not create. Reports then show, for
        example, `12 of 17 views` next to the engine's figures."""
        return ()

    def classes(self, settings: Settings) -> Classes:  # noqa: ARG002
        """Return the classes of the engine with these settings: where results live, what survives a
        kill, when work is done, how views are written, and whether they follow changed rows. What
        is unknown is left out."""
        return Classes()

    def caveats(self, settings: Settings) -> list[str]:  # noqa: ARG002
        """Return warnings for readers who compare a run of this engine with other engines."""
        return []

    @abstractmethod
    def usage_hints(self, stack: Stack) -> list[str]:
        """Return lines that explain to a user how to use the engine while the stack is up."""


class CalibrationEngine(Engine):
    """An engine with defects that its settings define, to check whether the harness measures
    them."""

    @abstractmethod
    def settings_of(self, defect: InjectedDefect) -> Mapping[str, str]:
        """Return the settings, by their names in `.env`, with which the engine has exactly this
        defect."""
