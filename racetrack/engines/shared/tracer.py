"""Functions for tracer values in views, shared by several engines."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

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


class Tally:
    """Tracer values of views whose rows arrive one by one, whenever they change."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, int], dict[Hashable, int]] = {}

    def value(self, view: TracedView, partition: int, value: int, row: Hashable = None) -> int:
        """Return the partition's tracer value after a row of the view has got a value: the value
        itself or, in a view with `summed_over`, the sum over all rows known so far. `row` is the
        value of that column."""
        if not view.summed_over:
            return value
        rows = self._rows.setdefault((view.name, partition), {})
        rows[row] = value
        return sum(rows.values())

    def values(
        self, rows: "pyarrow.Table", view: TracedView, keys: Sequence[Any]
    ) -> Iterator[tuple[int, int]]:
        """Yield the partition and its tracer value for each of its rows among changed rows of a
        view. `keys` are those of the partitions' tracer rows."""
        if not view.summed_over:
            found = enumerate(tracer_values(rows, view, keys))
            yield from ((partition, value) for partition, value in found if value != NO_ROW)
            return
        names = view.key, view.column, view.summed_over
        for key, value, row in zip(*(rows[name].to_pylist() for name in names), strict=True):
            partition = keys.index(key)
            yield partition, self.value(view, partition, value, row)


def tracer_rows_in_sql(
    view: TracedView, keys: Sequence[int | str], *, one_key_at_a_time: bool = False
) -> str:
    """Return an SQL query (PostgreSQL's dialect) of the tracer rows of a view. It has one row for
    each partition with tracer events: the partition, and the value as in `Seen`. It reads the
    view for one key after the other if `one_key_at_a_time`."""
    texts = [f"'{key}'" if isinstance(key, str) else str(key) for key in keys]
    value = value_in_sql(view, f"{'sum' if view.summed_over else 'max'}({view.column})")
    if one_key_at_a_time:  # see `racetrack.engines.shared.pgwire.rows_of_keys`
        given = f"unnest(ARRAY[{', '.join(texts)}]) WITH ORDINALITY AS given (key, place)"
        select = f"SELECT {value} FROM {view.view} WHERE {view.key} = given.key"  # noqa: S608
        found = f"LATERAL ({select} GROUP BY {view.key} OFFSET 0) AS found (value)"
        return f"SELECT given.place - 1, found.value FROM {given}, {found}"  # noqa: S608
    numbers = " ".join(f"WHEN {text} THEN {number}" for number, text in enumerate(texts))
    select = f"SELECT CASE {view.key} {numbers} END, {value} FROM {view.view}"  # noqa: S608
    return f"{select} WHERE {view.key} IN ({', '.join(texts)}) GROUP BY {view.key}"


def value_in_sql(view: TracedView, value: str) -> str:
    """Return an SQL expression (PostgreSQL's dialect) that converts `value`, an expression for the
    view's column, to a number as in `Seen`."""
    return f"(1000 * extract(epoch FROM {value}))::bigint" if view.is_time else value


def tracer_values(table: "pyarrow.Table", by: TracedView, keys: Sequence[Any]) -> list[int]:
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
