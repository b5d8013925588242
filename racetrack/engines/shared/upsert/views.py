"""Views that are topics, as Arrow tables: read once, or kept by a reader. The value of a message is
a row in JSON, without blanks, the view's first column first."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from racetrack.config import Settings
from racetrack.engines.contract import Access, NoSuchView, Reader
from racetrack.engines.shared.upsert import topics
from racetrack.engines.shared.upsert.tables import Tables
from racetrack.workloads.contract import ColumnType, find_workload

if TYPE_CHECKING:
    import pyarrow

Columns = Mapping[str, ColumnType]
ColumnsOf = Callable[[Settings, str], Columns]
TopicOf = Callable[[str], str]


def table(of: Columns, values: Iterable[bytes]) -> "pyarrow.Table":
    """Messages' values as rows."""
    import pyarrow as pa

    rows = [_row(value) for value in values]
    return pa.table({name: _array([row[name] for row in rows], of[name]) for name in of})


@dataclass(frozen=True)
class TopicReader:
    """See `racetrack.engines.contract.Reader`."""

    tables: Tables
    columns: Mapping[str, Columns]  # by view
    topic_of: TopicOf

    def rows(self, view: str, key: str, among: Sequence[int]) -> "pyarrow.Table":
        """From the rows that it has kept. The key is a view's first column."""
        if view not in self.columns:
            raise NoSuchView(f"There is no topic {self.topic_of(view)}.")
        return table(self.columns[view], self.tables.rows(self.topic_of(view), key, among))


@contextmanager
def reader(access: Access, columns_of: ColumnsOf, topic_of: TopicOf) -> Iterator[Reader]:
    """One that keeps the rows of all views that are asked for, if they are there."""
    there = topics.names(access.endpoints.kafka)
    asked = {query.view for query in find_workload(access.settings.workload).queries}
    views = sorted(view for view in asked if topic_of(view) in there)
    of = {view: columns_of(access.settings, view) for view in views}
    with Tables(access.endpoints.kafka, [topic_of(view) for view in views]) as tables:
        yield TopicReader(tables, of, topic_of)


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
    return pa.array(values)  # a time: text or epoch milliseconds, as it came
