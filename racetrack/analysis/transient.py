"""Where a lag's transient ends: found in the data, not assumed. Pure functions, no I/O."""

import numpy as np

from racetrack.analysis.lag import Floats
from racetrack.analysis.slope import MIN_BINS

# What is left out must leave the slope at least so much better known (its variance, as a share).
# Noise alone, left out here and there, gains less.
GAIN = 0.5
# No more than this share is left out: then something else than a beginning was odd.
AT_MOST = 0.5


def steady_from(times_ms: Floats, values_ms: Floats) -> int:
    """The number of values at the beginning that don't belong to the line that the others follow.

    MSER (White 1997) leaves out as much as makes the mean of the rest known best. Here it is the
    slope that is wanted, and so the beginning is left out that makes the slope known best: what is
    dropped has to spoil the line more than its length is worth.
    """
    most = min(int(len(times_ms) * AT_MOST), len(times_ms) - MIN_BINS)
    if most <= 0:
        return 0
    errors = np.array([_slope_variance(times_ms[n:], values_ms[n:]) for n in range(most + 1)])
    best = int(np.argmin(errors))
    return best if errors[best] < GAIN * errors[0] else 0


def _slope_variance(times_ms: Floats, values_ms: Floats) -> float:
    """The variance of a least-squares slope if the noise were independent."""
    since, values = times_ms - times_ms.mean(), values_ms - values_ms.mean()
    spread = float(since @ since)
    left = float(values @ values) - float(since @ values) ** 2 / spread
    return max(left, 0.0) / (len(since) - 2) / spread
