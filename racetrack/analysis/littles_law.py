"""Little's law, held against every run: what waits = the rate × its age. Pure functions.

Both sides come from records of their own, so that a mistake in one of them shows. What waits is
counted over all partitions together: due by the generator's account (`arrivals.csv`) less what the
engine's summary had counted (its log of freshness). The age is that of each partition in
`curves.csv`, as the lag is taken from it.

With the rate r at which they became due, and evenly spaced, between r·A and r·A + 1 pageviews of a
partition wait while its oldest waits for A; by the counts as they are sampled, r·A + ½. So the mean
of what waits is the sum over the partitions of the mean of r·A, and half a pageview for each.
"""

import numpy as np

from racetrack.analysis import raw
from racetrack.analysis.curves import Curve, Curves
from racetrack.analysis.lag import Floats, counted, recorded_until_ms, trusted, when
from racetrack.analysis.silence import STEP_MS
from racetrack.results.figures import LittlesLaw

# Of what waits: as much as a rate may be off (outcome.py). An engine that is seconds behind works
# at its views in turn, and was seen to have one of them 0.6 % behind another.
SHARE = 0.01
# Times are whole milliseconds, and the rows of one update come within a few.
STAMPS_WITHIN_MS = STEP_MS + 1.0
HALF = 0.5


def check(
    curves: Curves,
    arrivals: list[raw.Arrival],
    delays: list[raw.Delay],
    start_ms: float,
    end_ms: float,
    *,
    summary_after_ms: float = 0.0,
) -> LittlesLaw | None:
    """Both sides over the window; None where one is not known: nothing was recorded in it, or the
    oldest pageview was due before the recording began. The engine may tell its total by so much
    later than its progress."""
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
    tolerance = HALF * len(pairs) + rate_per_ms * apart_ms + SHARE * max(waiting, by_age)
    return LittlesLaw(
        waiting=round(waiting, 2),
        rate_times_age=round(by_age, 2),
        ratio=round(by_age / waiting, 4) if waiting > 0 else None,
        tolerance=round(tolerance, 2),
        holds=abs(waiting - by_age) <= tolerance,
    )


def warning(found: LittlesLaw) -> str:
    """What to say of a run in which it does not hold."""
    return (
        f"Little's law does not hold: {found.waiting:,.0f} pageviews waited on average, by the"
        f" totals of generator and engine, but rate × age of the partitions says"
        f" {found.rate_times_age:,.0f} (± {found.tolerance:,.0f}). So the lag of this run is wrong,"
        " or the engine's total is: compare curves.csv with the log of freshness"
    )


def _waiting(
    arrivals: list[raw.Arrival], delays: list[raw.Delay], start_ms: float, end_ms: float
) -> float:
    """The window's mean of due − counted, by the totals."""
    due = Curve(
        np.array([row.at_ms for row in arrivals], dtype=np.float64),
        np.array([row.due for row in arrivals], dtype=np.float64),
    )
    told = sorted(delays, key=lambda row: row.timestamp_ms)
    total = Curve(
        np.array([row.timestamp_ms for row in told], dtype=np.float64),
        np.array([row.total for row in told], dtype=np.float64),
    )
    from_ms, until_ms = _stretches(total.at_ms, start_ms, end_ms)
    held = float(np.sum(counted(total, from_ms, "right") * (until_ms - from_ms)))
    return float(_area(due, np.array([start_ms]), np.array([end_ms]))[0] - held) / (
        end_ms - start_ms
    )


def _rate_times_age(due: Curve, processed: Curve, start_ms: float, end_ms: float) -> float:
    """The window's mean of what became due within the age of a partition: the age, times the rate
    at which it did."""
    from_ms, until_ms = _stretches(processed.at_ms, start_ms, end_ms)
    oldest_ms = when(due)(counted(processed, from_ms, "right") + 1)
    if not np.isfinite(np.minimum(oldest_ms, end_ms)).all():
        return np.inf
    waits_from_ms = np.clip(oldest_ms, from_ms, until_ms)  # an age below 0 is none
    became = np.interp(np.minimum(oldest_ms, until_ms), due.at_ms, due.count)
    area = _area(due, waits_from_ms, until_ms) - became * (until_ms - waits_from_ms)
    return float(np.sum(area)) / (end_ms - start_ms)


def _stretches(at_ms: Floats, start_ms: float, end_ms: float) -> tuple[Floats, Floats]:
    """The window cut at these times: where each piece begins, and where it ends."""
    inside = np.unique(at_ms[(at_ms > start_ms) & (at_ms < end_ms)])
    return np.concatenate([[start_ms], inside]), np.concatenate([inside, [end_ms]])


def _area(curve: Curve, from_ms: Floats, until_ms: Floats) -> Floats:
    """The area below a curve that is linear between its rows, from and to each of these times."""
    edges = np.unique(np.concatenate([curve.at_ms, from_ms, until_ms]))
    level = np.interp(edges, curve.at_ms, curve.count)
    pieces = (level[1:] + level[:-1]) / 2 * np.diff(edges)
    up_to = np.concatenate([[0.0], np.cumsum(pieces)])
    below = up_to[np.searchsorted(edges, until_ms)] - up_to[np.searchsorted(edges, from_ms)]
    return np.asarray(below, dtype=np.float64)
