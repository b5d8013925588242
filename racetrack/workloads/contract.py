"""The contract between the harness and a workload, a folder `racetrack/workloads/<name>/`:
its module `harness` has a `WORKLOAD`, which says what its views hold and where they get it from.

`Workload.views` is what `Engine.read_view` has to deliver: an Arrow table with at least the columns
named there, by these names; others are ignored, and so is the order of rows. Types may be the
engine's own, as long as nothing is lost (`racetrack/verify/normal.py` has the rules): a time may be
a timestamp, a number of epoch milliseconds, or ISO 8601 text.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from racetrack import plugins
from racetrack.config import Settings
from racetrack.errors import UsageError

# Debezium's name for MySQL, with which its topics begin.
CDC_PREFIX = "mysql"
# How much of a value that is at fault is shown.
SHOWN_CHARACTERS = 60


class ColumnType(Enum):
    """What a column holds, whatever type an engine gives it."""

    INTEGER = "integer"  # compared exactly; a boolean counts as 0 or 1
    TEXT = "text"  # compared exactly
    DECIMAL = "decimal"  # compared exactly: never a binary floating point number
    FLOAT = "float"  # compared to RELATIVE_ERROR
    TIME = "time"  # an instant, compared to the millisecond


INTEGER, TEXT, DECIMAL, FLOAT, TIME = ColumnType


@dataclass(frozen=True)
class TopN:
    """The view holds the first `limit` rows by `by`, descending, nulls last; of each `per` if any.

    Which of equals are among them is left open, though the demo's scripts do decide it.
    """

    limit: int
    by: str
    per: str | None = None


@dataclass(frozen=True)
class View:
    """One view: its columns, those that identify a row, and whether it is an extract.

    `window` names a column that counts what is in a window that moves with the engine's clock. It
    is held against a least and a greatest count, `<column>_least` and `<column>_most` in the SQL:
    the clock that the engine went by lies between two instants, see `verification.py`.

    `counts` names a column that counts messages of the main topic, each in one row at most: what it
    has too many were counted twice, what it lacks was lost.
    """

    name: str
    key: tuple[str, ...]
    columns: Mapping[str, ColumnType]
    top_n: TopN | None = None
    window: str | None = None
    counts: str | None = None


@dataclass(frozen=True)
class SourceTopic:
    """A topic as a source: how its messages become rows of `source.<table>` in DuckDB.

    `form` are kcat's options for a line of JSON a message; `take` is the SQL that inserts the lines
    of `$pipes`. `unfit`, if any, is the condition under which a row came of a message that is no
    `event`; the table has its `partition` and `offset` then. `due` is the field of a message that
    says when it was due, in epoch milliseconds; the main topic's messages have one. It may say so
    too late by `ahead_ms`. `fields` are those that each JSON message must have: `int`, `str`, or
    text that a pattern matches as a whole.
    """

    name: str
    table: str
    form: tuple[str, ...]
    take: str
    event: str
    unfit: str = ""
    due: str = ""
    ahead_ms: int = 0
    fields: Mapping[str, type[int] | type[str] | re.Pattern[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Fault:
    """Why a message is none of its topic; `field` is empty if that is true of all of it."""

    field: str
    reason: str


@dataclass(frozen=True)
class TracedView:
    """A view whose rows show which tracer events it contains, and so its lag (docs/views.md).

    The row of a partition is the one whose `key` is as much above the setting `after` as the
    partition's number plus one. Its greatest `column` is the number of the partition's tracer
    events in the view; or, with `is_time`, when the newest was due. Tracer event n (0-based) is
    in partition n // 2 % partitions; `parity` selects those that show: 0 the even ones, 1 the odd
    ones, None both.
    """

    view: str
    column: str
    key: str
    after: str
    source: str  # of its tracer events: the main topic, or a table by CDC
    parity: int | None = None
    is_time: bool = False

    @property
    def name(self) -> str:
        """As files and reports call it."""
        return f"{self.view}.{self.column}"

    def keys(self, settings: Settings) -> list[int]:
        """The key of each partition's row, by partition."""
        last = int(getattr(settings, self.after))
        return [last + 1 + partition for partition in range(settings.pageviews_partitions)]


@dataclass(frozen=True)
class Query:
    """What somebody who reads asks for: all rows of a view; or, `by` a traced view, those of its
    rows in which marks show, so that the answer says how old it is (docs/views.md)."""

    view: str
    by: TracedView | None = None

    @property
    def name(self) -> str:
        """As files and reports call it."""
        return f"{self.view} by {self.by.key}" if self.by else self.view


@dataclass(frozen=True)
class Workload:
    """What is raced on."""

    name: str
    # The main topic: the one whose rate is set and whose messages the engines' progress counts.
    topic: SourceTopic
    # The others that views are made of, beside those of CDC.
    topics: tuple[SourceTopic, ...]
    # Bytes that the broker stores of each message of the main topic (Apache Kafka's log, measured).
    stored_bytes: int
    # MySQL's database; its user has the same name.
    database: str
    # Its tables. Each is a view too: what an engine has of it.
    tables: tuple[str, ...]
    # The table whose inserts are watched on their way through CDC, if any; and the kinds of events
    # of the generator that insert a row there.
    watched_table: str | None
    watched_kinds: tuple[str, ...]
    # The rates that its generator's side heeds, of those that are off unless they are asked for:
    # settings, such as `tracer_events_per_second`.
    rates: tuple[str, ...]
    # In an order in which each comes after those that its SQL reads.
    views: tuple[View, ...]
    # Those of them that show tracer events, from which view lag is computed.
    traced_views: tuple[TracedView, ...]
    # Queries of the view reader, in turn.
    queries: tuple[Query, ...]
    # The view that counts the main topic by `partition`: `total`, and `max_received_at`, when the
    # newest message was due (epoch ms); and the view of one row that sums these up.
    progress: str
    summary: str
    # How the names of its scripts begin, one for each engine: `scripts/<begin>.sql`.
    scripts: str
    # How long its windows of event time are, if it has any: each begins at a multiple of this.
    event_window_ms: int | None
    # The folder that holds `<view>.sql` for each view: what it should hold, by the schemas `source`
    # and `expected` of DuckDB.
    sql: Path
    # DuckDB's SQL for the topics' tables in the schema `source`, and what else views are made of.
    create: str

    def view(self, name: str) -> View:
        """The view of that name."""
        return next(view for view in self.views if view.name == name)

    def table_views(self) -> list[View]:
        """The views that are tables of the database."""
        return [self.view(table) for table in self.tables]

    def script(self, ending: str) -> Path:
        """What a person pastes into the engine whose scripts end like this, such as `.sql`; it may
        not be there."""
        return plugins.SCRIPTS / f"{self.scripts}{ending}"

    def cdc_topic(self, table: str) -> str:
        """Where Debezium writes the changes of a table."""
        return f"{CDC_PREFIX}.{self.database}.{table}"


def fault_of(value: bytes | None, topic: SourceTopic) -> Fault | None:
    """Return why a message of this topic can't be used, None if it has all fields it must have."""
    if value is None:
        return Fault("", "no value (a tombstone)")
    try:
        message = json.loads(value)
    except ValueError:
        return Fault("", f"not JSON: {_shown(value.decode(errors='backslashreplace'))}")
    if not isinstance(message, dict):
        return Fault("", f"not a JSON object: {_shown(message)}")
    for name, wanted in topic.fields.items():
        if name not in message:
            return Fault(name, "missing")
        if reason := _misfit(message[name], wanted):
            return Fault(name, f"{reason}: {_shown(message[name])}")
    return None


def _misfit(value: object, wanted: type[int] | type[str] | re.Pattern[str]) -> str:
    """Why a value is not what is wanted; empty if it is."""
    if wanted is int:
        if not isinstance(value, int) or isinstance(value, bool):
            return "not an integer"
        return "" if -(2**63) <= value < 2**63 else "not an integer of 64 bits"
    if not isinstance(value, str):
        return "not a text"
    is_fit = not isinstance(wanted, re.Pattern) or wanted.fullmatch(value)
    return "" if is_fit else "not of the form that is expected"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"


def run_label(runtime: str, workload: str) -> str:
    """A runtime as people read it, with the workload where it is not the one that goes without
    saying."""
    return runtime if workload == plugins.default_workload() else f"{runtime}, {workload}"


def workload_of(settings: Mapping[str, object]) -> str:
    """The workload of a run, by the settings that it noted; an older one noted none."""
    return str(settings.get("workload", plugins.default_workload()))


def find_workload(name: str) -> Workload:
    """The workload of that name, as in the setting WORKLOAD.

    Raises:
        UsageError: there is none.
    """
    try:
        side = plugins.of_workload(name, "harness")
    except KeyError as error:
        raise UsageError(f"WORKLOAD={name}: {error.args[0]}.") from None
    found: Workload = side.WORKLOAD
    return found
