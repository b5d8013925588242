"""Functions for tracer values in views, shared by several engines."""

from collections.abc import Iterable, Iterator

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


def value_in_sql(view: TracedView, value: str) -> str:
    """Return an SQL expression (PostgreSQL's dialect) that converts `value`, an expression for the
    view's column, to a number as in `Seen`."""
    return f"(1000 * extract(epoch FROM {value}))::bigint" if view.is_time else value
