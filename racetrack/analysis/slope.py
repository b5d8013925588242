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

# A lag that grows by 1 % of real time is 36 s after an hour.
THRESHOLD_PCT = 1.0
# With a 1 % error on each side and independent noise, even a true slope at the threshold gives at
# most 1 % false verdicts.
ONE_SIDED = 0.99
# 200 resamples give the standard error to 5 %; the fixed seed makes the verdict reproducible.
RESAMPLES, SEED = 200, 20261121
# Fewer bins cannot show the correlation of the noise. With unknown noise, suggest the window that
# resolves 1 % under 100 ms of noise at one update per second.
MIN_BINS, TRY_S = 8, 30.0
# A lag whose ends are 4 robust standard deviations off its line does not follow the line. (The
# median absolute deviation of normal noise is 0.6745 sigma.)
ENDS_SIGMAS, MAD_TO_SIGMA = 4.0, 1 / 0.6745
# Dropping a transient must reduce the variance of the slope to this fraction. Dropping mere noise
# reduces it by less.
TRANSIENT_GAIN = 0.5
# Largest fraction to drop: a longer anomaly is not a transient.
TRANSIENT_MAX = 0.5


@dataclass(frozen=True)
class Precision:
    """Confidence of each side of a slope's interval, and the largest number of bins of lag."""

    one_sided: float = ONE_SIDED
    most_bins: int = MAX_BINS

    @property
    def confidence(self) -> float:
        """Two-sided confidence."""
        return 2 * self.one_sided - 1


def growth(
    times_ms: Floats,
    values_ms: Floats,
    threshold_pct: float = THRESHOLD_PCT,
    one_sided: float = ONE_SIDED,
) -> Slope:
    """Return the Theil-Sen slope of at least MIN_BINS values over time, with an interval, each side
    of which is correct with probability `one_sided`.

    If the values do not follow a line (the rise from the first to the last tenth differs from the
    slope), the interval is extended to that rise: a robust slope ignores the last quarter, and
    would miss an engine that stops there.
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
    """Estimate how long a window would decide at the same slope and noise, in whole seconds.

    The error of a slope falls with the window to the power of 3/2. Half the interval has to fit
    twice between slope and threshold: once for the interval, once for the scatter of the slope. The
    distance is that of the measured slope, or of a slope of 0 where noise hides it.
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
    """Return RESAMPLES rows of n indices in blocks, and for each pair whether both are equal."""
    starts = np.random.default_rng(SEED).integers(0, n - block + 1, (RESAMPLES, -(-n // block)))
    drawn = (starts[:, :, None] + np.arange(block)).reshape(RESAMPLES, -1)[:, :n]
    first, second = _pairs(n)
    return drawn, drawn[:, second] == drawn[:, first]


def _theil_sen(times: Floats, values: Floats) -> float:
    """Return the median slope of all pairs: `scipy.stats.theilslopes` without its interval, which
    assumes independent values."""
    first, second = _pairs(len(times))
    slopes = (values[second] - values[first]) / (times[second] - times[first])
    return float(np.median(slopes))


def _half_width(times: Floats, residuals: Floats, one_sided: float) -> float:
    """Return half the interval of the slope, from resampled blocks of residuals.

    The Theil-Sen slope of a line with noise is the sum of the slopes of line and noise, so only the
    noise is resampled. Overlapping blocks give 1.5 times as many degrees of freedom as there are
    blocks (Meketon & Schmeiser 1984).
    """
    n = len(times)
    block = _block_length(residuals)
    first, second = _pairs(n)
    drawn, twice = _resamples(n, block)
    noise = residuals.astype(np.float32)[drawn]
    slopes = np.take(noise, second, axis=1) - np.take(noise, first, axis=1)
    apart = (times[second] - times[first]).astype(np.float32)
    slopes /= apart
    # A residual drawn twice gives a pair of slope 0. These would narrow the interval by up to a
    # fifth, so half of them count as steep up, half as steep down.
    steep = np.abs(slopes).max() * np.where(np.arange(len(first)) % 2, 1, -1).astype(np.float32)
    np.copyto(slopes, steep, where=twice)
    # Imported here because it takes half a second, which would delay every run.
    from scipy import special

    error = float(np.std(_medians(slopes), ddof=1)) * math.sqrt(n / (n - 2))
    return error * float(special.stdtrit(max(1.5 * n / block - 2, 1), one_sided))


def _medians(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the median of each row, reordering the rows; four times as fast as `np.median`."""
    upper, lower = rows.shape[1] // 2, (rows.shape[1] - 1) // 2
    rows.partition((lower, upper), axis=1)
    return np.asarray((rows[:, lower] + rows[:, upper]) / 2, dtype=np.float32)


def _block_length(residuals: Floats) -> int:
    """Return the block length: Carlstein's (1986) for AR(1) noise, with overlapping blocks.

    Kendall's (1954) correction is applied, because a short series underestimates correlation. The
    length is at least 2, so weak correlation is not ignored, and there are at least three blocks.
    """
    n = len(residuals)
    centred = residuals - residuals.mean()
    power = float(centred @ centred)
    found = float(centred[1:] @ centred[:-1]) / power if power > 0 else 0.0
    rho = min(max(found + (1 + 4 * found) / n, 0.0), 0.95)
    length: float = (math.sqrt(6) * rho / (1 - rho * rho)) ** (2 / 3) * n ** (1 / 3)
    return min(max(round(length), 2), n // 3)


def transient_length(times_ms: Floats, values_ms: Floats) -> int:
    """Return the number of leading values that are off the line of the remaining ones.

    MSER (White 1997) truncates the series where the error of the mean is smallest. Here the
    criterion is the error of the slope.
    """
    most = min(int(len(times_ms) * TRANSIENT_MAX), len(times_ms) - MIN_BINS)
    if most <= 0:
        return 0
    errors = np.array([_slope_variance(times_ms[n:], values_ms[n:]) for n in range(most + 1)])
    best = int(np.argmin(errors))
    return best if errors[best] < TRANSIENT_GAIN * errors[0] else 0


def _slope_variance(times_ms: Floats, values_ms: Floats) -> float:
    """Return the variance of a least-squares slope, assuming independent noise."""
    since, values = times_ms - times_ms.mean(), values_ms - values_ms.mean()
    spread = float(since @ since)
    left = float(values @ values) - float(since @ values) ** 2 / spread
    return max(left, 0.0) / (len(since) - 2) / spread
