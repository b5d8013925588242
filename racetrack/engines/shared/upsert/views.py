"""Reads views in upsert topics as Arrow tables. The value of a message is a row as JSON without
blanks, in which the view's first column comes first."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from racetrack.engines.shared.upsert.tables import Tables
from racetrack.workloads.contract import ColumnType

if TYPE_CHECKING:
    import pyarrow

Columns = Mapping[str, ColumnType]
ReadOnce = Callable[[str], "pyarrow.Table"]


@dataclass(frozen=True)
class KeptView:
    """Topic and columns of a view whose current rows a client keeps in memory."""

    topic: str
    columns: Columns


def table(of: Columns, values: Iterable[bytes]) -> "pyarrow.Table":
    """Convert the values of messages to an Arrow table."""
    import pyarrow as pa

    rows = [_row(value) for value in values]
    return pa.table({name: _array([row[name] for row in rows], of[name]) for name in of})


@dataclass(frozen=True)
class TopicReader:
    """See `racetrack.engines.contract.Reader`. The current rows of some views are kept in memory;
    other views are read from their topics when they are requested."""

    kept: Mapping[str, KeptView]
    tables: Tables
    read_once: ReadOnce

    def rows(self, view: str, key: str, among: Sequence[int]) -> "pyarrow.Table":
        """Return the current rows. If `key` is given, it must be the view's first column."""
        if kept := self.kept.get(view):
            return table(kept.columns, self.tables.rows(kept.topic, key, among))
        found = self.read_once(view)
        if not key:
            return found
        import pyarrow as pa
        import pyarrow.compute as pc

        return found.filter(pc.is_in(found[key], pa.array(among, pa.int64())))


@contextmanager
def open_reader(
    kafka: str, kept: Mapping[str, KeptView], read_once: ReadOnce
) -> Iterator[TopicReader]:
    """Open a client that keeps the current rows of the views `kept` while it is open.

    Raises:
        RacetrackError: Kafka does not send the rows.
    """
    tables = Tables(kafka, [view.topic for view in kept.values()])
    with ExitStack() as closing:
        if kept:
            closing.enter_context(tables)
        yield TopicReader(kept, tables, read_once)


def _row(value: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(value, parse_float=Decimal)
    return found


def _array(values: list[Any], kind: ColumnType) -> "pyarrow.Array":
    import pyarrow as pa

    if kind is ColumnType.DECIMAL:
        exact = [None if value is None else Decimal(value) for value in values]
        return pa.array(exact, pa.decimal128(38, 2))
    if kind is ColumnType.FLOAT:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    if kind is ColumnType.TEXT:
        return pa.array(values, pa.string())
    if kind is ColumnType.INTEGER:
        return pa.array(values, pa.int64())
    return pa.array(values)  # a time, as text or epoch milliseconds
