"""Tracer values of views, for several engines."""

from collections.abc import Iterable, Iterator

from racetrack.engines.contract import Seen
from racetrack.workloads.contract import TracedView


def only_more(told: Iterable[Seen]) -> Iterator[Seen]:
    """Without what is no more than was told of the same rows before: they are read once more, or
    are among the first few of a view and moved."""
    most: dict[tuple[str, int], int] = {}
    for seen in told:
        if seen.value > most.get((seen.view, seen.partition), -1):
            most[seen.view, seen.partition] = seen.value
            yield seen


def value_in_sql(view: TracedView, value: str) -> str:
    """Return a value of its column, as `Seen` holds it, in PostgreSQL's SQL."""
    return f"(1000 * extract(epoch FROM {value}))::bigint" if view.is_time else value
