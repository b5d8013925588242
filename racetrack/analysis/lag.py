"""Lag of an engine: the age of the oldest event that is due but not counted. docs/verdict.md
defines the terms.

`age` returns the lag at every instant. `lag_series` returns the processing lag, which is the lag
immediately after each update. `littles_law` checks the lag against the number of waiting events.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racetrack.analysis.curves import (
    LONG_GAP_MS,
    STEP_MS,
    Curve,
    Curves,
    Floats,
    counted,
    recorded_until_ms,
    times_of,
    trusted,
    update_interval_ms,
    update_steps,
)
from racetrack.analysis.raw import Arrival, Delay
from racetrack.metrics import LAG_MAX
from racetrack.results.figures import LagAtMost, LittlesLaw, Quantiles, WindowWrites

# An engine is silent if it makes no update for two typical update intervals, and for at least 2 s,
# because an update of a 1 s cycle may be late. If a window has fewer than 3 updates, the typical
# interval is taken from the time before the window.
SILENT_GAPS = 2.0
SILENT_MIN_MS, SILENT_MAX_MS = 2_000.0, LONG_GAP_MS
FEW_UPDATES = 3
SILENT_GRID_MS = 1_000.0
# Engines update about once a second, so shorter bins would show the update cycle instead of the
# trend. More than 60 bins cost time but add no precision.
BIN_MS, MAX_BINS = 1_000.0, 60
# Shares of time in the lag distribution, denser at the rare high lags.
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 1.0)
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
ROUNDING_MS = 1e-6
# Relative tolerance. An engine that is seconds behind updates its views one after the other, so
# their counts differ; the largest difference measured was 0.6 %.
LITTLES_LAW_TOLERANCE = 0.01
# Largest difference in time between the two records that `littles_law` compares: times are rounded
# to milliseconds, and the rows of one update can be STEP_MS apart.
STAMPS_WITHIN_MS = STEP_MS + 1.0
HALF = 0.5


@dataclass(frozen=True, eq=False)
class LagSeries:
    """Lag from `start_ms` to `end_ms`, a window that may be empty. Arrays have equal length;
    `at_ms` is in epoch milliseconds, everything else in milliseconds.

    `lag_ms` is the processing lag, right after each update, in the partition with the largest lag;
    it is the sum of `generator_ms`, `broker_ms` and `engine_ms`. It is infinite if the oldest
    uncounted event was due before the recording began. `stale_ms` is the lag just before the
    update. `silent` is true for points inside a gap without updates. `early_ms` is the longest time
    by which an event was counted before it was due; if it is above 0, clocks disagree, or the
    counts do not begin at the same event.
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


def lag_series(curves: Curves, start_ms: float, end_ms: float) -> LagSeries:
    """Return the lag in the window after every update of the engine, and once a second while the
    engine is silent.

    An update of several partitions is one point (`update_steps`). The window ends early if the
    recording ends or a clock was set back (`trusted`).
    """
    curves = trusted(curves)
    end_ms = max(start_ms, min(end_ms, recorded_until_ms(curves)))
    began_ms, at_ms, silent = _points(curves, start_ms, end_ms)
    ages = np.empty((len(curves.partitions), len(at_ms)))
    counts, stale = np.empty_like(ages), np.empty_like(ages)
    early_ms = 0.0
    for row, (due, processed) in enumerate(zip(curves.due, curves.processed, strict=True)):
        counts[row] = counted(processed, at_ms, "right")
        ages[row] = np.maximum(at_ms - times_of(due, counts[row] + 1), 0)
        before = counted(processed, began_ms, "left")
        stale[row] = np.maximum(began_ms - times_of(due, before + 1), 0)
        early_ms = max(early_ms, _early(due, counts[row], at_ms))
    deciding = np.argmax(ages, axis=0) if len(at_ms) else np.empty(0, dtype=np.int64)
    lag_ms = ages[deciding, np.arange(len(at_ms))]
    next_number = counts[deciding, np.arange(len(at_ms))] + 1
    generator_ms, broker_ms = _parts(curves, deciding, next_number, at_ms, lag_ms)
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
    """Average the values in equal bins over the window of `series`, which must not be empty; `most`
    is the largest number of bins. Return times (milliseconds since the window's start) and means.
    Empty bins are left out.
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
    """Return the q-quantile of the values, each weighted by the time since the previous point."""
    weights = np.diff(series.at_ms, prepend=series.start_ms)
    order = np.argsort(values_ms)
    reached = np.cumsum(weights[order])
    place = int(np.searchsorted(reached, q * reached[-1]))
    return float(values_ms[order][min(place, len(order) - 1)])


def _points(
    curves: Curves, start_ms: float, end_ms: float
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return the points of the series: when each update began, when it was complete, and whether
    the point is inside a silent gap."""
    began, every = update_steps(curves)
    within = (every >= start_ms) & (every <= end_ms)
    began, updates = began[within], every[within]
    if end_ms <= start_ms:
        return began, updates, np.zeros(len(updates), dtype=np.bool_)
    if len(updates) < FEW_UPDATES:
        interval_ms = update_interval_ms(every, start_ms) or 0.0
    else:
        interval_ms = float(np.median(np.diff(updates)))
    limit_ms = float(np.clip(SILENT_GAPS * interval_ms, SILENT_MIN_MS, SILENT_MAX_MS))
    edges = np.concatenate([[start_ms], updates, [end_ms]])
    gaps = [(a, b) for a, b in pairwise(edges) if b - a > limit_ms]
    points = [np.arange(a + SILENT_GRID_MS, b, SILENT_GRID_MS) for a, b in gaps]
    if gaps and gaps[-1][1] == end_ms:
        points.append(np.array([end_ms]))
    grid = np.setdiff1d(np.concatenate(points), updates) if points else np.empty(0)
    at_ms = np.concatenate([updates, grid])
    order = np.argsort(at_ms)
    silent = (np.arange(len(at_ms)) >= len(updates))[order]
    return np.concatenate([began, grid])[order], at_ms[order], silent


def _early(due: Curve, counts: Floats, at_ms: Floats) -> float:
    """Return the longest time, in milliseconds, by which an event was counted before it was due.
    An event became due between two samples; the earlier one is used, so the true time may be
    longer."""
    before = np.searchsorted(due.count, counts, "left") - 1
    known = (before >= 0) & (counts > 0)
    return float(np.max((due.at_ms[before] - at_ms)[known], initial=0.0))


def _parts(
    curves: Curves, deciding: NDArray[np.int64], number: Floats, at_ms: Floats, lag_ms: Floats
) -> tuple[Floats, Floats]:
    """Return the parts of each lag, in milliseconds, that generator and broker caused.

    Sampled times have errors, so they are clipped to preserve the order: due, handed over,
    published, counted.
    """
    generator_ms, broker_ms = np.zeros_like(lag_ms), np.zeros_like(lag_ms)
    for row in np.unique(deciding):
        mine = (deciding == row) & np.isfinite(lag_ms)
        due_ms = at_ms[mine] - lag_ms[mine]
        handed_ms = np.clip(times_of(curves.handed_over[row], number[mine]), due_ms, at_ms[mine])
        there_ms = np.clip(times_of(curves.published[row], number[mine]), handed_ms, at_ms[mine])
        generator_ms[mine], broker_ms[mine] = handed_ms - due_ms, there_ms - handed_ms
    return generator_ms, broker_ms


def generator_late_ms(curves: Curves, start_ms: float, end_ms: float) -> float:
    """Return the longest time in the window, in milliseconds, by which an event was handed over
    after it was due. An event is handed over at the latest when a row includes it, so a generator
    that stands still and reports nothing is late too."""
    latest_ms = 0.0
    for due, handed_over in zip(curves.due, curves.handed_over, strict=True):
        at_ms, count = handed_over.at_ms[1:], handed_over.count[:-1]
        within = (at_ms > start_ms) & (at_ms <= end_ms)
        late_ms = at_ms[within] - times_of(due, count[within] + 1)
        latest_ms = max(latest_ms, float(np.max(late_ms[np.isfinite(late_ms)], initial=0.0)))
    return latest_ms


@dataclass(frozen=True, eq=False)
class Age:
    """Lag at every instant, as consecutive stretches between updates; arrays of equal length.

    During a stretch, from `from_ms` to `until_ms` (epoch milliseconds), the oldest uncounted
    event is the one that was due at `oldest_ms`: -inf if that was before the recording began,
    inf if all events due in the recording were counted. The age rises by 1 ms per millisecond
    within a stretch, and falls at an update. `due_by_ms` is the same, or the beginning of the
    recording if the event was due before that.
    """

    from_ms: Floats
    until_ms: Floats
    oldest_ms: Floats
    due_by_ms: Floats

    @property
    def lowest_ms(self) -> Floats:
        """Age at the start of each stretch."""
        return np.maximum(self.from_ms - self.oldest_ms, 0)

    @property
    def highest_ms(self) -> Floats:
        """Age at the end of each stretch, just before the next update."""
        return np.maximum(self.until_ms - self.oldest_ms, 0)

    @property
    def known(self) -> "Age":
        """The part of the age that was recorded: a lower bound, which is never infinite."""
        return replace(self, oldest_ms=self.due_by_ms)

    def quantiles_ms(self, shares: Sequence[float]) -> list[float]:
        """Return the age, in milliseconds, that was not exceeded during each of these shares of the
        time; 0 for an empty window.

        The result is exact, because the age rises linearly within each stretch: the time spent at
        an age of at most `a` is a piecewise linear function of `a`.
        """
        total_ms = float(np.sum(self.until_ms - self.from_ms))
        if total_ms <= 0:
            return [0.0 for _ in shares]
        known = np.isfinite(self.highest_ms)
        infinite_ms = float(np.sum((self.until_ms - self.from_ms)[~known]))
        lowest, highest = self.lowest_ms[known], self.highest_ms[known]
        time_at_zero_ms = total_ms - infinite_ms - float(np.sum(highest - lowest))
        ages = np.concatenate([lowest, highest])
        order = np.argsort(ages, kind="stable")
        ages = ages[order]
        # Number of stretches that contain each age.
        stretches = np.cumsum(np.repeat([1.0, -1.0], len(lowest))[order])
        at_most_ms = time_at_zero_ms + np.concatenate(
            [[0.0], np.cumsum(stretches[:-1] * np.diff(ages))]
        )

        def quantile_ms(wanted_ms: float) -> float:
            if wanted_ms > total_ms - infinite_ms + ROUNDING_MS:
                return np.inf
            row = int(np.searchsorted(at_most_ms, wanted_ms, "left"))
            if row in (0, len(ages)):
                return float(ages[min(row, len(ages) - 1)])
            around = slice(row - 1, row + 1)
            return float(np.interp(wanted_ms, at_most_ms[around], ages[around]))

        return [quantile_ms(share * total_ms) for share in shares]


def age(curves: Curves, start_ms: float, end_ms: float) -> Age:
    """Return the lag at every instant of the window: the largest age over the partitions.

    The window ends early if the recording ends or a clock was set back (`trusted`).
    """
    curves = trusted(curves)
    end_ms = max(start_ms, min(end_ms, recorded_until_ms(curves)))
    rows_ms = np.unique(np.concatenate([curve.at_ms for curve in curves.processed]))
    inside = rows_ms[(rows_ms > start_ms) & (rows_ms < end_ms)]
    from_ms = np.concatenate([[start_ms], inside])
    oldest_ms, due_by_ms = np.full((2, len(from_ms)), np.inf)
    for due, processed in zip(curves.due, curves.processed, strict=True):
        next_ms = times_of(due, counted(processed, from_ms, "right") + 1)
        oldest_ms = np.minimum(oldest_ms, next_ms)
        recorded_ms = due.at_ms[0] if len(due.at_ms) else np.inf
        due_by_ms = np.minimum(due_by_ms, np.maximum(next_ms, recorded_ms))
    return Age(from_ms, np.concatenate([inside, [end_ms]]), oldest_ms, due_by_ms)


def distribution(ages: Age) -> tuple[LagAtMost, ...]:
    """Return the lag that was not exceeded for each of SHARES of the time."""
    at_most_ms = ages.quantiles_ms(SHARES)
    return tuple(
        LagAtMost(share=share, lag_ms=lag_ms)
        for share, lag_ms in zip(SHARES, at_most_ms, strict=True)
    )


def percentiles(ages: Age) -> dict[str, Any]:
    """Return the fields of `LagOverTime`."""
    names = {f"lag_{name}_ms": share for name, share in PERCENTILES.items()}
    at_most_ms, known_ms = (
        series.quantiles_ms(tuple(names.values())) for series in (ages, ages.known)
    )
    return {
        **dict(zip(names, at_most_ms, strict=True)),
        "more_than_ms": {
            name: round(known)
            for name, at_most, known in zip(names, at_most_ms, known_ms, strict=True)
            if not np.isfinite(at_most)
        },
    }


def quantiles(values_ms: Floats) -> Quantiles | None:
    """Return the median and the 99th percentile (inverted CDF); None without values."""
    if not len(values_ms):
        return None
    p50_ms, p99_ms = np.quantile(values_ms, (0.5, 0.99), method="inverted_cdf")
    return Quantiles(p50_ms=float(p50_ms), p99_ms=float(p99_ms))


def window_writes(
    curves: Curves, start_ms: float, end_ms: float, length_ms: int
) -> WindowWrites | None:
    """Return the latency as defined by Yahoo's streaming benchmark, and the lag in the same time,
    for the event-time windows that end between two times. None if there are no such windows, or no
    event was due in them.

    Yahoo's latency is the time from the end of an event-time window to the last write to it, which
    happens when the engine has counted the last event due in the window. It does not show lag that
    the engine had before but has caught up by then (docs/workloads.md).
    """
    curves = trusted(curves)
    first_ms = (np.floor(start_ms / length_ms) + 1) * length_ms
    ends_ms = np.arange(first_ms, end_ms + 1, length_ms)
    written_ms = np.full(len(ends_ms), -np.inf)
    for due, processed in zip(curves.due, curves.processed, strict=True):
        written_ms = np.maximum(written_ms, _last_written_ms(due, processed, ends_ms, length_ms))
    known = written_ms > -np.inf
    if not known.any():
        return None
    after_ms = (written_ms - ends_ms)[known]
    until_ms = min(float(written_ms[known].max()), recorded_until_ms(curves))
    over = percentiles(age(curves, start_ms, until_ms))
    return WindowWrites(
        length_ms=length_ms,
        windows=len(after_ms),
        after_end_p50_ms=float(np.quantile(after_ms, 0.5, method="inverted_cdf")),
        after_end_max_ms=float(after_ms.max()),
        lag_max_ms=over[LAG_MAX.key],
        more_than_ms=over["more_than_ms"].get(LAG_MAX.key),
    )


def _last_written_ms(due: Curve, processed: Curve, ends_ms: Floats, length_ms: int) -> Floats:
    """Return when the last event of each event-time window was counted in this partition: -inf if
    the window has no event in the partition, inf if the event was never counted."""
    by_end = np.floor(np.interp(ends_ms, due.at_ms, due.count))
    by_start = np.floor(np.interp(ends_ms - length_ms, due.at_ms, due.count))
    counts = np.maximum.accumulate(processed.count)
    rows = np.searchsorted(counts, by_end, "left")
    written_ms = np.append(processed.at_ms, np.inf)[rows]
    return np.where(by_end > by_start, written_ms, -np.inf)


def littles_law(
    curves: Curves,
    arrivals: Sequence[Arrival],
    delays: Sequence[Delay],
    start_ms: float,
    end_ms: float,
    *,
    summary_after_ms: float = 0.0,
) -> LittlesLaw | None:
    """Compare the mean number of waiting events with rate x age, from independent records.

    The number of waiting events is the generator's total of due events (`arrivals.csv`) minus
    the total in the engine's summary (freshness log). The age comes from the counts of each
    partition (`curves.csv`). If the events of a partition are due at even intervals at a rate r
    and the oldest waiting event has age A, between r*A and r*A + 1 events wait: on average
    r*A + 1/2.

    `summary_after_ms` is how much later the engine may report its total than its progress. Return
    None if nothing was recorded, or if the oldest event was due before the recording began.
    """
    curves = trusted(curves)
    end_ms = min(end_ms, recorded_until_ms(curves), arrivals[-1].at_ms if arrivals else -np.inf)
    if end_ms <= start_ms or not delays:
        return None
    pairs = list(zip(curves.due, curves.processed, strict=True))
    by_age = sum(_rate_times_age(due, counts, start_ms, end_ms) + HALF for due, counts in pairs)
    if not np.isfinite(by_age):
        return None
    waiting = _waiting(arrivals, delays, start_ms, end_ms)
    grown = sum(
        float(np.diff(np.interp([start_ms, end_ms], d.at_ms, d.count))[0]) for d, _ in pairs
    )
    rate_per_ms = grown / (end_ms - start_ms)
    apart_ms = STAMPS_WITHIN_MS + summary_after_ms
    tolerance = (
        HALF * len(pairs) + rate_per_ms * apart_ms + LITTLES_LAW_TOLERANCE * max(waiting, by_age)
    )
    return LittlesLaw(
        waiting=round(waiting, 2),
        rate_times_age=round(by_age, 2),
        ratio=round(by_age / waiting, 4) if waiting > 0 else None,
        tolerance=round(tolerance, 2),
        holds=abs(waiting - by_age) <= tolerance,
    )


def littles_law_warning(law: LittlesLaw) -> str:
    """Return the warning for a run in which Little's law does not hold."""
    return (
        f"Little's law does not hold: {law.waiting:,.0f} events waited on average, by the"
        f" totals of generator and engine, but rate × age of the partitions is"
        f" {law.rate_times_age:,.0f} (± {law.tolerance:,.0f}). Either the lag of this run or"
        " the engine's total is wrong: compare curves.csv with the freshness log"
    )


def _waiting(
    arrivals: Sequence[Arrival], delays: Sequence[Delay], start_ms: float, end_ms: float
) -> float:
    """Return the mean number of waiting events in the window: due minus counted, from the
    totals."""
    due = Curve(
        np.array([row.at_ms for row in arrivals], dtype=np.float64),
        np.array([row.due for row in arrivals], dtype=np.float64),
    )
    updates = sorted(delays, key=lambda row: row.timestamp_ms)
    total = Curve(
        np.array([row.timestamp_ms for row in updates], dtype=np.float64),
        np.array([row.total for row in updates], dtype=np.float64),
    )
    from_ms, until_ms = _stretches(total.at_ms, start_ms, end_ms)
    counted_area = float(np.sum(counted(total, from_ms, "right") * (until_ms - from_ms)))
    return float(_area(due, np.array([start_ms]), np.array([end_ms]))[0] - counted_area) / (
        end_ms - start_ms
    )


def _rate_times_age(due: Curve, processed: Curve, start_ms: float, end_ms: float) -> float:
    """Return rate x age of a partition, for Little's law: the number of events that became due
    since the oldest waiting one did, averaged over the window. Infinite if that is unknown."""
    from_ms, until_ms = _stretches(processed.at_ms, start_ms, end_ms)
    oldest_ms = times_of(due, counted(processed, from_ms, "right") + 1)
    if not np.isfinite(np.minimum(oldest_ms, end_ms)).all():
        return np.inf
    waits_from_ms = np.clip(oldest_ms, from_ms, until_ms)  # treats a negative age as 0
    due_by_then = np.interp(np.minimum(oldest_ms, until_ms), due.at_ms, due.count)
    area = _area(due, waits_from_ms, until_ms) - due_by_then * (until_ms - waits_from_ms)
    return float(np.sum(area)) / (end_ms - start_ms)


def _stretches(at_ms: Floats, start_ms: float, end_ms: float) -> tuple[Floats, Floats]:
    """Cut the window at these times; return the starts and the ends of the pieces."""
    inside = np.unique(at_ms[(at_ms > start_ms) & (at_ms < end_ms)])
    return np.concatenate([[start_ms], inside]), np.concatenate([inside, [end_ms]])


def _area(curve: Curve, from_ms: Floats, until_ms: Floats) -> Floats:
    """Return the area under a curve from each `from_ms` to its `until_ms`. The curve is linear
    between its rows."""
    edges = np.unique(np.concatenate([curve.at_ms, from_ms, until_ms]))
    level = np.interp(edges, curve.at_ms, curve.count)
    pieces = (level[1:] + level[:-1]) / 2 * np.diff(edges)
    up_to = np.concatenate([[0.0], np.cumsum(pieces)])
    below = up_to[np.searchsorted(edges, until_ms)] - up_to[np.searchsorted(edges, from_ms)]
    return np.asarray(below, dtype=np.float64)
