"""Means and ratios of repeated runs with their intervals, and base and marginal cost.

The interval of a mean is Student's t interval: each repeat is a fresh run, so repeats are
independent. A ratio of engines is the ratio of their geometric means, and its interval is Welch's t
interval (unequal variances, Welch 1947) of the logarithms, because costs and lags are positive and
their variation is proportional to their size. Swapping the engines gives the reciprocal, and the
interval is always bounded, unlike Fieller's (1954).

At low rates most CPU time is base load, so CPU seconds per million pageviews say little about the
cost of a pageview. Therefore a line is fitted through runs at several rates: its intercept is the
base load, and its slope the marginal cost.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95
# A difference of logarithms below this is rounding error.
ROUNDING = 1e-9
FEWEST_RUNS, FEWEST_RATES = 3, 2


@dataclass(frozen=True)
class Summary:
    """Mean of a figure over `n` runs. `low` and `high` are the ends of its interval, None for a
    single run. `values` are the runs' values; empty if they are unknown, as in a result file.
    `freedom` are the degrees of freedom of Student's t in the interval, if not `n` - 1."""

    mean: float
    low: float | None
    high: float | None
    n: int
    values: tuple[float, ...] = ()
    freedom: float | None = None

    @property
    def half(self) -> float | None:
        """Half-width of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    def is_below(self, other: "Summary") -> bool:
        """Return whether the whole interval lies below that of `other`; a single run counts as
        exact."""
        return self.mean + (self.half or 0.0) < other.mean - (other.half or 0.0)

    @property
    def log_half(self) -> float | None:
        """Half-width of the interval of the mean's logarithm; None if it is unknown or infinite."""
        if self.high is None or not math.isfinite(self.high):
            return None
        return math.log(self.high / self.mean)


@dataclass(frozen=True)
class Ratio:
    """Ratio of two means. The interval from `low` to `high` is None if a side has only one run, or
    if the runs of each side are equal."""

    ratio: float
    low: float | None
    high: float | None

    @property
    def excludes_1(self) -> bool | None:
        """True if the interval shows a difference; None if it is unknown."""
        if self.low is None or self.high is None:
            return None
        return not self.low <= 1 <= self.high

    @property
    def conclusion(self) -> str:
        """Text that states which side is larger, as far as the interval shows that."""
        if self.excludes_1 is None:
            return "no interval: too few repeats, or all equal"
        if not self.excludes_1:
            return "no difference shown"
        return "more" if self.ratio > 1 else "less"


def summary(values: Sequence[float]) -> Summary:
    """Return the arithmetic mean of the values of runs with its t interval (CONFIDENCE).

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("no mean of no values")
    n, mean = len(values), float(np.mean(values))
    if n < 2:
        return Summary(mean, None, None, n, tuple(values))
    half = float(np.std(values, ddof=1)) / math.sqrt(n) * t_quantile(n - 1)
    return Summary(mean, mean - half, mean + half, n, tuple(values))


def means(repeats: Sequence[Mapping[str, object]], keys: Iterable[str]) -> dict[str, Summary]:
    """Return the mean of each of these figures over repeats. Figures that any repeat lacks are left
    out."""
    found = {}
    for key in keys:
        known = [of for repeat in repeats if isinstance(of := repeat.get(key), int | float)]
        if len(known) == len(repeats):
            found[key] = summary(known)
    return found


def half_range(values: Sequence[float]) -> float:
    """Return half of the range of the values as a fraction of its midpoint.

    Raises:
        ValueError: there are no values.
    """
    return (max(values) - min(values)) / (max(values) + min(values))


def ratio(of: Sequence[float], to: Sequence[float]) -> Ratio | None:
    """Return the geometric mean of `of` divided by the geometric mean of `to`, with an interval
    (CONFIDENCE). None if a value is not positive, or if `of` or `to` is empty.
    """
    if not of or not to or min(*of, *to) <= 0:
        return None
    a, b = np.log(of), np.log(to)
    middle = float(np.mean(a) - np.mean(b))
    if min(len(a), len(b)) < 2 or float(np.ptp(a) + np.ptp(b)) < ROUNDING:
        return Ratio(math.exp(middle), None, None)
    # scipy's Welch test warns if all values of one side are equal, which is common for memory.
    errors = [float(np.var(side, ddof=1)) / len(side) for side in (a, b)]
    freedom = sum(errors) ** 2 / sum(
        error**2 / (len(side) - 1) for error, side in zip(errors, (a, b), strict=True)
    )
    half = math.sqrt(sum(errors)) * t_quantile(freedom)
    return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def ratio_of(of: Summary, to: Summary) -> Ratio | None:
    """Return the ratio of two summaries, computed from the values of their runs. If these are
    unknown, it is computed from the means, and its interval from the relative widths of both
    intervals, combined as independent errors. None if a mean is not positive.
    """
    if of.values and to.values:
        return ratio(of.values, to.values)
    if min(of.mean, to.mean) <= 0:
        return None
    middle = of.mean / to.mean
    widths = [of.log_half, to.log_half]
    if None in widths:
        return Ratio(middle, None, None)
    half = math.hypot(*(width for width in widths if width is not None))
    return Ratio(middle, middle * math.exp(-half), middle * math.exp(half))


@dataclass(frozen=True)
class CostLine:
    """CPU use as a linear function of the rate: the base load `base_pct` (percent of a core) plus
    `per_million_s` (CPU seconds per million pageviews) times the rate. `…_half_…` is the half-width
    of a 95 % interval (Student's t)."""

    base_pct: float
    base_half_pct: float
    per_million_s: float
    per_million_half_s: float
    runs: int
    from_per_s: float  # lowest and highest processed rate
    to_per_s: float


def fit_cost(runs: Iterable[tuple[float | None, float | None]]) -> CostLine | None:
    """Fit a least-squares line through the runs, given the pageviews per second and the CPU use in
    percent of a core of each. Runs without one of them are left out. Return None if there are fewer
    than FEWEST_RUNS runs or FEWEST_RATES rates."""
    known = [(rate, pct / 100) for rate, pct in runs if rate and pct is not None]
    rates = [rate for rate, _ in known]
    if len(known) < FEWEST_RUNS or len({round(rate, -1) for rate in rates}) < FEWEST_RATES:
        return None
    from scipy import stats  # takes a second to import

    found = stats.linregress([rate / 1e6 for rate in rates], [cores for _, cores in known])
    t = t_quantile(len(known) - 2)
    return CostLine(
        base_pct=100 * float(found.intercept),
        base_half_pct=100 * t * float(found.intercept_stderr),
        per_million_s=float(found.slope),
        per_million_half_s=t * float(found.stderr),
        runs=len(known),
        from_per_s=min(rates),
        to_per_s=max(rates),
    )


def t_quantile(degrees: float) -> float:
    """Return the quantile of Student's t distribution that bounds a central interval
    (CONFIDENCE)."""
    from scipy import special

    return float(special.stdtrit(degrees, (1 + CONFIDENCE) / 2))
