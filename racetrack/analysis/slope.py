"""Growth of a lag: a robust slope whose interval allows for correlated noise, and the length of an
initial transient.

The slope is the Theil-Sen estimator. Its interval comes from a moving-block bootstrap (Kuensch
1989). docs/verdict.md gives the reasons and the measured errors.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from racetrack.analysis.curves import Floats
from racetrack.analysis.lag import MAX_BINS
from racetrack.results.figures import Slope

# A lag that grows by 1 % of real time is 36 s after an hour.
THRESHOLD_PCT = 1.0
# Confidence on each side. With independent noise, even a true slope exactly at the threshold then
# gives at most 1 % false verdicts.
ONE_SIDED = 0.99
# 200 resamples estimate the standard error to within 5 %. The fixed seed makes verdicts repeatable.
RESAMPLES, SEED = 200, 20261121
# Fewer than MIN_BINS bins cannot show the correlation of the noise. While the noise is unknown,
# suggest a window of TRY_S, which resolves a slope of 1 % with one update per second and 100 ms of
# noise.
MIN_BINS, TRY_S = 8, 30.0
# A lag does not follow a line if its ends are 4 robust standard deviations off the line. The robust
# standard deviation is the median absolute deviation divided by 0.6745, its value for normal noise
# with a standard deviation of 1.
ENDS_SIGMAS, MAD_TO_SIGMA = 4.0, 1 / 0.6745
# Leading values are dropped as a transient only if that reduces the variance of the slope below
# this fraction. Dropping mere noise reduces the variance by less.
TRANSIENT_GAIN = 0.5
# Largest fraction of the values to drop: a longer anomaly is not a transient.
TRANSIENT_MAX = 0.5


@dataclass(frozen=True)
class Precision:
    """Confidence on each side of a slope's interval, and the largest number of bins to average the
    lag into."""

    one_sided: float = ONE_SIDED
    most_bins: int = MAX_BINS


def growth(
    times_ms: Floats,
    values_ms: Floats,
    one_sided: float = ONE_SIDED,
) -> Slope:
    """Return the Theil-Sen slope of at least MIN_BINS values over time, with an interval. Each end
    of the interval is correct with probability `one_sided`.

    If the rise from the first to the last tenth of the values does not match the slope, the
    interval is extended to include that rise. Otherwise an engine that stops in the last quarter of
    the window would go unnoticed, because a robust slope ignores so few values.
    """
    pct = 100 * _theil_sen(times_ms, values_ms)
    residuals = values_ms - pct / 100 * times_ms
    half_pct = 100 * _half_width(times_ms, residuals, one_sided)
    low_pct, high_pct = pct - half_pct, pct + half_pct
    ends = max(3, len(times_ms) // 10)
    rise_ms = float(np.median(values_ms[-ends:]) - np.median(values_ms[:ends]))
    apart_ms = float(np.median(times_ms[-ends:]) - np.median(times_ms[:ends]))
    noise_ms = MAD_TO_SIGMA * float(np.median(np.abs(residuals - np.median(residuals))))
    odd_ms = max(ENDS_SIGMAS * noise_ms, THRESHOLD_PCT / 100 * apart_ms)
    if abs(rise_ms - pct / 100 * apart_ms) > odd_ms:
        rise_pct = 100 * rise_ms / apart_ms
        low_pct, high_pct = min(low_pct, rise_pct), max(high_pct, rise_pct)
    return Slope(pct=pct, low_pct=low_pct, high_pct=high_pct)


def shortest_window_s(slope: Slope, window_s: float) -> float:
    """Estimate the length, in whole seconds, of a window that would give a decision if slope and
    noise stayed the same.

    The error of a slope is proportional to the window's length to the power of -3/2. The window is
    long enough if the distance between slope and threshold is twice the interval's half-width: once
    for the interval itself, once for the scatter of the slope. If noise hides the slope, a slope of
    0 is assumed.
    """
    half_pct = max(slope.high_pct - slope.pct, slope.pct - slope.low_pct)
    distance_pct = max(abs(slope.pct - THRESHOLD_PCT), min(THRESHOLD_PCT, half_pct / 2))
    factor: float = max(1.0, 2 * half_pct / distance_pct) ** (2 / 3)
    return math.ceil(window_s * factor)


@lru_cache(maxsize=128)
def _pairs(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.triu_indices(n, 1)


@lru_cache(maxsize=32)
def _resamples(n: int, block: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return RESAMPLES rows of n indices, drawn in blocks; and for each pair of positions in a row,
    whether both have the same index."""
    starts = np.random.default_rng(SEED).integers(0, n - block + 1, (RESAMPLES, -(-n // block)))
    drawn = (starts[:, :, None] + np.arange(block)).reshape(RESAMPLES, -1)[:, :n]
    first, second = _pairs(n)
    return drawn, drawn[:, second] == drawn[:, first]


def _theil_sen(times: Floats, values: Floats) -> float:
    """Return the median slope over all pairs of values. `scipy.stats.theilslopes` also computes an
    interval, but that assumes independent values."""
    first, second = _pairs(len(times))
    slopes = (values[second] - values[first]) / (times[second] - times[first])
    return float(np.median(slopes))


def _half_width(times: Floats, residuals: Floats, one_sided: float) -> float:
    """Return the half-width of the slope's interval, from resampled blocks of residuals.

    The Theil-Sen slope of a line plus noise is the line's slope plus the noise's slope, so it is
    enough to resample the residuals. Overlapping blocks give 1.5 times as many degrees of freedom
    as there are blocks (Meketon & Schmeiser 1984).
    """
    n = len(times)
    block = _block_length(residuals)
    first, second = _pairs(n)
    drawn, twice = _resamples(n, block)
    noise = residuals.astype(np.float32)[drawn]
    slopes = np.take(noise, second, axis=1) - np.take(noise, first, axis=1)
    apart = (times[second] - times[first]).astype(np.float32)
    slopes /= apart
    # A pair of equal residuals (one drawn twice) has slope 0. Such pairs would narrow the interval
    # by up to a fifth, so give half of them a steep positive and half a steep negative slope.
    steep = np.abs(slopes).max() * np.where(np.arange(len(first)) % 2, 1, -1).astype(np.float32)
    np.copyto(slopes, steep, where=twice)
    # Imported here because it takes half a second, which would delay every run.
    from scipy import special

    error = float(np.std(_medians(slopes), ddof=1)) * math.sqrt(n / (n - 2))
    return error * float(special.stdtrit(max(1.5 * n / block - 2, 1), one_sided))


def _medians(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the median of each row, four times as fast as `np.median`. Reorders the rows."""
    upper, lower = rows.shape[1] // 2, (rows.shape[1] - 1) // 2
    rows.partition((lower, upper), axis=1)
    return np.asarray((rows[:, lower] + rows[:, upper]) / 2, dtype=np.float32)


def _block_length(residuals: Floats) -> int:
    """Return the block length by Carlstein's formula (1986) for AR(1) noise and overlapping blocks.

    The estimated correlation is corrected by Kendall's formula (1954), because a short series
    underestimates it. The length is at least 2, so that weak correlation is not ignored, and short
    enough for at least three blocks.
    """
    n = len(residuals)
    centred = residuals - residuals.mean()
    power = float(centred @ centred)
    correlation = float(centred[1:] @ centred[:-1]) / power if power > 0 else 0.0
    rho = min(max(correlation + (1 + 4 * correlation) / n, 0.0), 0.95)
    length: float = (math.sqrt(6) * rho / (1 - rho * rho)) ** (2 / 3) * n ** (1 / 3)
    return min(max(round(length), 2), n // 3)


def transient_length(times_ms: Floats, values_ms: Floats) -> int:
    """Return the number of leading values that do not follow the line through the remaining values.

    This is MSER (White 1997), which truncates a series where the error of the mean becomes
    smallest, applied to the error of the slope.
    """
    most = min(int(len(times_ms) * TRANSIENT_MAX), len(times_ms) - MIN_BINS)
    if most <= 0:
        return 0
    errors = np.array([_slope_variance(times_ms[n:], values_ms[n:]) for n in range(most + 1)])
    best = int(np.argmin(errors))
    return best if errors[best] < TRANSIENT_GAIN * errors[0] else 0


def _slope_variance(times_ms: Floats, values_ms: Floats) -> float:
    """Return the variance of the least-squares slope, assuming independent noise."""
    since, values = times_ms - times_ms.mean(), values_ms - values_ms.mean()
    spread = float(since @ since)
    left = float(values @ values) - float(since @ values) ** 2 / spread
    return max(left, 0.0) / (len(since) - 2) / spread
