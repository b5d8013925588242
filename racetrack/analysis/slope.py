"""Growth of a lag: a robust slope with an interval for correlated noise, and the transient before.

The slope is Theil-Sen's, the interval a moving-block bootstrap's (Kuensch 1989); docs/verdict.md
has the reasons and the measured errors.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from racetrack.analysis.curves import Floats
from racetrack.analysis.lag import MAX_BINS
from racetrack.results.figures import Slope

# An engine that lags 1 % of real time more and more is 36 s behind after an hour.
THRESHOLD_PCT = 1.0
# Each side of the interval may err once in a hundred: then, where noise is independent, not even a
# true slope right at the threshold makes more than 1 % false verdicts.
ONE_SIDED = 0.99
# 200 resamples know the standard error to 5 %; a fixed seed makes the verdict a function of data.
RESAMPLES, SEED = 200, 20261121
# With fewer bins the correlation of the noise can't be estimated. Where the noise is not known, the
# window to try is the one that resolves 1 % under 100 ms of noise at one update per second.
MIN_BINS, TRY_S = 8, 30.0
# Where a lag's ends are 4 robust standard deviations off its line, it is no line. (The median
# absolute deviation of normal noise is 0.6745 sigma.)
ENDS_SIGMAS, MAD_TO_SIGMA = 4.0, 1 / 0.6745
# What is left out must leave the slope at least so much better known (its variance, as a share).
# Noise alone, left out here and there, gains less.
TRANSIENT_GAIN = 0.5
# No more than this share is left out: then something else than a beginning was odd.
TRANSIENT_MAX = 0.5


@dataclass(frozen=True)
class Precision:
    """How sure each side of a slope's interval is, and into how many bins lag goes at most."""

    one_sided: float = ONE_SIDED
    most_bins: int = MAX_BINS

    @property
    def confidence(self) -> float:
        """That of both sides together."""
        return 2 * self.one_sided - 1


def growth(
    times_ms: Floats,
    values_ms: Floats,
    threshold_pct: float = THRESHOLD_PCT,
    one_sided: float = ONE_SIDED,
) -> Slope:
    """The Theil-Sen slope of at least MIN_BINS values over time, with its interval, of which each
    side holds the truth with a probability of `one_sided`.


    Where the values follow no line (their level rose from the first to the last tenth by something
    else than the slope says), the interval is stretched to that rise: a robust slope ignores what
    happens in the last quarter, and an engine that stops there must not look good.
    """
    pct = 100 * _theil_sen(times_ms, values_ms)
    residuals = values_ms - pct / 100 * times_ms
    half_pct = 100 * _half_width(times_ms, residuals, one_sided)
    low_pct, high_pct = pct - half_pct, pct + half_pct
    ends = max(3, len(times_ms) // 10)
    rise_ms = float(np.median(values_ms[-ends:]) - np.median(values_ms[:ends]))
    apart_ms = float(np.median(times_ms[-ends:]) - np.median(times_ms[:ends]))
    noise_ms = MAD_TO_SIGMA * float(np.median(np.abs(residuals - np.median(residuals))))
    odd_ms = max(ENDS_SIGMAS * noise_ms, threshold_pct / 100 * apart_ms)
    if abs(rise_ms - pct / 100 * apart_ms) > odd_ms:
        rise_pct = 100 * rise_ms / apart_ms
        low_pct, high_pct = min(low_pct, rise_pct), max(high_pct, rise_pct)
    return Slope(pct=pct, low_pct=low_pct, high_pct=high_pct)


def shortest_window_s(slope: Slope, window_s: float, threshold_pct: float) -> float:
    """How long a window decides if slope and noise stay as they are (whole seconds, an estimate).

    A slope's error falls with the window to the power of 3/2. Half the interval has to fit twice
    between slope and threshold: once for the interval, once for the slope's own scatter. The
    distance is that of the slope measured, or, where noise hides it, of no growth at all.
    """
    half_pct = max(slope.high_pct - slope.pct, slope.pct - slope.low_pct)
    distance_pct = max(abs(slope.pct - threshold_pct), min(threshold_pct, half_pct / 2))
    factor: float = max(1.0, 2 * half_pct / distance_pct) ** (2 / 3)
    return math.ceil(window_s * factor)


@lru_cache(maxsize=128)
def _pairs(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.triu_indices(n, 1)


@lru_cache(maxsize=32)
def _resamples(n: int, block: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """RESAMPLES rows of n indices in blocks, and for each pair whether both are the same one."""
    starts = np.random.default_rng(SEED).integers(0, n - block + 1, (RESAMPLES, -(-n // block)))
    drawn = (starts[:, :, None] + np.arange(block)).reshape(RESAMPLES, -1)[:, :n]
    first, second = _pairs(n)
    return drawn, drawn[:, second] == drawn[:, first]


def _theil_sen(times: Floats, values: Floats) -> float:
    """The median slope of all pairs; `scipy.stats.theilslopes` without its interval, which assumes
    independent values."""
    first, second = _pairs(len(times))
    slopes = (values[second] - values[first]) / (times[second] - times[first])
    return float(np.median(slopes))


def _half_width(times: Floats, residuals: Floats, one_sided: float) -> float:
    """Half the interval of the slope, from resampled blocks of residuals.

    Theil-Sen moves with the line (slope of line + noise = slope of line + slope of noise), so the
    noise alone is resampled. t-quantile: overlapping blocks know the error with 1.5 times as many
    degrees of freedom as there are blocks (Meketon & Schmeiser 1984).
    """
    n = len(times)
    block = _block_length(residuals)
    first, second = _pairs(n)
    drawn, twice = _resamples(n, block)
    noise = residuals.astype(np.float32)[drawn]
    slopes = np.take(noise, second, axis=1) - np.take(noise, first, axis=1)
    apart = (times[second] - times[first]).astype(np.float32)
    slopes /= apart
    # A residual drawn twice makes a pair of slope 0, and so many of them would make the median
    # look up to a fifth surer than it is: half of them count as steep up, half as steep down.
    steep = np.abs(slopes).max() * np.where(np.arange(len(first)) % 2, 1, -1).astype(np.float32)
    np.copyto(slopes, steep, where=twice)
    # It takes half a second to import, for which the start of a run would wait.
    from scipy import special

    error = float(np.std(_medians(slopes), ddof=1)) * math.sqrt(n / (n - 2))
    return error * float(special.stdtrit(max(1.5 * n / block - 2, 1), one_sided))


def _medians(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """The median of each row, reordering the rows; four times as fast as `np.median`."""
    upper, lower = rows.shape[1] // 2, (rows.shape[1] - 1) // 2
    rows.partition((lower, upper), axis=1)
    return np.asarray((rows[:, lower] + rows[:, upper]) / 2, dtype=np.float32)


def _block_length(residuals: Floats) -> int:
    """How many neighbours are drawn together: Carlstein's (1986) length for AR(1) noise, as it is
    for overlapping blocks.

    The correlation of a short series is estimated too low; the correction is Kendall's (1954).
    At least 2, so that a little correlation is never ignored, and at least three blocks.
    """
    n = len(residuals)
    centred = residuals - residuals.mean()
    power = float(centred @ centred)
    found = float(centred[1:] @ centred[:-1]) / power if power > 0 else 0.0
    rho = min(max(found + (1 + 4 * found) / n, 0.0), 0.95)
    length: float = (math.sqrt(6) * rho / (1 - rho * rho)) ** (2 / 3) * n ** (1 / 3)
    return min(max(round(length), 2), n // 3)


def transient_length(times_ms: Floats, values_ms: Floats) -> int:
    """The number of values at the beginning that don't belong to the line that the others follow.

    MSER (White 1997) leaves out as much as makes the mean of the rest known best. Here it is the
    slope that is wanted, and so the beginning is left out that makes the slope known best: what is
    dropped has to spoil the line more than its length is worth.
    """
    most = min(int(len(times_ms) * TRANSIENT_MAX), len(times_ms) - MIN_BINS)
    if most <= 0:
        return 0
    errors = np.array([_slope_variance(times_ms[n:], values_ms[n:]) for n in range(most + 1)])
    best = int(np.argmin(errors))
    return best if errors[best] < TRANSIENT_GAIN * errors[0] else 0


def _slope_variance(times_ms: Floats, values_ms: Floats) -> float:
    """The variance of a least-squares slope if the noise were independent."""
    since, values = times_ms - times_ms.mean(), values_ms - values_ms.mean()
    spread = float(since @ since)
    left = float(values @ values) - float(since @ values) ** 2 / spread
    return max(left, 0.0) / (len(since) - 2) / spread
