"""Comparison of engines, or of recorded sets of runs ("sides"), by measured windows ("pieces"):
ratios with intervals, and rankings.

Logarithms of figures are compared, since the variation of costs and lags is proportional to their
size. Two or three repeats give a poor estimate of a variance, so variances are pooled: for figures
measured at several rates, over the rates of a side, since their scatter is similar; for figures
without rates, such as capacity, over all sides. The interval of a ratio is Welch's 95 % interval
(1947) with these variances.

A machine that others share may become slower within an hour, for all engines alike. So if there
are enough repeats (LEAST_FREEDOM), engines are compared within each repeat, in which all are
measured in turn: a randomized block design, whose interval contains no difference between repeats.

A difference is claimed if it is significant, with the error probability controlled over all
questions together (Holm 1979), and if it is large enough for the harness to resolve. Of 20
comparisons of an engine with itself, at most one claims a difference (simulated in
tests/analysis/test_comparison.py).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from racetrack.analysis.calibration import CAPACITY_WITHIN, FOREIGN_WITHIN_PCT, LAG_WITHIN_MS
from racetrack.analysis.intervals import (
    CONFIDENCE,
    FEWEST_RATES,
    Ratio,
    Summary,
    summary,
    t_quantile,
)
from racetrack.results.figures import NOT_SUSTAINED
from racetrack.results.repeats import ComparisonRecord, Piece

# Error probability of Holm's procedure. The probability of a false claim is below 5 %, because
# differences that the harness does not resolve are not claimed either.
FAMILY_ERROR = 0.08
# Lower limit of the standard deviation of logarithms: a smaller one is due to rounding.
LEAST_DEVIATION = 0.002
# Relative repeatability of CPU costs on an idle machine (docs/measured.md).
COST_WITHIN = 0.05
# Fewest degrees of freedom of a comparison within repeats. With fewer, its interval would be wider
# than Welch's.
LEAST_FREEDOM = 4

Figures = dict[tuple[str, int | None], Summary]  # by metric and rate


@dataclass(frozen=True)
class Metric:
    """A figure by which sides are compared. A difference below `within` (relative) or `within_abs`
    (in `unit`) is a tie, since the harness does not resolve it, as `./race calibrate` shows."""

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
# Shown but never used for ranking: for an engine that updates once a second, it is the lowest point
# of a sawtooth.
PROCESSING_LAG = Metric("processing_lag_p50_ms", "processing lag p50", "ms")

AT_RATES = (CPU, LAG_P50, LAG_P99, READ_TIME, READ_AGE, PROCESSING_LAG)
OVERALL = (CAPACITY, MEMORY, BASE)
# Metrics that a comparison ranks. The first three are compared at the highest rate with which all
# sides kept up.
QUESTIONS = (CPU, LAG_P99, READ_TIME, CAPACITY, MEMORY, BASE)


@dataclass(frozen=True)
class Side:
    """One side of a comparison. `figures` has the keys (metric, rate); the rate is None for figures
    without one. `not_sustained` are rates with which the side did not keep up. `lower_bounds` are
    metrics whose value is only a lower bound. `repeats` contains, for each figure, the numbers of
    the repeats in which its values were measured; it is empty for recorded runs, whose sides were
    not measured in turn."""

    label: str
    figures: Mapping[tuple[str, int | None], Summary]
    not_sustained: frozenset[int] = frozenset()
    lower_bounds: frozenset[str] = frozenset()
    repeats: Mapping[tuple[str, int | None], tuple[int, ...]] = field(default_factory=dict)

    @property
    def rates(self) -> frozenset[int]:
        """Rates with figures."""
        return frozenset(rate for _, rate in self.figures if rate is not None)


@dataclass(frozen=True)
class Difference:
    """Ratio of side `of` to side `to`. `p` is the two-sided p-value, None without repeats.
    `is_shown` is true if a difference is claimed."""

    of: str
    to: str
    ratio: Ratio
    p: float | None = None
    is_shown: bool = False


@dataclass(frozen=True)
class Answer:
    """Comparison of all sides by one metric at a rate (None: the metric has no rate). `order`
    contains the labels from best to worst. `leaders` are the best side and all sides for which no
    difference from the best is claimed."""

    metric: Metric
    rate: int | None
    values: Mapping[str, Summary]
    order: tuple[str, ...]
    differences: Mapping[tuple[str, str], Difference] = field(default_factory=dict)
    leaders: tuple[str, ...] = ()

    def between(self, of: str, to: str) -> Difference | None:
        """Return the difference of two sides; None if their ratio can't be computed."""
        return self.differences.get((of, to))


def highest_common_rate(sides: Sequence[Side]) -> int | None:
    """Return the highest rate at which all sides were measured and kept up; None if there is
    none."""
    sustained = [side.rates - side.not_sustained for side in sides]
    return max(frozenset.intersection(*sustained), default=None) if sustained else None


def answers(sides: Sequence[Side]) -> list[Answer]:
    """Compare the sides by each metric in QUESTIONS for which at least two sides have figures."""
    top = highest_common_rate(sides)
    found = [_answer(metric, _rate_of(metric, top, sides), sides) for metric in QUESTIONS]
    return _claimed([answer for answer in found if len(answer.values) > 1], sides)


def _rate_of(metric: Metric, top: int | None, sides: Sequence[Side]) -> int | None:
    if metric in AT_RATES:
        return top
    # Sides made from recorded runs have figures of memory by rate only.
    has_own = all((metric.key, None) in side.figures for side in sides)
    return None if has_own or metric is not MEMORY else top


def _answer(metric: Metric, rate: int | None, sides: Sequence[Side]) -> Answer:
    values = {
        side.label: mean_of(side, metric.key, rate, sides)
        for side in sides
        if (metric.key, rate) in side.figures
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
    """Decide which differences are claimed, by Holm's procedure (1979) over all pairs of all
    questions, and which sides lead."""
    bounds = {side.label: side.lower_bounds for side in sides}
    tests = sorted(
        (one.p, number, pair)
        for number, answer in enumerate(found)
        for pair, one in answer.differences.items()
        if pair[0] < pair[1] and one.p is not None
    )
    significant: set[tuple[int, tuple[str, str]]] = set()
    for rank, (p, number, pair) in enumerate(tests):
        # So the interval of each claimed ratio excludes 1.
        if p > min(1 - CONFIDENCE, FAMILY_ERROR / (len(tests) - rank)):
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
        is_shown = pair in significant and is_resolved(answer, *pair)
        # If the smaller value is a lower bound, the true value may be the larger one.
        low = min(pair, key=lambda label: answer.values[label].mean)
        is_shown = is_shown and key not in bounds[low]
        differences[pair] = replace(one, is_shown=is_shown)
    best = answer.order[0]
    behind = {of for (first, of), one in differences.items() if first == best and one.is_shown}
    leaders = tuple(label for label in answer.order if label not in behind)
    return replace(answer, differences=differences, leaders=leaders)


def is_resolved(answer: Answer, of: str, to: str) -> bool:
    """Return whether two sides differ by more than the harness resolves."""
    one, other = answer.values[of].mean, answer.values[to].mean
    apart = abs(one - other)
    metric = answer.metric
    return apart > metric.within_abs and apart > metric.within * min(abs(one), abs(other))


@dataclass(frozen=True)
class _LogMean:
    """Mean of logarithms, with its variance and the variance's degrees of freedom (0: the variance
    is unknown). `is_pooled` is true if all sides have the same variance."""

    mean: float
    variance: float
    freedom: float
    is_pooled: bool = False


def difference(
    of: Side, to: Side, key: str, rate: int | None, among: Sequence[Side] = ()
) -> Difference | None:
    """Return the ratio of two sides with its 95 % interval; None if a value is not positive.
    `among` contains all sides of the comparison."""
    among = among or (of, to)
    one, other = (_log_mean(side, key, rate, among) for side in (of, to))
    if one is None or other is None:
        return None
    middle = one.mean - other.mean
    if not (one.freedom and other.freedom):
        return Difference(of.label, to.label, Ratio(math.exp(middle), None, None))
    if paired := _within_repeats(of, to, key, rate, among):
        middle, variance, freedom = paired.mean, paired.variance, paired.freedom
    else:
        variance, freedom = one.variance + other.variance, _welch(one, other)
    half = math.sqrt(variance) * t_quantile(freedom)
    p = _p_value(middle / math.sqrt(variance), freedom)
    return Difference(of.label, to.label, Ratio(*_exp(middle, half)), p)


def _welch(one: _LogMean, other: _LogMean) -> float:
    """Return the degrees of freedom of the difference of two means."""
    if one.is_pooled and other.is_pooled:
        return one.freedom
    variance = one.variance + other.variance
    return variance**2 / (one.variance**2 / one.freedom + other.variance**2 / other.freedom)


def _within_repeats(
    of: Side, to: Side, key: str, rate: int | None, among: Sequence[Side]
) -> _LogMean | None:
    """Return the logarithm of the ratio of two sides within repeats; None if there are too few.

    For a figure with rates, the variance is that of the ratios at all rates. For others it is the
    mean square of the residuals of all sides, without the means of sides and of repeats.
    """
    here = _by_repeat([of, to], key, rate)
    if rate is None:
        tables = [_by_repeat([side for side in among if (key, None) in side.figures], key, None)]
    else:
        behind = of.not_sustained | to.not_sustained
        tables = [_by_repeat([of, to], key, at) for at in (of.rates & to.rates) - behind]
    squares, freedom = 0.0, 0
    for table in tables:
        sides, repeats = table.shape
        if sides > 1 and repeats > 1:
            residuals = (
                table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
            )
            squares += float(np.sum(residuals**2))
            freedom += (sides - 1) * (repeats - 1)
    if freedom < LEAST_FREEDOM or not here.size:
        return None
    variance = 2 * max(squares / freedom, LEAST_DEVIATION**2) / here.shape[1]
    return _LogMean(float(np.mean(here[0] - here[1])), variance, freedom)


def _by_repeat(sides: Sequence[Side], key: str, rate: int | None) -> NDArray[np.float64]:
    """Return the logarithms of a figure: a row for each side, a column for each repeat of which all
    sides have a positive value."""
    at = (key, rate)
    found = [
        {
            repeat: value
            for repeat, value in zip(side.repeats[at], side.figures[at].values, strict=True)
            if value > 0
        }
        if at in side.repeats
        else {}
        for side in sides
    ]
    common = sorted(set.intersection(*(set(of) for of in found)))
    values = np.array([[of[repeat] for repeat in common] for of in found], dtype=np.float64)
    logarithms: NDArray[np.float64] = np.log(values)
    return logarithms


def mean_of(side: Side, key: str, rate: int | None, among: Sequence[Side]) -> Summary:
    """Return the geometric mean of a figure with its 95 % interval, from the same variance as in
    `difference`. A figure that can't be pooled keeps its own mean and interval: if a value is not
    positive, if its single values are unknown, or if the side did not keep up with the rate."""
    of = side.figures[key, rate]
    if not of.values or rate in side.not_sustained:
        return of
    one = _log_mean(side, key, rate, among)
    if one is None:
        return of
    if not one.freedom:
        return Summary(math.exp(one.mean), None, None, of.n, of.values)
    half = math.sqrt(one.variance) * t_quantile(one.freedom)
    return Summary(*_exp(one.mean, half), of.n, of.values, one.freedom)


def _exp(middle: float, half: float) -> tuple[float, float, float]:
    """Return the exponentials of a value and of the ends of its interval."""
    return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


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
    """Return the pooled variance of the logarithms within each side and rate, and its degrees of
    freedom."""
    squares, freedom = 0.0, 0
    for side in sides:
        for (name, rate), of in side.figures.items():
            known = of.values if name == key and rate not in side.not_sustained else ()
            if len(known) > 1 and min(known) > 0:
                squares += float(np.var(np.log(known))) * len(known)
                freedom += len(known) - 1
    if not freedom:
        return 0.0, 0
    return max(squares / freedom, LEAST_DEVIATION**2), freedom


def _of_interval(of: Summary) -> _LogMean | None:
    """Return the mean logarithm of a figure whose single values are unknown, as in a result file,
    computed from its mean and interval."""
    if of.mean <= 0:
        return None
    half = of.log_half
    freedom = of.freedom or of.n - 1
    if half is None or not freedom:
        return _LogMean(math.log(of.mean), 0.0, 0)
    deviation = max(half / t_quantile(freedom), LEAST_DEVIATION)
    return _LogMean(math.log(of.mean), deviation**2, freedom)


def _p_value(t: float, freedom: float) -> float:
    """Return the two-sided p-value of Student's t."""
    from scipy import special

    return 2 * float(special.stdtr(freedom, -abs(t)))


def sides_of(record: ComparisonRecord) -> list[Side]:
    """Return a side for each engine, from its pieces with the outcome `ok`. Engines without figures
    are left out."""
    sides = [
        side_of(engine, [one for one in record.pieces if one.engine == engine], record.rates)
        for engine in record.engines
    ]
    return [side for side in sides if side.figures]


def side_of(label: str, pieces: Sequence[Piece], rates: Sequence[int]) -> Side:
    """Return a side from its pieces. Only those with the outcome `ok` count."""
    pieces = [one for one in pieces if one.outcome == "ok"]
    at_rates = [one for one in pieces if one.pageviews_per_s is not None]
    saturated = [one for one in pieces if one.pageviews_per_s is None]
    whole = list(_whole_repeats(at_rates, rates))
    values = _at_rates(at_rates)
    values[CAPACITY.key, None] = [(one.repeat, one.figures.get(CAPACITY.key)) for one in saturated]
    values[MEMORY.key, None] = [(of[0].repeat, _memory_max_gib(of)) for of in whole]
    values[BASE.key, None] = [(of[0].repeat, base_pct(_cpu_by_rate(of))) for of in whole]
    figures: Figures = {}
    repeats: dict[tuple[str, int | None], tuple[int, ...]] = {}
    for at, pairs in values.items():
        if known := [(repeat, value) for repeat, value in pairs if value is not None]:
            figures[at] = summary([value for _, value in known])
            repeats[at] = tuple(repeat for repeat, _ in known)
    not_sustained = {
        one.pageviews_per_s
        for one in at_rates
        if one.verdict in NOT_SUSTAINED and one.pageviews_per_s is not None
    }
    bounds = {CAPACITY.key} if any(one.is_lower_bound for one in saturated) else set()
    return Side(label, figures, frozenset(not_sustained), frozenset(bounds), repeats)


def _at_rates(
    pieces: Sequence[Piece],
) -> dict[tuple[str, int | None], list[tuple[int, float | None]]]:
    """Return the figures at each rate, with the number of their repeat."""
    values: dict[tuple[str, int | None], list[tuple[int, float | None]]] = {}
    for piece in pieces:
        known = {**piece.figures, MEMORY.key: memory_gib(piece.figures)}
        for metric in (*AT_RATES, MEMORY):
            pair = (piece.repeat, known.get(metric.key))
            values.setdefault((metric.key, piece.pageviews_per_s), []).append(pair)
    return values


def _whole_repeats(pieces: Sequence[Piece], rates: Sequence[int]) -> Iterable[list[Piece]]:
    """Yield the pieces of each run that contains all rates. Incomplete runs are left out, because
    memory grows with the number of events in a run."""
    for tag in dict.fromkeys(piece.tag for piece in pieces):
        mine = [piece for piece in pieces if piece.tag == tag]
        if {piece.pageviews_per_s for piece in mine} >= set(rates):
            yield mine


def _memory_max_gib(pieces: Sequence[Piece]) -> float | None:
    known = [gib for piece in pieces if (gib := memory_gib(piece.figures)) is not None]
    return max(known, default=None)


def memory_gib(figures: Mapping[str, float | None]) -> float | None:
    """Return the memory in the figures of a window: PSS plus files on tmpfs, or resident memory if
    PSS is unknown."""
    pss_gib = pss_with_tmpfs_gib(figures)
    return figures.get("rss_max_gib") if pss_gib is None else pss_gib


def pss_with_tmpfs_gib(figures: Mapping[str, float | None]) -> float | None:
    """Return PSS plus files on tmpfs in the figures of a window; None if PSS is unknown."""
    pss_gib, tmpfs_gib = figures.get("pss_max_gib"), figures.get("tmpfs_max_gib")
    return None if pss_gib is None else pss_gib + (tmpfs_gib or 0.0)


def _cpu_by_rate(pieces: Sequence[Piece]) -> list[tuple[float, float]]:
    pairs = [
        (one.figures.get("processed_pageviews_per_s"), one.figures.get("cpu_mean_pct"))
        for one in pieces
        if one.verdict not in NOT_SUSTAINED
    ]
    return [(rate, pct) for rate, pct in pairs if rate is not None and pct is not None]


def base_pct(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the CPU use extrapolated to rate 0, in percent of a core, from a least-squares line
    through the rates of a run. None with fewer than two rates, or if the result is not positive."""
    if len({round(rate, -1) for rate, _ in points}) < FEWEST_RATES:
        return None
    rates, used_pct = [rate for rate, _ in points], [pct for _, pct in points]
    _, intercept = np.polyfit(rates, used_pct, deg=1)
    return float(intercept) if intercept > 0 else None
