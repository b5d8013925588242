"""Statistics over runs: means and ratios with intervals, and base and marginal cost.

The interval of a mean is Student's t: each repeat is a fresh run, so repeats are independent. A
ratio is that of the geometric means, its interval Welch's t on the logarithms (unequal variances,
Welch 1947), because costs and lags are positive and vary in proportion. It does not depend on which
engine comes first, and it is bounded, unlike Fieller's (1954).

At low rates most CPU time is base load, so CPU seconds per million pageviews say little about the
work per pageview. Hence a line through runs at several rates: its intercept is the base load, its
slope the marginal cost.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
# Repeats whose logarithms are this close differ by rounding only.
ALIKE = 1e-9
FEWEST_RUNS, FEWEST_RATES = 3, 2


@dataclass(frozen=True)
class Mean:
    """The arithmetic mean of `n` repeats; `half` is half its interval, None for one repeat."""

    mean: float
    half: float | None
    n: int


@dataclass(frozen=True)
class Ratio:
    """How many times as much; `low` and `high` are None where repeats are too few, or all alike."""

    ratio: float
    low: float | None
    high: float | None

    @property
    def says(self) -> str:
        """What may be concluded."""
        if self.low is None or self.high is None:
            return "no interval: too few repeats, or all alike"
        if self.low <= 1 <= self.high:
            return "no difference shown"
        return "more" if self.low > 1 else "less"


def mean(values: Sequence[float]) -> Mean:
    """The mean and half its t-interval (CONFIDENCE).

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("no mean of no values")
    n = len(values)
    found = float(np.mean(values))
    if n < 2:
        return Mean(found, None, n)
    error = float(np.std(values, ddof=1)) / math.sqrt(n)
    return Mean(found, error * float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)), n)


def apart(values: Sequence[float]) -> float:
    """How far the least and the greatest are from the middle between them, as a part of it.

    Raises:
        ValueError: there are no values.
    """
    return (max(values) - min(values)) / (max(values) + min(values))


def ratio(of: Sequence[float], to: Sequence[float]) -> Ratio | None:
    """The geometric mean of `of` over that of `to`, with its interval (CONFIDENCE).

    None where a value is not above 0 (then there is no ratio worth the name) or a side is empty.
    """
    if not of or not to or min(*of, *to) <= 0:
        return None
    a, b = np.log(of), np.log(to)
    middle = float(np.mean(a) - np.mean(b))
    if min(len(a), len(b)) < 2 or float(np.ptp(a) + np.ptp(b)) < ALIKE:
        return Ratio(math.exp(middle), None, None)
    # scipy's own Welch warns where the repeats of one side are all alike, as memory often is.
    errors = [float(np.var(side, ddof=1)) / len(side) for side in (a, b)]
    freedom = sum(errors) ** 2 / sum(
        error**2 / (len(side) - 1) for error, side in zip(errors, (a, b), strict=True)
    )
    half = math.sqrt(sum(errors)) * float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom))
    return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


@dataclass(frozen=True)
class CostLine:
    """CPU = `base_pct` (percent of a core) + `per_million_s` (CPU-seconds per million pageviews)
    times the rate; each with half its 95 % interval (Student's t)."""

    base_pct: float
    base_half_pct: float
    per_million_s: float
    per_million_half_s: float
    runs: int
    from_per_s: float  # the lowest and the highest rate that was counted
    to_per_s: float


def fit_cost(processed_per_s: Sequence[float], cores: Sequence[float]) -> CostLine | None:
    """The least-squares line through runs, given as pageviews counted per second and cores used;
    None where too few runs or rates make none."""
    if (
        len(cores) < FEWEST_RUNS
        or len({round(rate, -1) for rate in processed_per_s}) < FEWEST_RATES
    ):
        return None
    found = stats.linregress([rate / 1e6 for rate in processed_per_s], cores)
    t = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(cores) - 2))
    return CostLine(
        base_pct=100 * float(found.intercept),
        base_half_pct=100 * t * float(found.intercept_stderr),
        per_million_s=float(found.slope),
        per_million_half_s=t * float(found.stderr),
        runs=len(cores),
        from_per_s=min(processed_per_s),
        to_per_s=max(processed_per_s),
    )
