"""Functions for tracer values in views, shared by several engines."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from racetrack.engines.contract import Seen
from racetrack.workloads.contract import ALL_PARTITIONS, NO_ROW, TracedView

if TYPE_CHECKING:
    import pyarrow


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

    def value(
        self, view: TracedView, partition: int, value: int | str, row: Hashable = None
    ) -> int:
        """Return the partition's tracer value after a row of the view has got a value: the value
        itself or, in a view with `summed_over`, the sum over all rows known so far. `row` is the
        value of that column."""
        number = view.number(value)
        if not view.summed_over:
            return number
        rows = self._rows.setdefault((view.name, partition), {})
        rows[row] = number
        return sum(rows.values())

    def values(
        self, rows: "pyarrow.Table", view: TracedView, keys: Sequence[Any]
    ) -> Iterator[tuple[int, int]]:
        """Yield the partition and its tracer value for each of its rows among changed rows of a
        view, or the highest value of a view without tracer rows. `keys` are those of the
        partitions' tracer rows."""
        if not view.key:
            columns = (view.column, view.summed_over or view.column)
            values = zip(*(rows[name].to_pylist() for name in columns), strict=True)
            yield ALL_PARTITIONS, max(self.value(view, ALL_PARTITIONS, *each) for each in values)
            return
        if not view.summed_over:
            found = enumerate(view.values_in(rows, keys))
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
        lookup = f"LATERAL ({select} GROUP BY {view.key} OFFSET 0) AS found (value)"
        return f"SELECT given.place - 1, found.value FROM {given}, {lookup}"  # noqa: S608
    numbers = " ".join(f"WHEN {text} THEN {number}" for number, text in enumerate(texts))
    select = f"SELECT CASE {view.key} {numbers} END, {value} FROM {view.view}"  # noqa: S608
    return f"{select} WHERE {view.key} IN ({', '.join(texts)}) GROUP BY {view.key}"


def value_in_sql(view: TracedView, value: str) -> str:
    """Return an SQL expression (PostgreSQL's dialect) that converts `value`, an expression for the
    view's column, to a number as in `Seen`."""
    if view.modulus:
        return f"({value}) % {view.modulus}"
    return f"(1000 * extract(epoch FROM {value}))::bigint" if view.is_time else value
