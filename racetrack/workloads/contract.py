"""Contract between the harness and a workload, a folder `racetrack/workloads/<name>/`: its module
`harness` has a `WORKLOAD` with its topics, tables and views.

An engine returns each of `Workload.views` as an Arrow table with at least the columns named there;
other columns and the order of rows are ignored. Types may be the engine's own if they are lossless
(rules: `racetrack/verify/compare.py`): a time may be a timestamp, epoch milliseconds, or ISO 8601
text."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from racetrack import plugins
from racetrack.config import Settings
from racetrack.errors import UsageError

# Debezium's name for MySQL, and the prefix of its topics.
CDC_PREFIX = "mysql"
# Characters of an invalid value that are shown.
SHOWN_CHARACTERS = 60


class ColumnType(Enum):
    """Type of a column, whatever type an engine gives it."""

    INTEGER = "integer"  # compared exactly; a boolean counts as 0 or 1
    TEXT = "text"  # compared exactly
    DECIMAL = "decimal"  # compared exactly: never a binary floating point number
    FLOAT = "float"  # compared to RELATIVE_ERROR
    TIME = "time"  # an instant, compared to the millisecond


INTEGER, TEXT, DECIMAL, FLOAT, TIME = ColumnType


@dataclass(frozen=True)
class TopN:
    """Restricts a view to the first `limit` rows by `by`, descending, nulls last; per value of
    `per`, if set. Any of several equal rows is accepted."""

    limit: int
    by: str
    per: str | None = None


@dataclass(frozen=True)
class View:
    """A view: its columns, and those that identify a row.

    `window` names a column that counts what is in a window that moves with the engine's clock. The
    SQL computes bounds, `<column>_least` and `<column>_most`, since that clock is known only to lie
    between two instants (see `verification.py`).

    `counts` names a column that counts messages of the main topic, each in at most one row: a
    surplus was counted twice, a deficit was lost."""

    name: str
    key: tuple[str, ...]
    columns: Mapping[str, ColumnType]
    top_n: TopN | None = None
    window: str | None = None
    counts: str | None = None


@dataclass(frozen=True)
class SourceTopic:
    """A topic as a source: how its messages become rows of `source.<table>` in DuckDB.

    `kcat_args` make kcat print a line of JSON per message; `insert_sql` inserts the lines of
    `$pipes`. `invalid_if`, if set, is a condition on rows whose message is not an `event`; the
    table then has the columns `partition` and `offset`. `due_field` is the field with the due time
    of a message, epoch milliseconds (the main topic has one); it may be up to `ahead_ms` too late.
    `fields` are the fields required in each JSON message: `int`, `str`, or a pattern for the whole
    text."""

    name: str
    table: str
    kcat_args: tuple[str, ...]
    insert_sql: str
    event: str
    invalid_if: str = ""
    due_field: str = ""
    ahead_ms: int = 0
    fields: Mapping[str, type[int] | type[str] | re.Pattern[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Fault:
    """Reason why a message is invalid; `field` is empty if the whole message is."""

    field: str
    reason: str


@dataclass(frozen=True)
class TracedView:
    """A view whose rows show which tracer events it contains, and so its lag (docs/views.md).

    The row of a partition has the `key` (setting `after`) + 1 + partition. The maximum of its
    `column` is the number of the partition's tracer events in the view; or, with `is_time`, the due
    time of the newest. Tracer event n (0-based) is in partition n // 2 % partitions; `parity`
    selects those that show: 0 the even ones, 1 the odd ones, None both."""

    view: str
    column: str
    key: str
    after: str
    source: str  # of its tracer events: the main topic, or a table by CDC
    parity: int | None = None
    is_time: bool = False

    @property
    def name(self) -> str:
        """Name in files and reports."""
        return f"{self.view}.{self.column}"

    def keys(self, settings: Settings) -> list[int]:
        """Return the key of each partition's row, by partition."""
        last = int(getattr(settings, self.after))
        return [last + 1 + partition for partition in range(settings.pageviews_partitions)]


@dataclass(frozen=True)
class Query:
    """A query of the view reader: all rows of a view; or, with `by`, only those that show tracer
    events, so that the answer has an age (docs/views.md)."""

    view: str
    by: TracedView | None = None

    @property
    def name(self) -> str:
        """Name in files and reports."""
        return f"{self.view} by {self.by.key}" if self.by else self.view


@dataclass(frozen=True)
class Workload:
    """A workload: topics, tables, views and queries."""

    name: str
    # The main topic, whose rate is set and whose messages are counted as progress.
    topic: SourceTopic
    # Other sources of views, besides CDC topics.
    topics: tuple[SourceTopic, ...]
    # Bytes per message of the main topic in the log of Apache Kafka (measured).
    stored_bytes: int
    # MySQL's database; its user has the same name.
    database: str
    # Its tables, each of which is also a view. Debezium takes its snapshot in this order; a large
    # table delays the schemas of those after it.
    tables: tuple[str, ...]
    # The table whose inserts are followed through CDC, if any; and the generator's sources that
    # insert into it.
    watched_table: str | None
    watched_kinds: tuple[str, ...]
    # Optional rates that its generator side implements: settings such as
    # `tracer_events_per_second`.
    rates: tuple[str, ...]
    # Ordered so that each comes after those that its SQL reads.
    views: tuple[View, ...]
    # Views that show tracer events, from which view lag is computed.
    traced_views: tuple[TracedView, ...]
    # Queries of the view reader, in turn.
    queries: tuple[Query, ...]
    # The view that counts the main topic by `partition`, with `total` and `max_received_at`, the
    # due time of the newest message (epoch ms); and the view with one row that totals them.
    progress: str
    summary: str
    # Prefix of its scripts: `scripts/<prefix>.sql`.
    scripts: str
    # Length of its event-time windows, if any; each begins at a multiple of this.
    event_window_ms: int | None
    # Folder with `<view>.sql` for each view: the expected rows, from the DuckDB schemas `source`
    # and `expected`.
    sql: Path
    # DuckDB SQL that creates the topics' tables in the schema `source`, and helper views.
    create: str

    def view(self, name: str) -> View:
        """Return the view with this name."""
        return next(view for view in self.views if view.name == name)

    def table_views(self) -> list[View]:
        """Return the views that are tables of the database."""
        return [self.view(table) for table in self.tables]

    def script(self, ending: str) -> Path:
        """Return the path of the script with this suffix (`.sql`); it may not exist."""
        return plugins.SCRIPTS / f"{self.scripts}{ending}"

    def cdc_topic(self, table: str) -> str:
        """Return the topic of a table's changes."""
        return f"{CDC_PREFIX}.{self.database}.{table}"


def fault_of(value: bytes | None, topic: SourceTopic) -> Fault | None:
    """Return why a message of this topic is invalid, None if it has all required fields."""
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
        if reason := _mismatch(message[name], wanted):
            return Fault(name, f"{reason}: {_shown(message[name])}")
    return None


def _mismatch(value: object, wanted: type[int] | type[str] | re.Pattern[str]) -> str:
    """Return why a value does not match; empty if it does."""
    if wanted is int:
        if not isinstance(value, int) or isinstance(value, bool):
            return "not an integer"
        return "" if -(2**63) <= value < 2**63 else "not an integer of 64 bits"
    if not isinstance(value, str):
        return "not a text"
    is_fit = not isinstance(wanted, re.Pattern) or wanted.fullmatch(value)
    return "" if is_fit else "not in the expected format"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"


def run_label(runtime: str, workload: str) -> str:
    """Return a label for runs: the runtime, and the workload unless it is the default."""
    return runtime if workload == plugins.default_workload() else f"{runtime}, {workload}"


def workload_of(settings: Mapping[str, object]) -> str:
    """Return the workload of a run from its recorded settings."""
    return str(settings.get("workload", plugins.default_workload()))


def find_workload(name: str) -> Workload:
    """Return the workload with this name (setting WORKLOAD).

    Raises:
        UsageError: there is no such workload.
    """
    try:
        side = plugins.of_workload(name, "harness")
    except KeyError as error:
        raise UsageError(f"WORKLOAD={name}: {error.args[0]}.") from None
    found: Workload = side.WORKLOAD
    return found
