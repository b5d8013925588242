"""Comparison of engines, or of recorded sets of runs: ratios with intervals, and who is first.

Figures are compared on logarithms, since costs and lags vary in proportion. Two or three repeats
estimate a variance badly, so it is pooled: that of a side over its rates, which scatter alike; that
of a figure without rates, such as capacity, over all sides. The interval of a ratio is Welch's
(1947) with these variances, of 95 %. A difference is claimed if it is significant among all
questions together (Holm 1979) and larger than what the harness resolves: of 20 comparisons of an
engine with itself, at most one claims any (simulated in tests/analysis/test_comparison.py).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from racetrack.analysis.calibration import CAPACITY_WITHIN, FOREIGN_WITHIN_PCT, LAG_WITHIN_MS
from racetrack.analysis.compare import Ratio, Summary, t_quantile

# Error of Holm's procedure; what the harness resolves lowers that of the answer below 5 %.
FAMILY_ERROR = 0.08
# A standard deviation below this is rounding; repeats may even be equal.
LEAST_DEVIATION = 0.002
# Costs by the kernel's account repeat no better on an idle machine (docs/measured.md).
COST_WITHIN = 0.05


@dataclass(frozen=True)
class Metric:
    """A figure by which sides are compared. A difference below `within` (relative) or `within_abs`
    (in `unit`) is a tie: `./race calibrate` shows that the harness does not resolve it."""

    key: str
    title: str
    unit: str
    within: float = 0.0
    within_abs: float = 0.0
    more_is_better: bool = False


CPU = Metric("cpu_s_per_million", "CPU", "CPU-s per million", COST_WITHIN)
LAG_P50 = Metric("lag_p50_ms", "lag p50", "ms", within_abs=LAG_WITHIN_MS)
LAG_P99 = Metric("lag_p99_ms", "lag p99", "ms", within_abs=LAG_WITHIN_MS)
READ_TIME = Metric("read_time_p99_ms", "read time p99", "ms", within_abs=LAG_WITHIN_MS)
READ_AGE = Metric("read_age_p99_ms", "read age p99", "ms", within_abs=LAG_WITHIN_MS)
CAPACITY = Metric("capacity_per_s", "capacity", "/s", CAPACITY_WITHIN, more_is_better=True)
MEMORY = Metric("memory_gib", "memory max", "GiB", COST_WITHIN)
BASE = Metric("base_cpu_pct", "base CPU", "% of a core", within_abs=FOREIGN_WITHIN_PCT)
# Shown, never ranked: the lowest points of an engine that updates once a second.
PROCESSING_LAG = Metric("processing_lag_p50_ms", "processing lag p50", "ms")

AT_RATES = (CPU, LAG_P50, LAG_P99, READ_TIME, READ_AGE, PROCESSING_LAG)
OVERALL = (CAPACITY, MEMORY, BASE)
# What a comparison answers; the first three at the highest rate that every side held.
QUESTIONS = (CPU, LAG_P99, READ_TIME, CAPACITY, MEMORY, BASE)


@dataclass(frozen=True)
class Side:
    """One side of a comparison. `figures`: (key of the metric, rate or None) → repeats.
    `not_held` are rates that it did not keep up with, `lower_bounds` metrics whose value is only a
    lower bound."""

    label: str
    figures: Mapping[tuple[str, int | None], Summary]
    not_held: frozenset[int] = frozenset()
    lower_bounds: frozenset[str] = frozenset()

    @property
    def rates(self) -> frozenset[int]:
        """Rates with figures."""
        return frozenset(rate for _, rate in self.figures if rate is not None)


@dataclass(frozen=True)
class Difference:
    """The ratio of side `of` to side `to`. `p` is the two-sided p-value, None without repeats;
    `is_shown` whether the difference is claimed."""

    of: str
    to: str
    ratio: Ratio
    p: float | None = None
    is_shown: bool = False


@dataclass(frozen=True)
class Answer:
    """Sides by one metric, at one rate (None: over all). `order` is from best to worst; `leaders`
    are the best, and those that don't differ from it."""

    metric: Metric
    rate: int | None
    values: Mapping[str, Summary]
    order: tuple[str, ...]
    differences: Mapping[tuple[str, str], Difference] = field(default_factory=dict)
    leaders: tuple[str, ...] = ()

    def between(self, of: str, to: str) -> Difference | None:
        """Return the difference of two sides; None if it has no ratio."""
        return self.differences.get((of, to))


def highest_common_rate(sides: Sequence[Side]) -> int | None:
    """Return the highest rate that every side was measured at and kept up with."""
    held = [side.rates - side.not_held for side in sides]
    return max(frozenset.intersection(*held), default=None) if held else None


def answers(sides: Sequence[Side]) -> list[Answer]:
    """Answer every question that at least two sides have figures for."""
    top = highest_common_rate(sides)
    found = [_answer(metric, _rate_of(metric, top, sides), sides) for metric in QUESTIONS]
    return _claimed([answer for answer in found if len(answer.values) > 1], sides)


def _rate_of(metric: Metric, top: int | None, sides: Sequence[Side]) -> int | None:
    if metric in AT_RATES:
        return top
    # Recorded runs have their memory by rate only.
    has_own = all((metric.key, None) in side.figures for side in sides)
    return None if has_own or metric is not MEMORY else top


def _answer(metric: Metric, rate: int | None, sides: Sequence[Side]) -> Answer:
    values = {
        side.label: of for side in sides if (of := side.figures.get((metric.key, rate))) is not None
    }
    sign = -1 if metric.more_is_better else 1
    order = tuple(sorted(values, key=lambda label: sign * values[label].mean))
    by_label = {side.label: side for side in sides}
    differences = {
        (of, to): found
        for of in order
        for to in order
        if of != to and (found := difference(by_label[of], by_label[to], metric.key, rate, sides))
    }
    return Answer(metric, rate, values, order, differences)


def _claimed(found: Sequence[Answer], sides: Sequence[Side]) -> list[Answer]:
    """Decide which differences are shown, among all pairs of all questions (Holm 1979), and who
    leads."""
    bounds = {side.label: side.lower_bounds for side in sides}
    tests = sorted(
        (one.p, number, pair)
        for number, answer in enumerate(found)
        for pair, one in answer.differences.items()
        if pair[0] < pair[1] and one.p is not None
    )
    significant: set[tuple[int, tuple[str, str]]] = set()
    for rank, (p, number, pair) in enumerate(tests):
        if p > FAMILY_ERROR / (len(tests) - rank):
            break
        significant |= {(number, pair), (number, pair[::-1])}
    return [
        _decided(answer, {pair for at, pair in significant if at == number}, bounds)
        for number, answer in enumerate(found)
    ]


def _decided(
    answer: Answer,
    significant: set[tuple[str, str]],
    bounds: Mapping[str, frozenset[str]],
) -> Answer:
    key = answer.metric.key
    differences = {}
    for pair, one in answer.differences.items():
        is_shown = pair in significant and _is_resolved(answer, *pair)
        # A lower bound may be above all that it does not exceed.
        low = min(pair, key=lambda label: answer.values[label].mean)
        is_shown = is_shown and key not in bounds[low]
        differences[pair] = replace(one, is_shown=is_shown)
    best = answer.order[0]
    behind = {of for (first, of), one in differences.items() if first == best and one.is_shown}
    leaders = tuple(label for label in answer.order if label not in behind)
    return replace(answer, differences=differences, leaders=leaders)


def _is_resolved(answer: Answer, of: str, to: str) -> bool:
    one, other = answer.values[of].mean, answer.values[to].mean
    apart = abs(one - other)
    metric = answer.metric
    return apart > metric.within_abs and apart > metric.within * min(abs(one), abs(other))


@dataclass(frozen=True)
class _LogMean:
    """Mean logarithm, its variance, the degrees of freedom of that (0: unknown variance), and
    whether it is the same variance for all sides."""

    mean: float
    variance: float
    freedom: float
    is_pooled: bool = False


def difference(
    of: Side, to: Side, key: str, rate: int | None, among: Sequence[Side] = ()
) -> Difference | None:
    """Return the ratio of two sides with its 95 % interval; None if a value is not above 0. `among`
    are all sides of the comparison."""
    one, other = (_log_mean(side, key, rate, among or (of, to)) for side in (of, to))
    if one is None or other is None:
        return None
    middle = one.mean - other.mean
    if not (one.freedom and other.freedom):
        return Difference(of.label, to.label, Ratio(math.exp(middle), None, None))
    variance = one.variance + other.variance
    if one.is_pooled and other.is_pooled:
        freedom = one.freedom
    else:
        freedom = variance**2 / (one.variance**2 / one.freedom + other.variance**2 / other.freedom)
    half = math.sqrt(variance) * t_quantile(freedom)
    ratio = Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half))
    return Difference(of.label, to.label, ratio, _p_value(middle / math.sqrt(variance), freedom))


def _log_mean(side: Side, key: str, rate: int | None, among: Sequence[Side]) -> _LogMean | None:
    of = side.figures[key, rate]
    if not of.values:
        return _of_interval(of)
    if min(of.values) <= 0:
        return None
    variance, freedom = _pooled(among if rate is None else [side], key)
    mean = float(np.mean(np.log(of.values)))
    return _LogMean(mean, variance / len(of.values), freedom, is_pooled=rate is None)


def _pooled(sides: Sequence[Side], key: str) -> tuple[float, int]:
    """Return the variance of the logarithms within each side and rate, pooled, and its degrees of
    freedom."""
    squares, freedom = 0.0, 0
    for side in sides:
        for (name, rate), of in side.figures.items():
            known = of.values if name == key and rate not in side.not_held else ()
            if len(known) > 1 and min(known) > 0:
                squares += float(np.var(np.log(known))) * len(known)
                freedom += len(known) - 1
    if not freedom:
        return 0.0, 0
    return max(squares / freedom, LEAST_DEVIATION**2), freedom


def _of_interval(of: Summary) -> _LogMean | None:
    """Return the logarithm of a mean of which only the interval is known, as from a result file."""
    if of.mean <= 0:
        return None
    if of.low is None or of.high is None or of.n < 2:
        return _LogMean(math.log(of.mean), 0.0, 0)
    half = math.log1p((of.high - of.low) / 2 / of.mean)
    deviation = max(half / t_quantile(of.n - 1), LEAST_DEVIATION)
    return _LogMean(math.log(of.mean), deviation**2, of.n - 1)


def _p_value(t: float, freedom: float) -> float:
    """Return the two-sided p-value of Student's t."""
    from scipy import special

    return 2 * float(special.stdtr(freedom, -abs(t)))
