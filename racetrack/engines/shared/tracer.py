"""Functions for tracer values in views, shared by several engines."""

from collections.abc import Hashable, Iterable, Iterator, Sequence

from racetrack.engines.contract import Seen
from racetrack.workloads.contract import TracedView


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


def tracer_rows_in_sql(view: TracedView, keys: Sequence[int | str]) -> str:
    """Return an SQL query (PostgreSQL's dialect) of the tracer rows of a view. It has one row for
    each partition with tracer events: the partition, and the value as in `Seen`."""
    texts = [f"'{key}'" if isinstance(key, str) else str(key) for key in keys]
    numbers = " ".join(f"WHEN {text} THEN {number}" for number, text in enumerate(texts))
    value = value_in_sql(view, f"{'sum' if view.summed_over else 'max'}({view.column})")
    select = f"SELECT CASE {view.key} {numbers} END, {value} FROM {view.view}"  # noqa: S608
    return f"{select} WHERE {view.key} IN ({', '.join(texts)}) GROUP BY {view.key}"


def value_in_sql(view: TracedView, value: str) -> str:
    """Return an SQL expression (PostgreSQL's dialect) that converts `value`, an expression for the
    view's column, to a number as in `Seen`."""
    return f"(1000 * extract(epoch FROM {value}))::bigint" if view.is_time else value
