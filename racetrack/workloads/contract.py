"""Contract between the harness and a workload.

A workload is a folder `racetrack/workloads/<name>/`. Its module `harness` defines `WORKLOAD`, which
describes its topics, tables and views.

Engines return each view of `Workload.views` as an Arrow table with at least the view's columns.
Other columns and the order of rows are ignored. Column types may differ from the view's if no
information is lost: a time may be a timestamp, epoch milliseconds, or ISO 8601 text. The function
`columns` in `racetrack/verify/compare.py` lists the rules."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from racetrack import config, plugins
from racetrack.config import Settings
from racetrack.errors import UsageError

if TYPE_CHECKING:
    import pyarrow

# Prefix of the names of Debezium's topics.
CDC_PREFIX = "mysql"
# Services that bring the tables of a workload to the engines.
TABLE_SERVICES = ("mysql", "registry", "debezium")
# Bytes of a stored record in addition to its value: key, lengths, and offset and time in the batch.
RECORD_BYTES = 15


class ColumnType(Enum):
    """Logical type of a column. Engines may use different physical types for it."""

    INTEGER = "integer"  # compared exactly; a boolean counts as 0 or 1
    TEXT = "text"  # compared exactly
    DECIMAL = "decimal"  # compared exactly; binary floating-point numbers are rejected
    FLOAT = "float"  # compared with the tolerance RELATIVE_ERROR
    TIME = "time"  # an instant, compared in whole milliseconds


INTEGER, TEXT, DECIMAL, FLOAT, TIME = ColumnType


@dataclass(frozen=True)
class TopN:
    """Restriction of a view to the first `limit` rows in descending order of the column `by`, nulls
    last. If `per` is set, the limit applies to each combination of values of these columns. If rows
    are tied for the last place, any of them is accepted."""

    limit: int
    by: str
    per: tuple[str, ...] = ()


@dataclass(frozen=True)
class View:
    """A view: its columns, and its key, the columns that identify a row. If all columns are in the
    key, rows may be equal, and are compared as a multiset (`without_key`).

    `between` names a column with several right values, which the SQL of the view limits by
    `<column>_least` and `<column>_most`.

    `window` names a column that counts events in a window that moves with the engine's clock. The
    harness can only determine two times between which that clock lies (see `verification.py`). So
    the SQL of the view computes a lower and an upper bound of the count, `<column>_least` and
    `<column>_most`.

    `counts` names a column that counts messages of the main topic, where each message belongs to at
    most one row. Then a surplus means messages counted twice, and a deficit means lost messages."""

    name: str
    key: tuple[str, ...]
    columns: Mapping[str, ColumnType]
    top_n: TopN | None = None
    window: str | None = None
    counts: str | None = None
    between: str | None = None

    @property
    def bounded(self) -> str | None:
        """The column whose right values lie between two bounds, if there is one."""
        return self.window or self.between


def without_key(
    name: str,
    columns: Mapping[str, ColumnType],
    top_n: TopN | None = None,
    between: str | None = None,
) -> View:
    """Return a view whose rows are compared as a multiset."""
    key = tuple(column for column in columns if column != between)
    return View(name, key, columns, top_n, between=between)


@dataclass(frozen=True)
class NestedRecord:
    """An object in a message: its name, and its required fields as in `SourceTopic`."""

    name: str
    fields: Mapping[str, type[int] | type[str]]


@dataclass(frozen=True)
class SourceTopic:
    """A topic that is a source of views. Its messages become rows of `source.<table>` in DuckDB.

    - `event`: name of a message, for texts.
    - `usual`: regular expression, of Python and of DuckDB, that matches messages as the generator
      writes them. They are valid without further examination, which saves time.
    - `fields`: required fields of the JSON messages, with their types: `int`, `str`, or a pattern
      that the whole text must match. `fault_of` in `message.py` decides which messages are valid.
    - `kind_field`, `records`: if there are records, each message contains exactly one, chosen by
      the integer in `kind_field`. The table has a column of each record's name, a struct, which is
      null if the message contains another one.
      The table has columns for the fields that views use, and the columns `partition` and `offset`.
      Without fields, the table has one column, which contains the messages that match `usual`; all
      others are ignored.
    - `due_field`: field with the due time of a message, in epoch milliseconds. Only the main topic
      has such a field."""

    name: str
    table: str
    event: str
    usual: str
    fields: Mapping[str, type[int] | type[str] | re.Pattern[str]] = field(default_factory=dict)
    due_field: str = ""
    kind_field: str = ""
    records: tuple[NestedRecord, ...] = ()


NO_ROW = -1  # tracer value of a partition without a row
ALL_PARTITIONS = -1  # partition of a view without tracer rows
# A measurement at saturation has at least so many windows one after the other.
SATURATED_WINDOWS = 12


@dataclass(frozen=True)
class Windows:
    """Event-time windows: their length, and the time between the beginnings of two, of which they
    are multiples. Watermarks are delayed by `delay_ms`."""

    length_ms: int
    every_ms: int
    delay_ms: int = 0

    def shown_until_ms(self, within_ms: int) -> int:
        """Return until when no event is missing if a window is shown: later ones show at the end of
        the next window. `within_ms` is a time less than `every_ms` after the window's beginning."""
        end_ms = within_ms - within_ms % self.every_ms + self.length_ms
        return end_ms + self.every_ms + self.delay_ms - 1


@dataclass(frozen=True)
class TracedView:
    """A view whose lag is measured with tracer events (docs/views.md).

    Each partition has its own tracer rows in the view. In these rows, the column `key` has the
    value of the setting `after`, plus 1, plus the partition's number; or, if `after` is a pattern
    with braces, the text in which 1 plus the partition's number replaces them; or, if `after` is a
    pair, its first number plus the partition's number times its second. The value of the row's
    `column` (its remainder, with a `modulus`) is the number of the partition's tracer events in the
    view or, with `is_time`, the due time of the newest of them. If there are several such rows, the
    largest value counts; with `summed_over`, the column that tells them apart, their sum.

    Tracer event n (0-based) is in partition n // 2 % partitions. `parity` is 0 if the view receives
    only tracer events with even n, 1 for odd n, and None for all.

    If `alone` is true, the view has tracer rows only if no other view is selected.

    Without a `key`, there are no tracer rows: each row shows the progress in all partitions. With
    `windows`, the column is a time in the row's window, and its value the due time until which no
    event is missing. With `counts`, the column counts messages of all partitions; the function
    returns how many of a partition it counts up to a tracer event, given the event's position and
    number, the partition, and the number of partitions."""

    view: str
    column: str
    key: str
    after: str | tuple[int, int]
    # Where the view's tracer events come from: the main topic, or a table (through CDC).
    source: str
    parity: int | None = None
    is_time: bool = False
    summed_over: str = ""
    modulus: int = 0
    alone: bool = False
    windows: Windows | None = None
    counts: Callable[[int, int, int, int], int] | None = None

    @property
    def name(self) -> str:
        """Name in files and reports."""
        return f"{self.view}.{self.column}"

    def keys(self, settings: Settings) -> list[Any]:
        """Return the key of each partition's tracer rows, an integer or a text, in the order of the
        partitions. Without tracer rows, there are none."""
        if not self.key:
            return []
        numbers = range(1, settings.events_partitions + 1)
        if not isinstance(self.after, str):
            first, step = self.after
            return [first + step * (number - 1) for number in numbers]
        if "{" in self.after:
            return [self.after.format(number) for number in numbers]
        last = int(getattr(settings, self.after))
        return [last + number for number in numbers]

    def number(self, value: int | str) -> int:
        """Return the number of tracer events, the due time, or the count, for a value of the
        column. A time in a window may be ISO 8601 text, in UTC."""
        if self.windows:
            return self.windows.shown_until_ms(_epoch_ms(value))
        return int(value) % self.modulus if self.modulus else int(value)

    def delayed(self, delay_ms: int) -> "TracedView":
        """Return the view with this delay of watermarks."""
        if not self.windows:
            return self
        return replace(self, windows=replace(self.windows, delay_ms=delay_ms))

    def values_in(self, rows: "pyarrow.Table", keys: Sequence[Any]) -> list[int]:
        """Return the value of each partition in rows of the view, without sums; NO_ROW if the
        partition has no row. `keys` are those of the partitions' tracer rows."""
        import pyarrow as pa

        values = rows.column(self.column)
        if pa.types.is_timestamp(values.type):
            values = values.cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
        newest = dict.fromkeys(keys, NO_ROW)
        for key, value in zip(rows.column(self.key).to_pylist(), values.to_pylist(), strict=True):
            if value is not None:
                newest[key] = max(newest[key], self.number(int(value)))
        return [newest[key] for key in keys]


def _epoch_ms(value: int | str) -> int:
    if isinstance(value, int):
        return value
    return round(1000 * datetime.fromisoformat(value).replace(tzinfo=UTC).timestamp())


@dataclass(frozen=True)
class Query:
    """A query of the view reader. It reads all rows of a view or, with `by`, only the tracer rows
    of a traced view, from which the age of the answer is computed (docs/views.md)."""

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
    # Main topic. The requested rate is the rate of this topic, and the engine's progress is the
    # number of its messages that the engine has processed.
    topic: SourceTopic
    # Other topics that are sources of views, without CDC topics.
    topics: tuple[SourceTopic, ...]
    # `stored_bytes`: measured bytes that Apache Kafka stores per message of the main topic, at the
    # default message size. `size_setting`: name of the setting for the message size (0: default
    # size); empty if there is none.
    stored_bytes: int
    size_setting: str
    # Name of the MySQL database, and of its user; empty if there are no tables.
    database: str
    # Tables of the database; each is also a view. Debezium takes its snapshot in this order. A
    # large table delays the schemas of the tables after it, so put it last. Without tables, no
    # stack starts MySQL, Debezium or the registry (`needed`).
    tables: tuple[str, ...]
    # Table whose inserts the harness counts in its CDC topic, if any, and the names of the
    # generator's sources that insert into this table.
    watched_table: str | None
    watched_kinds: tuple[str, ...]
    # Optional rates that the workload's generator implements: names of settings such as
    # `tracer_events_per_second`.
    rates: tuple[str, ...]
    # Verified views. A view comes after the views that its SQL reads.
    views: tuple[View, ...]
    # Views whose lag is measured with tracer events.
    traced_views: tuple[TracedView, ...]
    # Queries of the view reader, which it sends one after the other.
    queries: tuple[Query, ...]
    # Name of the view that counts the main topic by `partition`. Its columns `total` and
    # `max_received_at` are the number of messages and the due time of the newest (epoch ms).
    # Empty if there is none (`positions`).
    progress: str
    # Name of the view with one row that summarizes `progress` over all partitions; or empty.
    summary: str
    # Prefix of the names of the workload's scripts: `scripts/<prefix>.sql`.
    scripts: str
    # Topic that every script writes and reads back; None if there is none. Engines that read the
    # same input also share this topic, so they have to write to it in the same format.
    sink: str | None
    # Length of the workload's event-time windows, if it has any. Each window begins at a multiple
    # of this length.
    event_window_ms: int | None
    # Folder with a file `<view>.sql` for each view, which computes the expected rows from the
    # DuckDB schemas `source` and `expected`.
    sql: Path
    # DuckDB SQL that creates the tables for the topics in the schema `source`, and helper views.
    create: str
    # Setting with the names of the views, separated by commas, that a run has of those in
    # `selectable`; every run has the others. Runs with different selections are never compared.
    # `scripts/<view>.*`, next to the workload's script, has the program of a selectable view.
    selected_by: str = ""
    selectable: tuple[str, ...] = ()
    # Settings that the SQL reads, as variables.
    variables: tuple[str, ...] = ()
    # Setting for the delay of watermarks in milliseconds, beyond events of the same millisecond.
    watermark_delay: str = ""
    # Topic with the position of each tracer event, written by the generator. Then engines have no
    # views `progress` and `summary`: the traced views show their progress, so there must be some.
    positions: str = ""

    def stored_bytes_in(self, settings: Settings) -> int:
        """Return the bytes per message of the main topic in the broker's log."""
        size = getattr(settings, self.size_setting) if self.size_setting else 0
        return size + RECORD_BYTES if size else self.stored_bytes

    def needed(self, services: Iterable[str]) -> tuple[str, ...]:
        """Return those of `services` that a stack with this workload starts: without tables, none
        that brings tables to the engines."""
        return tuple(name for name in services if self.tables or name not in TABLE_SERVICES)

    def selected(self, settings: Settings) -> tuple[str, ...]:
        """Return the names of the selected views, if there is a selection."""
        return tuple(getattr(settings, self.selected_by).split(",")) if self.selected_by else ()

    def narrowed(self, settings: Settings) -> "Workload":
        """Return the workload with the selected views only, and with the delay of watermarks."""
        selected = self.selected(settings)
        left_out = {*self.selectable} - {*selected}
        delay_ms = getattr(settings, self.watermark_delay) if self.watermark_delay else 0
        return replace(
            self,
            views=tuple(view for view in self.views if view.name not in left_out),
            traced_views=tuple(
                traced.delayed(delay_ms)
                for traced in self.traced_views
                if traced.view not in left_out and not (traced.alone and len(selected) > 1)
            ),
            queries=tuple(query for query in self.queries if query.view not in left_out),
        )

    @property
    def with_tracer_rows(self) -> tuple[TracedView, ...]:
        """The traced views with tracer rows. The lag of the others is that of the progress."""
        return tuple(traced for traced in self.traced_views if traced.key)

    @property
    def windows(self) -> list[Windows]:
        """The windows that traced views show."""
        return [traced.windows for traced in self.traced_views if traced.windows]

    @property
    def results_every_s(self) -> float:
        """Longest time between two results of a traced view: of windows; otherwise 0, since
        each event shows soon."""
        return max((windows.every_ms for windows in self.windows), default=0) / 1000

    @property
    def least_saturation_s(self) -> float:
        """Least duration of a measurement at saturation, in seconds; 0 for any."""
        longest_ms = max((windows.length_ms for windows in self.windows), default=0)
        return SATURATED_WINDOWS * longest_ms / 1000

    def view(self, name: str) -> View:
        """Return the view with this name."""
        return next(view for view in self.views if view.name == name)

    def table_views(self) -> list[View]:
        """Return the views that are tables of the database."""
        return [self.view(table) for table in self.tables]

    def script(self, ending: str) -> Path:
        """Return the path of the script with this suffix, such as `.sql`. It may not exist."""
        return plugins.SCRIPTS / f"{self.scripts}{ending}"

    def scripts_of_views(self, ending: str, settings: Settings) -> dict[str, Path]:
        """Return selected view → the path of its script with this suffix, which may not exist."""
        folder = self.script(ending).parent
        return {name: folder / f"{name}{ending}" for name in self.selected(settings)}

    def without_script(self, ending: str, settings: Settings) -> list[str]:
        """Return the selected views for which there is no script with this suffix."""
        scripts = self.scripts_of_views(ending, settings)
        return [name for name, path in scripts.items() if not path.exists()]

    def cdc_topic(self, table: str) -> str:
        """Return the name of the topic with a table's change events."""
        return f"{CDC_PREFIX}.{self.database}.{table}"

    def with_scripts(self, ending: str) -> tuple[str, ...]:
        """Return the selectable views that have a script with this suffix."""
        folder = self.script(ending).parent
        return tuple(name for name in self.selectable if (folder / f"{name}{ending}").exists())


def run_label(runtime: str, work: str) -> str:
    """Return a label for runs: the runtime, and their work (`work_of`) if it is not the default
    workload."""
    return runtime if work == plugins.default_workload() else f"{runtime}, {work}"


def workload_of(settings: Mapping[str, object]) -> str:
    """Return the workload of a run from its recorded settings."""
    return str(settings.get("workload", plugins.default_workload()))


def work_of(settings: Mapping[str, object]) -> str:
    """Return what runs must have in common to be compared, from recorded settings: the workload,
    with its selected views if it has a selection."""
    name = workload_of(settings)
    by = find_workload(name).selected_by if name in plugins.workload_names() else ""
    return f"{name} {settings[by]}" if by in settings else name


def workload_in(settings: Settings) -> Workload:
    """Return the workload of these settings, with the selected views only.

    Raises:
        UsageError: there is no such workload.
    """
    return find_workload(settings.workload).narrowed(settings)


def overrides(workload: str | None, queries: str | None) -> dict[str, str]:
    """Return the settings that the options `--workload` and `--queries` override.

    Raises:
        UsageError: the workload has no queries to choose from.
    """
    settings = {"WORKLOAD": workload} if workload else {}
    if queries is None:
        return settings
    name = workload or config.load().workload
    if not (setting := find_workload(name).selected_by):
        raise UsageError(f"--queries has no effect with the workload {name}. Omit it.")
    return {**settings, setting.upper(): queries}


def find_workload(name: str) -> Workload:
    """Return the workload with this name (setting WORKLOAD).

    Raises:
        UsageError: there is no such workload.
    """
    try:
        side = plugins.of_workload(name, "harness")
    except KeyError as error:
        raise UsageError(f"WORKLOAD={name}: {error.args[0]}.") from None
    workload_here: Workload = side.WORKLOAD
    return workload_here
