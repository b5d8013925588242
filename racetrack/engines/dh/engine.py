"""Deephaven: runs the demo's scripts over gRPC, and reads progress from the server's output.

If the user provides a Deephaven (it runs "elsewhere"), its output can't be read, so its tables are
read instead.
"""

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING

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
from racetrack.engines.dh import observation
from racetrack.engines.dh.connection import opened, reading
from racetrack.engines.dh.elsewhere import ELSEWHERE
from racetrack.engines.dh.inputs import addresses, given_to_scripts
from racetrack.engines.dh.settings import DeephavenSettings
from racetrack.engines.shared.progress_log import seen_in, updates_of
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
path = os.path.join(os.environ.get("RACETRACK_SCRIPTS", "/scripts"), {name!r})
exec(compile(open(path).read(), path, "exec"))
"""


POLLED = (
    f"Deephaven's tables were read every {observation.LOOK_EVERY_S:g} s to see its progress, so"
    " that lag contains up to this time."
)


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

    def check(self, stack: Stack) -> None:
        """Check the prefix of topics, which is also the namespace of Deephaven's Avro records."""
        prefix = stack.settings.kafka_topic_prefix
        if not re.fullmatch(r"([A-Za-z_]\w*\.)*([A-Za-z_]\w*)?", prefix, re.ASCII):
            raise UsageError(
                f"KAFKA_TOPIC_PREFIX={prefix}: Deephaven uses it as an Avro namespace: names of"
                " letters, digits and _, not beginning with a digit, separated by dots. Change it,"
                " such as racetrack_1."
            )

    def classes(self, settings: Settings) -> Classes:  # noqa: ARG002
        """Return that tables are kept in memory: a restarted Deephaven is empty."""
        return Classes(
            results="served",
            after_a_kill="reads all input again",
            work="as events arrive",
            views="declarative",
            changes="follows changes",
        )

    def bytes_per_event(self, settings: Settings) -> float:
        """Return what the shop's table of all pageviews needs: 66 million filled 10 GiB."""
        return 163.0 if settings.workload == "shop" else 0.0

    def demo_waits_for(self, settings: Settings) -> tuple[str, ...]:
        """Return Debezium if the script itself waits for the schemas of Debezium's topics;
        otherwise nothing."""
        waits = "wait_for(" in self.script(settings).read_text()
        return ("debezium",) if waits else ()

    def load_demo(self, stack: Stack) -> None:
        """Run the workload's script, then scripts that write progress to the server's output. If
        Deephaven runs elsewhere, the tables have the run's name as a prefix."""
        if self.runs_elsewhere(stack.settings):
            self._load_elsewhere(stack)
        else:
            self.run_scripts(stack.settings)

    def _load_elsewhere(self, stack: Stack) -> None:
        from pydeephaven import DHError

        settings = stack.settings
        script = self.script(settings)
        traced = describe_traced_views(settings) if settings.tracer_events_per_second else []
        given = {**given_to_scripts(stack.internal_endpoints, script), "traced": traced}
        try:
            with opened(settings) as session:
                ELSEWHERE.load(session, given)
        except DHError as error:
            raise DemoError(f"Deephaven refused scripts/{script.name}:\n{error}") from error

    def run_scripts(self, settings: Settings) -> None:
        """Run the scripts of `load_demo` in the server of these settings.

        Raises:
            DemoError: the server refused a script.
        """
        from pydeephaven import DHError

        scripts = {self.script(settings).name: "", "sample_dt.py": ""}
        if settings.tracer_events_per_second:
            scripts["sample_views.py"] = f"traced_views = {describe_traced_views(settings)!r}\n"
        with opened(settings) as session:
            for script, before in scripts.items():
                try:
                    session.run_script(before + _RUN_FILE.format(name=script))
                except DHError as error:
                    raise DemoError(f"Deephaven refused scripts/{script}:\n{error}") from error

    def updates(self, stack: Stack, stop: threading.Event) -> Iterator[Summary | Progress]:
        """Yield the updates that `sample_dt.py` writes to the server's output; elsewhere, the
        updates that a client of the tables sees."""
        if self.runs_elsewhere(stack.settings):
            return observation.updates(stack.settings, self.namespace(stack.settings), stop)
        return updates_of(stack.log_of("deephaven"), stop)

    def seen(
        self,
        stack: Stack,
        traced: Sequence[TracedView],  # noqa: ARG002  # `run_scripts` has passed them to the script
        stop: threading.Event,
    ) -> Iterator[Seen]:
        """Yield the tracer values that `sample_views.py` writes to the server's output. That script
        receives them as a listener of the views. Elsewhere, yield the values that a client of the
        tables sees."""
        if self.runs_elsewhere(stack.settings):
            return observation.seen(stack.settings, self.namespace(stack.settings), stop)
        return seen_in(stack.log_of("deephaven"), stop)

    def reader(self, access: Access) -> AbstractContextManager[Reader]:
        """Open a session of pydeephaven. Each table is opened once and then reused."""
        return open_reader(access.settings, access.namespace)

    def clock_slack_ms(self, settings: Settings) -> int:
        """Return two update cycles: views use the time at the start of an update cycle, which may
        have begun one cycle ago and taken another. Elsewhere, cycles are assumed to take 1 s."""
        if self.runs_elsewhere(settings):
            return super().clock_slack_ms(settings)
        return 2 * DeephavenSettings.of(settings).deephaven_cycle_ms

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
        """Return how the progress of a Deephaven elsewhere was observed."""
        return [POLLED] if self.runs_elsewhere(settings) else []

    def usage_hints(self, stack: Stack) -> list[str]:
        """Return the IDE's address, and what to paste there."""
        settings = DeephavenSettings.of(stack.settings)
        if self.runs_elsewhere(settings):
            return [
                f"IDE: {settings.deephaven_url.rstrip('/')}/ide/",
                f"In its console: ENVIRONMENT = {addresses(stack.internal_endpoints)}",
                f"Then paste there: {self.script(settings)}",
            ]
        host = f"{settings.reach_address}:{settings.deephaven_port}"
        psk = settings.deephaven_psk.get_secret_value()
        script = f"{stack.internal_endpoints.scripts}/{self.script(settings).name}"
        return [
            f"IDE: http://{host}/ide/?psk={psk}",
            f"In its console: exec(open('{script}').read())",
        ]


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
                return with_decimals(table.to_arrow())
            filtered = table.where(f"{key} in {', '.join(map(str, among))}")
            try:
                return with_decimals(filtered.to_arrow())
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


def describe_traced_views(settings: Settings) -> list[tuple[str | int | bool, ...]]:
    """Return the traced views in the format that `scripts/sample_views.py` reads."""
    found: list[tuple[str | int | bool, ...]] = []
    for view in find_workload(settings.workload).traced_views:
        keys = view.keys(settings)
        rows = view.view, view.key, keys[0], keys[-1]
        found.append((view.name, *rows, view.column, view.is_time))
    return found


def with_decimals(table: "pyarrow.Table") -> "pyarrow.Table":
    """Convert a table's BigDecimal columns to Arrow decimals. Deephaven sends a BigDecimal as
    bytes: four bytes with the scale (little-endian), then the unscaled value (big-endian)."""
    import pyarrow as pa

    for number, field in enumerate(table.schema):
        if (field.metadata or {}).get(b"deephaven:type") == b"java.math.BigDecimal":
            values = pa.array(
                [None if raw is None else _decimal(raw) for raw in table.column(number).to_pylist()]
            )
            table = table.set_column(number, field.name, values)
    return table


def _decimal(raw: bytes) -> Decimal:
    scale = int.from_bytes(raw[:4], "little", signed=True)
    unscaled = int.from_bytes(raw[4:], "big", signed=True)
    return Decimal(f"{unscaled}E{-scale}")  # parsing a text is exact, whatever the number of digits


ENGINE = Deephaven()
