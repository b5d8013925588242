"""Deephaven: runs the demo's script over gRPC, and follows its tables by clients or, if they are
published there, in Kafka."""

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, TypeVar

from racetrack.config import Settings
from racetrack.engines.contract import (
    Access,
    DemoError,
    Engine,
    NoSuchView,
    Progress,
    Reader,
    Seen,
    Summary,
)
from racetrack.engines.dh import published
from racetrack.engines.dh.columns import with_names
from racetrack.engines.dh.connection import opened, reading
from racetrack.engines.dh.decimals import with_decimals
from racetrack.engines.dh.elsewhere import ELSEWHERE
from racetrack.engines.dh.inputs import addresses, given_to_scripts, name_of, names_there, variables
from racetrack.engines.dh.observation import CLIENT, Subscribers, can_subscribe, with_cause
from racetrack.engines.dh.published import PUBLISHED, PublishedViews, publishes
from racetrack.engines.dh.settings import DeephavenSettings
from racetrack.engines.dh.subscriber import POLL_EVERY_S, Update
from racetrack.engines.shared.tracer import only_more
from racetrack.engines.shared.upsert import new_topics
from racetrack.errors import RacetrackError, UsageError
from racetrack.results.classes import Classes
from racetrack.stack.contract import Stack
from racetrack.workloads.contract import TracedView, find_workload

if TYPE_CHECKING:
    import pyarrow
    from pydeephaven import Session, Table

# Code sent to the server, which runs a script by its path on the server. In this way, errors
# contain file and line, and the script's text does not appear in the server's log.
_RUN_FILE = """
import os
os.environ.update({variables!r})
path = os.path.join(os.environ.get("RACETRACK_SCRIPTS", "/scripts"), {name!r})
exec(compile(open(path).read(), path, "exec"))
"""


POLLED = (
    "The ticking client of Deephaven can't be used here: there are packages of it for Linux on"
    f" x86-64 only. So tables were read every {POLL_EVERY_S:g} s, and lag contains up to this time."
)
INTERVAL = (
    "A Deephaven sends changes to clients at most once in barrage.minUpdateInterval, and lag"
    " contains up to this time: 1 s, unless it was started with -Dbarrage.minUpdateInterval=20."
)
TO_KAFKA = (
    "DEEPHAVEN_PUBLISH=true: Deephaven also wrote each changed row of all views to Kafka, and each"
    " update cycle waited until the broker had them. Views were followed and read in Kafka."
)
Received = TypeVar("Received", bound=Update)


class Deephaven(Engine):
    """See `racetrack.engines.contract.Engine`."""

    name = "dh"
    title = "Deephaven"
    order = 1
    needs = ("registry", "debezium")
    runtimes = ("native", "compose", "kubernetes")
    services = ("deephaven",)
    kafka_elsewhere = True
    script_ending = ".py"
    version_part = "deephaven"
    keeps_first_schemas = True  # Deephaven 42.7 decodes decimals by the first schema's scale
    is_published = True

    def __init__(self, published: PublishedViews = PUBLISHED) -> None:
        """Create the engine. `published` follows the views if they are published."""
        self._subscribers, self._published = Subscribers(), published

    def observer_in(self, settings: Settings) -> Engine:
        """Return the engine that follows topics if the views are published."""
        return self._published if publishes(settings) else self

    def check(self, stack: Stack) -> None:
        """Check the prefix of topics, which is also the namespace of Deephaven's Avro records, and
        that views which are to be published have keys."""
        settings = stack.settings
        if publishes(settings) and not find_workload(settings.workload).progress:
            raise UsageError(
                f"DEEPHAVEN_PUBLISH=true: the workload {settings.workload} has no progress view,"
                " and views whose rows have no key can't be published. Set it to false."
            )
        prefix = settings.kafka_topic_prefix
        if not re.fullmatch(r"([A-Za-z_]\w*\.)*([A-Za-z_]\w*)?", prefix, re.ASCII):
            raise UsageError(
                f"KAFKA_TOPIC_PREFIX={prefix}: Deephaven uses it as an Avro namespace: names of"
                " letters, digits and _, not beginning with a digit, separated by dots. Change it,"
                " such as racetrack_1."
            )

    def classes(self, settings: Settings) -> Classes:
        """Return where the views are followed, and that a restarted Deephaven is empty, because
        tables are kept in memory."""
        return Classes(
            results="published to Kafka" if publishes(settings) else "served",
            after_a_kill="reads all input again",
            work="as events arrive",
            views="declarative",
            changes="follows changes",
        )

    def bytes_per_event(self, settings: Settings) -> float:
        """Return what tables of all events need. The shop: 66 million events filled 10 GiB.
        Nexmark: 250,000 more events of q4 took 94 MiB more of the live heap."""
        return {"shop": 163.0, "nexmark": 390.0}.get(settings.workload, 0.0)

    def demo_waits_for(self, settings: Settings) -> tuple[str, ...]:
        """Return Debezium if the script itself waits for the schemas of Debezium's topics;
        otherwise nothing."""
        waits = "wait_for(" in self.script(settings).read_text()
        return ("debezium",) if waits else ()

    def prepare_inputs(self, stack: Stack) -> None:
        """Create the topics to which views are published, or empty them: a restarted Deephaven does
        not delete the rows that it published before."""
        if publishes(stack.settings):
            new_topics.make(stack.endpoints.kafka, self._published.topics(stack.settings))

    def load_demo(self, stack: Stack) -> None:
        """Run the workload's script, and publish its views if that is set. If Deephaven runs
        elsewhere, the tables have the run's name as a prefix."""
        self.prepare_inputs(stack)
        if self.runs_elsewhere(stack.settings):
            self._load_elsewhere(stack)
            return
        self.run_script(stack.settings)
        if publishes(stack.settings):
            keys = published.keys_of(stack.settings)
            self._run(stack.settings, published.code(keys), "to publish its views")

    def _load_elsewhere(self, stack: Stack) -> None:
        from pydeephaven import DHError

        settings = stack.settings
        programs = self.programs(settings)
        given = given_to_scripts(stack.internal_endpoints, programs, variables(settings))
        if publishes(settings):
            given["scripts"][published.PUBLISH.name] = published.code(published.keys_of(settings))
        try:
            with opened(settings) as session:
                ELSEWHERE.load(session, given)
        except DHError as error:
            names = " and ".join(f"scripts/{name_of(path)}" for path in programs)
            raise DemoError(f"Deephaven refused {names}:\n{error}") from error

    def run_script(self, settings: Settings) -> None:
        """Run the workload's script, and the selected views' programs, in the server of these
        settings.

        Raises:
            DemoError: the server refused one of them.
        """
        for name in names_there(self.programs(settings), settings.runtime):
            code = _RUN_FILE.format(name=name, variables=variables(settings))
            self._run(settings, code, f"scripts/{name}")

    def _run(self, settings: Settings, code: str, what: str) -> None:
        from pydeephaven import DHError

        with opened(settings) as session:
            try:
                session.run_script(code)
            except DHError as error:
                raise DemoError(f"Deephaven refused {what}:\n{error}") from error

    def updates(self, stack: Stack, stop: threading.Event) -> Iterator[Summary | Progress]:
        """Yield the updates of the progress views that a client receives, from Deephaven or from
        Kafka."""
        if publishes(stack.settings):
            return _explained(self._published.updates(stack, stop), self, stack)
        received = self._follow(stack, stop)
        return (update for update in received if not isinstance(update, Seen))

    def seen(
        self,
        stack: Stack,
        traced: Sequence[TracedView],
        stop: threading.Event,
    ) -> Iterator[Seen]:
        """Yield the tracer values that a client receives, with all rows of the views."""
        if publishes(stack.settings):
            return self._published.seen(stack, traced, stop)
        if not traced:
            return iter(())
        received = self._follow(stack, stop, [view.name for view in traced])
        return only_more(update for update in received if isinstance(update, Seen))

    def _follow(
        self, stack: Stack, stop: threading.Event, traced: Sequence[str] = ()
    ) -> Iterator[Update]:
        settings, namespace = stack.settings, self.namespace(stack.settings)
        received = self._subscribers.follow(settings, namespace, stop, traced)
        return _explained(received, self, stack)

    def clients(self, settings: Settings) -> Mapping[str, list[int]]:
        """Return the processes of the clients that subscribe."""
        return {} if publishes(settings) else {CLIENT: self._subscribers.pids}

    def reader(self, access: Access) -> AbstractContextManager[Reader]:
        """Open a session of pydeephaven, in which each table is opened once and then reused; or a
        reader of the topics."""
        if publishes(access.settings):
            return self._published.reader(access)
        return open_reader(access.settings, access.namespace)

    def clock_slack_ms(self, settings: Settings) -> int:
        """Return two update cycles: views use the time at the start of an update cycle, which may
        have begun one cycle ago and taken another. Elsewhere, cycles are assumed to take 1 s.
        Add two seconds if rows are written to topics and read there."""
        cycle_ms = DeephavenSettings.of(settings).deephaven_cycle_ms
        of_cycles = 2_000 if self.runs_elsewhere(settings) else 2 * cycle_ms
        return of_cycles + (2_000 if publishes(settings) else 0)

    def remarks(self, stack: Stack) -> list[str]:
        """If Deephaven runs elsewhere, return the names of the demo's tables, and of those that
        earlier runs may have left."""
        if not self.runs_elsewhere(stack.settings):
            return []
        with reading(stack.settings) as session:
            return ELSEWHERE.remarks(session, stack.settings)

    def versions(self, stack: Stack) -> Mapping[str, str]:
        """Return the version of a Deephaven that the user provides."""
        if not self.runs_elsewhere(stack.settings):
            return {}
        with reading(stack.settings) as session:
            constants = session.config_service.get_configuration_constants()
        return {self.version_part: constants["deephaven.version"].string_value}

    def caveats(self, settings: Settings) -> list[str]:
        """Return why Deephaven's clients received changes late, and what publishing adds."""
        if publishes(settings):
            return [TO_KAFKA]
        if not can_subscribe():
            return [POLLED]
        return [INTERVAL] if self.runs_elsewhere(settings) else []

    def usage_hints(self, stack: Stack) -> list[str]:
        """Return the IDE's address, and what to paste there."""
        settings, programs = DeephavenSettings.of(stack.settings), self.programs(stack.settings)
        publish: list[str] = []
        if publishes(settings):
            call = published.call(published.keys_of(settings))
            publish = [f"To publish its views, paste {published.PUBLISH}, then: {call}"]
        if self.runs_elsewhere(settings):
            environment = {**addresses(stack.internal_endpoints), **variables(settings)}
            return [
                f"IDE: {settings.deephaven_url.rstrip('/')}/ide/",
                f"In its console: ENVIRONMENT = {environment}",
                *(f"Then paste there: {path}" for path in programs),
                *publish,
            ]
        host = f"{settings.reach_address}:{settings.deephaven_port}"
        psk = settings.deephaven_psk.get_secret_value()
        scripts, given = stack.internal_endpoints.scripts, variables(settings)
        return [
            f"IDE: http://{host}/ide/?psk={psk}",
            *([f"In its console: import os; os.environ.update({given})"] if given else []),
            *(
                f"In its console: exec(open('{scripts}/{name}').read())"
                for name in names_there(programs, stack.runtime)
            ),
            *publish,
        ]


def _explained(received: Iterator[Received], engine: Engine, stack: Stack) -> Iterator[Received]:
    """Yield what is received, and add the cause in the log of the stack's Deephaven to an error."""
    try:
        yield from received
    except RacetrackError as error:
        if engine.runs_elsewhere(stack.settings):
            raise
        log = stack.log_of("deephaven").read_text(errors="replace")
        raise RacetrackError(with_cause(str(error), log)) from error


class TableReader:
    """See `racetrack.engines.contract.Reader`."""

    def __init__(self, session: "Session", namespace: str = "") -> None:
        """`namespace` is the prefix of the tables' names, without `_`; empty for none."""
        self._session, self._prefix = session, f"{namespace}_" if namespace else ""
        self._opened: dict[str, Table] = {}

    def rows(self, view: str, key: str, among: Sequence[int]) -> "pyarrow.Table":
        """Return a snapshot of the table, which Deephaven takes between two update cycles. If `key`
        is given, Deephaven filters the rows."""
        from pydeephaven import DHError

        try:
            if view not in self._opened:
                if self._prefix + view not in self._session.tables:
                    raise NoSuchView(f"Deephaven has no table {view!r}.")
                self._opened[view] = self._session.open_table(self._prefix + view)
            table = self._opened[view]
            if not key:
                return with_names(with_decimals(table.to_arrow()))
            filtered = table.where(f"{key} in {', '.join(map(str, among))}")
            try:
                return with_names(with_decimals(filtered.to_arrow()))
            finally:
                filtered.close()
        except DHError as error:
            raise RacetrackError(f"Deephaven did not return table {view!r}: {error}") from error


@contextmanager
def open_reader(settings: Settings, namespace: str = "") -> Iterator[TableReader]:
    """Open a session for reading tables, whose names begin with `namespace` and `_` if it is given.

    Raises:
        RacetrackError: Deephaven refuses.
    """
    with reading(settings) as session:
        yield TableReader(session, namespace)


ENGINE = Deephaven()
