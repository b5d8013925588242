"""From curves to processing lag: pure functions, no I/O. What the words mean is in docs/verdict.md.

Processing lag is the lag right after an update of the engine: what its work takes, without the wait
for the next update. Lag itself, at every instant, is in `age.py`.

The n-th message of a partition is taken for the n-th that was due: the generator sees to it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from racetrack.analysis.curves import NAMES, SAMPLED, Curve, Curves
from racetrack.analysis.silence import LONG_MS, rhythm_ms, update_steps, update_times_ms
from racetrack.results.figures import Throughput

Floats = NDArray[np.float64]

# Going back by less is two writers of one log out of order, not a clock that was set. It moves the
# slope over 30 s by at most 0.1 % of real time (1.5 x step / window), a tenth of the threshold.
CLOCK_STEP_MS = 20.0
# Silent is who says nothing for two of its usual gaps; but 2 s is normal for a 1 s cycle with a
# hiccup. Fewer than 3 updates in a window have no usual gap: then those before it say.
SILENT_GAPS = 2.0
SILENT_MIN_MS, SILENT_MAX_MS = 2_000.0, LONG_MS
FEW_UPDATES = 3
SILENT_GRID_MS = 1_000.0
# Engines count in cycles of about a second: a shorter bin would see the cycle, not the lag. With
# more than 60 of them only the work grows.
BIN_MS, MAX_BINS = 1_000.0, 60


@dataclass(frozen=True)
class ClockStep:
    """A clock that was set back: a curve's rows went from `from_ms` to the earlier `to_ms`."""

    curve: str
    partition: int
    from_ms: float
    to_ms: float


@dataclass(frozen=True, eq=False)
class LagSeries:
    """Lag over time: arrays of one length, times in epoch milliseconds, the rest in milliseconds.

    `lag_ms` (processing lag) right after each update = `generator_ms + broker_ms + engine_ms`, all
    of the partition that decides. `stale_ms` is the lag just before the update. `silent` marks
    points that no update made. A lag is infinite where the oldest uncounted pageview was due before
    the recording began. `early_ms` is how long before it was due a pageview was counted: above 0
    the clocks, or the origins of the counts, disagree. The series covers `start_ms` to `end_ms`;
    where that is empty, there is nothing to judge.
    """

    start_ms: float
    end_ms: float
    at_ms: Floats
    lag_ms: Floats
    stale_ms: Floats
    generator_ms: Floats
    broker_ms: Floats
    engine_ms: Floats
    partition: NDArray[np.int64]
    silent: NDArray[np.bool_]
    early_ms: float


@dataclass(frozen=True, eq=False)
class Trusted(Curves):
    """Curves whose times never decrease, cut where `step` set a clock back."""

    step: ClockStep | None


def trusted(curves: Curves) -> Trusted:
    """The curves up to where a clock was first set back.

    After a step what was due and what was counted are on two clocks, and a lag smaller than the
    step would read as none at all. So nothing after it is used, in any curve.
    """
    if isinstance(curves, Trusted):
        return curves
    steps = [step for name in NAMES for step in _steps(name, curves)]
    first = min(steps, key=lambda step: step.to_ms, default=None)
    until_ms = first.to_ms if first else np.inf

    def cut(curve: Curve, only_grows: bool) -> Curve:
        end = int(np.append(_backwards(curve) + 1, len(curve.at_ms))[0])
        at_ms = np.maximum.accumulate(curve.at_ms[:end])
        end = int(np.searchsorted(at_ms, until_ms, "right"))
        # A pageview taken back (refused after all) makes a dip; what an engine counts may fall.
        count = np.maximum.accumulate(curve.count) if only_grows else curve.count
        return Curve(at_ms[:end], count[:end])

    def cuts(name: str) -> tuple[Curve, ...]:
        return tuple(cut(curve, name in SAMPLED) for curve in getattr(curves, name))

    due, handed_over, published, processed = map(cuts, NAMES)
    return Trusted(curves.partitions, due, handed_over, published, processed, first)


def _backwards(curve: Curve) -> NDArray[np.intp]:
    """The rows after which time goes back."""
    return np.flatnonzero(curve.at_ms[1:] - curve.at_ms[:-1] < -CLOCK_STEP_MS)


def _steps(name: str, curves: Curves) -> list[ClockStep]:
    found = []
    for partition, curve in zip(curves.partitions, getattr(curves, name), strict=True):
        for row in _backwards(curve):
            from_ms, to_ms = curve.at_ms[row : row + 2]
            found.append(ClockStep(name, partition, float(from_ms), float(to_ms)))
    return found


def recorded_until_ms(curves: Curves) -> float:
    """Up to when all sampled curves of all partitions are known; -inf if one has no row."""
    sampled = (curve for name in SAMPLED for curve in getattr(curves, name))
    return float(min(c.at_ms[-1] if len(c.at_ms) else -np.inf for c in sampled))


def lag_series(curves: Curves, start_ms: float, end_ms: float) -> LagSeries:
    """The lag after every update of the engine in the window, and every second while it is silent.

    What one update brought for several partitions is one point (`silence.update_steps`).

    The window ends early where the recording does, or where a clock was set back (`trusted`).
    """
    curves = trusted(curves)
    end_ms = max(start_ms, min(end_ms, recorded_until_ms(curves)))
    begun_ms, at_ms, silent = _points(curves, start_ms, end_ms)
    ages = np.empty((len(curves.partitions), len(at_ms)))
    counts, stale = np.empty_like(ages), np.empty_like(ages)
    early_ms = 0.0
    for row, (due, processed) in enumerate(zip(curves.due, curves.processed, strict=True)):
        due_at = when(due)
        counts[row] = counted(processed, at_ms, "right")
        ages[row] = np.maximum(at_ms - due_at(counts[row] + 1), 0)
        before = counted(processed, begun_ms, "left")
        stale[row] = np.maximum(begun_ms - due_at(before + 1), 0)
        early_ms = max(early_ms, _early(due, counts[row], at_ms))
    # A silent point is no update, and before it is as after it.
    deciding = np.argmax(ages, axis=0) if len(at_ms) else np.empty(0, dtype=np.int64)
    lag_ms = ages[deciding, np.arange(len(at_ms))]
    next_one = counts[deciding, np.arange(len(at_ms))] + 1
    generator_ms, broker_ms = _parts(curves, deciding, next_one, at_ms, lag_ms)
    return LagSeries(
        start_ms=start_ms,
        end_ms=end_ms,
        at_ms=at_ms,
        lag_ms=lag_ms,
        stale_ms=stale.max(axis=0, initial=0.0),
        generator_ms=generator_ms,
        broker_ms=broker_ms,
        engine_ms=np.where(np.isfinite(lag_ms), lag_ms - generator_ms - broker_ms, 0.0),
        partition=np.array(curves.partitions, dtype=np.int64)[deciding],
        silent=silent,
        early_ms=early_ms,
    )


def binned(series: LagSeries, values_ms: Floats, most: int = MAX_BINS) -> tuple[Floats, Floats]:
    """Means over equal bins of a series that is not empty in time: (ms since its start, values).

    Bins without a point are left out.
    """
    span_ms = series.end_ms - series.start_ms
    count = max(1, min(most, int(span_ms // BIN_MS)))
    since_ms = series.at_ms - series.start_ms
    where = np.minimum((since_ms * count / span_ms).astype(np.intp), count - 1)
    sizes = np.bincount(where, minlength=count)
    there = sizes > 0
    times_ms = np.bincount(where, since_ms, count)[there] / sizes[there]
    return times_ms, np.bincount(where, values_ms, count)[there] / sizes[there]


def quantile_ms(series: LagSeries, values_ms: Floats, q: float) -> float:
    """The q-quantile over time: each point weighs as long as the time since the one before."""
    weights = np.diff(series.at_ms, prepend=series.start_ms)
    order = np.argsort(values_ms)
    reached = np.cumsum(weights[order])
    found = int(np.searchsorted(reached, q * reached[-1]))
    return float(values_ms[order][min(found, len(order) - 1)])


def throughput(curves: Curves, start_ms: float, end_ms: float) -> Throughput:
    """Rates over the window, from each curve's count at both ends, linear between its rows."""
    curves = trusted(curves)
    end_ms = min(end_ms, recorded_until_ms(curves))
    ends = np.array([start_ms, end_ms])

    def per_s(parts: tuple[Curve, ...]) -> float:
        counts = [np.interp(ends, c.at_ms, c.count) for c in parts if len(c.at_ms)]
        grown = sum(float(count[1] - count[0]) for count in counts)
        return grown / (end_ms - start_ms) * 1000 if end_ms > start_ms else 0.0

    told = update_times_ms(curves)
    silent = not np.any((told >= start_ms) & (told <= end_ms))
    return Throughput(
        offered_per_s=per_s(curves.due),
        handed_over_per_s=per_s(curves.handed_over),
        published_per_s=per_s(curves.published),
        processed_per_s=None if silent else per_s(curves.processed),
    )


def _points(
    curves: Curves, start_ms: float, end_ms: float
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """When each update began and ended, and which of these are only a look at one who is silent."""
    begun, every = update_steps(curves)
    within = (every >= start_ms) & (every <= end_ms)
    begun, updates = begun[within], every[within]
    if end_ms <= start_ms:
        return begun, updates, np.zeros(len(updates), dtype=np.bool_)
    if len(updates) < FEW_UPDATES:
        usual_ms = rhythm_ms(every, start_ms) or 0.0
    else:
        usual_ms = float(np.median(np.diff(updates)))
    limit_ms = float(np.clip(SILENT_GAPS * usual_ms, SILENT_MIN_MS, SILENT_MAX_MS))
    edges = np.concatenate([[start_ms], updates, [end_ms]])
    gaps = [(a, b) for a, b in pairwise(edges) if b - a > limit_ms]
    looks = [np.arange(a + SILENT_GRID_MS, b, SILENT_GRID_MS) for a, b in gaps]
    if gaps and gaps[-1][1] == end_ms:
        looks.append(np.array([end_ms]))
    grid = np.setdiff1d(np.concatenate(looks), updates) if looks else np.empty(0)
    at_ms = np.concatenate([updates, grid])
    order = np.argsort(at_ms)
    silent = (np.arange(len(at_ms)) >= len(updates))[order]
    return np.concatenate([begun, grid])[order], at_ms[order], silent


def when(curve: Curve) -> Callable[[Floats], Floats]:
    """When number n (1-based) came: linear between samples; -inf before the record, inf after.

    A sample of count k means "k to k + 1": half a pageview is added, so that the error (up to half
    a sampling interval at a few pageviews per second) has no sign.
    """

    def at(number: Floats) -> Floats:
        if not len(curve.at_ms):
            return np.full(number.shape, np.inf)
        known = np.interp(number, curve.count + 0.5, curve.at_ms, left=-np.inf, right=np.inf)
        return np.asarray(known, dtype=np.float64)

    return at


def counted(processed: Curve, at_ms: Floats, side: str) -> Floats:
    """How many the engine had counted at these times: the last row's count, 0 before the first."""
    rows = np.searchsorted(processed.at_ms, at_ms, "left" if side == "left" else "right")
    return np.concatenate([[0.0], processed.count])[rows]


def _early(due: Curve, counts: Floats, at_ms: Floats) -> float:
    """The longest time by which a count surely came before it was due.

    Surely: by the last sample that shows fewer due, so that sampling can't feign it.
    """
    before = np.searchsorted(due.count, counts, "left") - 1
    known = (before >= 0) & (counts > 0)
    return float(np.max((due.at_ms[before] - at_ms)[known], initial=0.0))


def _parts(
    curves: Curves, deciding: NDArray[np.int64], number: Floats, at_ms: Floats, lag_ms: Floats
) -> tuple[Floats, Floats]:
    """How much of each lag went by before the generator, then the broker, had done its part.

    Samples lie between the truths they bracket, so the times are forced into their order.
    """
    generator_ms, broker_ms = np.zeros_like(lag_ms), np.zeros_like(lag_ms)
    for row in np.unique(deciding):
        mine = (deciding == row) & np.isfinite(lag_ms)
        due_ms = at_ms[mine] - lag_ms[mine]
        handed_ms = np.clip(when(curves.handed_over[row])(number[mine]), due_ms, at_ms[mine])
        there_ms = np.clip(when(curves.published[row])(number[mine]), handed_ms, at_ms[mine])
        generator_ms[mine], broker_ms[mine] = handed_ms - due_ms, there_ms - handed_ms
    return generator_ms, broker_ms
