"""Functions for tracer values in views, shared by several engines."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from racetrack.engines.contract import Seen
from racetrack.workloads.contract import TracedView

if TYPE_CHECKING:
    import pyarrow

NO_ROW = -1  # tracer value of a partition without a row


def only_more(values: Iterable[Seen]) -> Iterator[Seen]:
    """Yield only values that exceed all earlier values of the same row. Engines may report an
    unchanged row again, for example because its position in a top-n view has changed."""
    most: dict[tuple[str, int], int] = {}
    for seen in values:
        if seen.value > most.get((seen.view, seen.partition), -1):
            most[seen.view, seen.partition] = seen.value
            yield seen


def value_in_sql(view: TracedView, value: str) -> str:
    """Return an SQL expression (PostgreSQL's dialect) that converts `value`, an expression for the
    view's column, to a number as in `Seen`."""
    return f"(1000 * extract(epoch FROM {value}))::bigint" if view.is_time else value


def tracer_values(table: "pyarrow.Table", by: TracedView, keys: Sequence[int]) -> list[int]:
    """Return the tracer value (see `engines.contract.Seen`) of each partition in rows of a view.
    `keys` are the keys reserved for tracer rows, one for each partition. The value is NO_ROW if
    there is no row with the key."""
    import pyarrow as pa

    values = table.column(by.column)
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
    found = dict.fromkeys(keys, NO_ROW)
    for key, value in zip(table.column(by.key).to_pylist(), values.to_pylist(), strict=True):
        if value is not None:
            found[key] = max(found[key], int(value))
    return [found[key] for key in keys]
