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

CONFIDENCE = 0.95
# Logarithms closer than this differ by rounding only.
ROUNDING = 1e-9
FEWEST_RUNS, FEWEST_RATES = 3, 2


@dataclass(frozen=True)
class Mean:
    """The arithmetic mean of `n` repeats; `half` is half its interval, None for one repeat."""

    mean: float
    half: float | None
    n: int


@dataclass(frozen=True)
class Ratio:
    """Ratio of two means with its interval; None without repeats, or if all are equal."""

    ratio: float
    low: float | None
    high: float | None

    @property
    def conclusion(self) -> str:
        """Conclusion from the interval."""
        if self.low is None or self.high is None:
            return "no interval: too few repeats, or all equal"
        if self.low <= 1 <= self.high:
            return "no difference shown"
        return "more" if self.low > 1 else "less"


def mean(values: Sequence[float]) -> Mean:
    """Return the mean and half its t-interval (CONFIDENCE).

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
    return Mean(found, error * _t_quantile(n - 1), n)


def half_range(values: Sequence[float]) -> float:
    """Return the half-range as a fraction of the midpoint.

    Raises:
        ValueError: there are no values.
    """
    return (max(values) - min(values)) / (max(values) + min(values))


def ratio(of: Sequence[float], to: Sequence[float]) -> Ratio | None:
    """Return the geometric mean of `of` over that of `to`, with its interval (CONFIDENCE).

    None if a value is not positive, or a side is empty.
    """
    if not of or not to or min(*of, *to) <= 0:
        return None
    a, b = np.log(of), np.log(to)
    middle = float(np.mean(a) - np.mean(b))
    if min(len(a), len(b)) < 2 or float(np.ptp(a) + np.ptp(b)) < ROUNDING:
        return Ratio(math.exp(middle), None, None)
    # Not scipy's Welch test: it warns if the repeats of one side are equal, as memory often is.
    errors = [float(np.var(side, ddof=1)) / len(side) for side in (a, b)]
    freedom = sum(errors) ** 2 / sum(
        error**2 / (len(side) - 1) for error, side in zip(errors, (a, b), strict=True)
    )
    half = math.sqrt(sum(errors)) * _t_quantile(freedom)
    return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


@dataclass(frozen=True)
class CostLine:
    """CPU use as a line: `base_pct` (percent of a core) + `per_million_s` (CPU seconds per million
    pageviews) x rate; each with half its 95 % interval (Student's t)."""

    base_pct: float
    base_half_pct: float
    per_million_s: float
    per_million_half_s: float
    runs: int
    from_per_s: float  # lowest and highest processed rate
    to_per_s: float


def fit_cost(processed_per_s: Sequence[float], cores: Sequence[float]) -> CostLine | None:
    """Return the least-squares line through runs, from pageviews per second and cores used; None
    with too few runs or rates."""
    if (
        len(cores) < FEWEST_RUNS
        or len({round(rate, -1) for rate in processed_per_s}) < FEWEST_RATES
    ):
        return None
    from scipy import stats  # takes a second to import

    found = stats.linregress([rate / 1e6 for rate in processed_per_s], cores)
    t = _t_quantile(len(cores) - 2)
    return CostLine(
        base_pct=100 * float(found.intercept),
        base_half_pct=100 * t * float(found.intercept_stderr),
        per_million_s=float(found.slope),
        per_million_half_s=t * float(found.stderr),
        runs=len(cores),
        from_per_s=min(processed_per_s),
        to_per_s=max(processed_per_s),
    )


def _t_quantile(degrees: float) -> float:
    """Return the upper end of Student's central interval (CONFIDENCE)."""
    from scipy import special

    return float(special.stdtrit(degrees, (1 + CONFIDENCE) / 2))
