"""View lag: how old a view is by the marks that it holds; what the words mean is in
docs/views.md.

A view's marks are made into curves like those of the pageviews, so that its lag is told and judged
by the very same rules: due is when a mark was due, processed is how many of them the view held.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from racetrack.analysis.age import age, quantiles_ms
from racetrack.analysis.csv_rows import whole_rows
from racetrack.analysis.curves import Curve, Curves
from racetrack.analysis.lag import Floats, when
from racetrack.results.figures import Verdict, VerdictKind, ViewLag
from racetrack.results.folder import read_run
from racetrack.results.run import TracedViewRecord

MARKS_FILE, VIEWS_FILE = "tracer_events.csv", "views.csv"
SHARES = (0.5, 0.9, 0.99, 1.0)
# The stamps of marks are whole milliseconds, and so are those by which they were recorded.
STAMP_MS = 2.0
# Worst first.
ORDER = (
    VerdictKind.FELL_BEHIND,
    VerdictKind.GENERATOR_BOUND,
    VerdictKind.BROKER_BOUND,
    VerdictKind.UNDECIDED,
    VerdictKind.KEPT_UP,
)


@dataclass(frozen=True, eq=False)
class Marks:
    """What was recorded of the marks.

    `at_ms`, `newest` and `due_ms` are of one length: at each time, the number of the newest mark
    (1 for the first), and when that was due; epoch milliseconds. `seen` has, by view and partition,
    what its row said: (at_ms, value), in order.
    """

    at_ms: Floats
    newest: Floats
    due_ms: Floats
    seen: dict[tuple[str, int], list[tuple[int, int]]]


def read(folder: Path) -> Marks | None:
    """The marks of a run folder; None where there were none."""
    rows = [(r["at_ms"], r["newest"], r["due_ms"]) for r in whole_rows(folder / MARKS_FILE)]
    if not rows:
        return None
    table = np.array(rows, dtype=np.float64)
    seen: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for row in whole_rows(folder / VIEWS_FILE):
        told = int(row["at_ms"]), int(row["value"])
        seen[row["view"], int(row["partition"])].append(told)
    return Marks(table[:, 0], table[:, 1], table[:, 2], dict(seen))


def told(folder: Path, partitions: Sequence[int]) -> list[tuple[TracedViewRecord, Curves]]:
    """The curves of each traced view of the run that was seen; none without marks."""
    if not (marks := read(folder)):
        return []
    traced = read_run(folder).traced_views
    found = [(view, curves_of(view, marks, partitions)) for view in traced]
    return [(view, curves) for view, curves in found if any(len(c.at_ms) for c in curves.processed)]


def curves_of(view: TracedViewRecord, marks: Marks, partitions: Sequence[int]) -> Curves:
    """The view's marks as curves: counts are of those that show in it, by partition.

    Generator and broker have no part in them, so the lag is all the engine's: what they add to it
    stands in the verdict on the count.
    """
    due = tuple(
        due_curve(view, marks, number, len(partitions)) for number in range(len(partitions))
    )
    held = tuple(
        _held(marks.seen.get((view.name, partition), []), curve, view.is_time)
        for partition, curve in zip(partitions, due, strict=True)
    )
    return Curves(tuple(partitions), due, due, due, held)


def as_pageviews(view: Curves, count: Curves) -> Curves:
    """The curves of the count with a view's in place of `processed`: at each update the view holds
    those pageviews of a partition that were due before the oldest mark that it lacks."""
    held = []
    for marks, seen, due in zip(view.due, view.processed, count.due, strict=True):
        oldest_ms = np.minimum(when(marks)(seen.count + 1), seen.at_ms)
        held.append(Curve(seen.at_ms, np.interp(oldest_ms, due.at_ms, due.count)))
    return replace(count, processed=tuple(held))


def number_of(turn: int | None, nth: int, partition: int, partitions: int) -> int:
    """The number (0-based) of the nth mark (0-based) that shows in a view's row of a partition."""
    pair, which = divmod(nth, 2) if turn is None else (nth, turn)
    return 2 * (pair * partitions + partition) + which


def due_curve(view: TracedViewRecord, marks: Marks, partition: int, partitions: int) -> Curve:
    """Such that number k of them is due exactly at its time (`lag.when` adds a half), and that it
    is known until the last row that no further one was."""
    every = np.arange(int(marks.newest[-1]))
    mine = every // 2 % partitions == partition
    if view.parity is not None:
        mine &= every % 2 == view.parity
    numbers = every[mine] + 1
    due_ms = _when_due(marks, numbers)
    counts = np.arange(len(numbers)) + 0.5
    end_ms = max(float(marks.at_ms[-1]), float(np.max(due_ms, initial=0.0)))
    not_quite = np.nextafter(len(numbers) + 0.5, 0.0)
    return Curve(np.append(due_ms, end_ms), np.append(counts, not_quite))


def _when_due(marks: Marks, numbers: NDArray[np.int64]) -> Floats:
    """Of one rate the numbers grow evenly with time, so those between two rows are told exactly;
    and those before the first one too, since the rate was one until then."""
    first, first_ms = marks.newest[0], marks.due_ms[0]
    later = marks.newest > first
    if not later.any():
        return np.where(numbers < first, -np.inf, first_ms)
    row = int(np.argmax(later))
    between_ms = (marks.due_ms[row] - first_ms) / (marks.newest[row] - first)
    before_ms = first_ms - (first - numbers) * between_ms
    known_ms = np.interp(numbers, marks.newest, marks.due_ms)
    return np.where(numbers < first, before_ms, known_ms)


def _held(seen: list[tuple[int, int]], due: Curve, is_time: bool) -> Curve:
    table = np.array(seen, dtype=np.float64).reshape(-1, 2)
    return Curve(table[:, 0], how_many(table[:, 1], due, is_time))


def how_many(values: Floats, due: Curve, is_time: bool) -> Floats:
    """Marks that a row held, by what it said (`racetrack.engines.contract.Seen`)."""
    if not is_time:
        return values
    # The last row of `due` is no mark.
    return np.searchsorted(due.at_ms[:-1], values + STAMP_MS, "right").astype(np.float64)


def view_lag(
    view: TracedViewRecord, told: Curves, verdict: Verdict, start_ms: float, end_ms: float
) -> ViewLag:
    """Return a view's lag in the run's window, with the verdict on it, which may be of another
    window."""
    aged = age(told, start_ms, end_ms)
    at_most = dict(zip(SHARES, quantiles_ms(aged, SHARES), strict=True))
    return ViewLag(
        name=view.name,
        source=view.source,
        tracer_events_per_s=round(verdict.throughput.offered_per_s, 2),
        updates=verdict.updates,
        kind=verdict.kind,
        reason=verdict.reason,
        lag_p50_ms=at_most[0.5],
        lag_p90_ms=at_most[0.9],
        lag_p99_ms=at_most[0.99],
        lag_max_ms=at_most[1.0],
    )


def deciding(count: Verdict, views: Mapping[str, Verdict]) -> str | None:
    """Return the view that decides a run: the worst of those with a worse verdict than the count;
    None if the count does. Where generator or broker was the bottleneck, the count does."""
    if count.kind in (VerdictKind.GENERATOR_BOUND, VerdictKind.BROKER_BOUND):
        return None
    worst = min(views, key=lambda name: ORDER.index(views[name].kind), default=None)
    if worst is None or ORDER.index(views[worst].kind) >= ORDER.index(count.kind):
        return None
    return worst
