"""Lag: the age of what an engine's count does not hold yet, at every instant. Pure functions.

A(t) is the largest over the partitions of t − due time of the oldest pageview that is due and not
counted, and 0 where none is. Between two updates it rises by a millisecond per millisecond, and at
an update it falls: so it is kept as one row per stretch without an update, and nothing is lost.
"""

from dataclasses import dataclass

import numpy as np

from racetrack.analysis.curves import Curves
from racetrack.analysis.lag import Floats, counted, recorded_until_ms, trusted, when

# Where the distribution is told: ever finer towards the end, where what is rare stands.
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 1.0)
ROUNDING_MS = 1e-6


@dataclass(frozen=True, eq=False)
class Age:
    """Stretches of time one after another, epoch milliseconds; arrays of one length.

    From `from_ms` to `until_ms`, the oldest pageview that was not counted was due at `oldest_ms`:
    -inf if that was before the recording began, inf if none was due by its end.
    """

    from_ms: Floats
    until_ms: Floats
    oldest_ms: Floats

    @property
    def lowest_ms(self) -> Floats:
        """The age at the beginning of each stretch."""
        return np.maximum(self.from_ms - self.oldest_ms, 0)

    @property
    def highest_ms(self) -> Floats:
        """The age at its end, just before the update that ends it."""
        return np.maximum(self.until_ms - self.oldest_ms, 0)


def age(curves: Curves, start_ms: float, end_ms: float) -> Age:
    """The age over the window, which ends early where the recording does, or where a clock was set
    back (`lag.trusted`)."""
    curves = trusted(curves)
    end_ms = max(start_ms, min(end_ms, recorded_until_ms(curves)))
    rows_ms = np.unique(np.concatenate([curve.at_ms for curve in curves.processed]))
    inside = rows_ms[(rows_ms > start_ms) & (rows_ms < end_ms)]
    from_ms = np.concatenate([[start_ms], inside])
    oldest_ms = np.full(len(from_ms), np.inf)
    for due, processed in zip(curves.due, curves.processed, strict=True):
        oldest_ms = np.minimum(oldest_ms, when(due)(counted(processed, from_ms, "right") + 1))
    return Age(from_ms, np.concatenate([inside, [end_ms]]), oldest_ms)


def quantiles_ms(told: Age, shares: tuple[float, ...]) -> list[float]:
    """For each share of the window's time: the age that it was at most in so much of it.

    Exact: the time at most `a` old is, over a stretch, 0 up to its lowest age, then grows with `a`
    up to the stretch's length at its highest. 0 where the window is empty.
    """
    whole_ms = float(np.sum(told.until_ms - told.from_ms))
    if whole_ms <= 0:
        return [0.0 for _ in shares]
    endless_ms = float(np.sum((told.until_ms - told.from_ms)[~np.isfinite(told.highest_ms)]))
    known = np.isfinite(told.highest_ms)
    lowest, highest = told.lowest_ms[known], told.highest_ms[known]
    current_ms = whole_ms - endless_ms - float(np.sum(highest - lowest))  # time at age 0
    ages = np.concatenate([lowest, highest])
    order = np.argsort(ages, kind="stable")
    ages = ages[order]
    growing = np.cumsum(np.repeat([1.0, -1.0], len(lowest))[order])  # stretches that hold such ages
    at_most_ms = current_ms + np.concatenate([[0.0], np.cumsum(growing[:-1] * np.diff(ages))])

    def reached(wanted_ms: float) -> float:
        """The least age that so much time was at most."""
        if wanted_ms > whole_ms - endless_ms + ROUNDING_MS:
            return np.inf
        row = int(np.searchsorted(at_most_ms, wanted_ms, "left"))
        if row in (0, len(ages)):
            return float(ages[min(row, len(ages) - 1)])
        around = slice(row - 1, row + 1)
        return float(np.interp(wanted_ms, at_most_ms[around], ages[around]))

    return [reached(share * whole_ms) for share in shares]
