"""Estimates of figures with intervals, and the one rule by which engines may be called different.

Logarithms of figures are compared, since the variation of costs and lags is proportional to their
size. Two or three repeats give a poor estimate of a variance, so variances are pooled: for figures
measured at several loads, over the loads that a variant held, since their scatter is similar; for
figures without a load, such as capacity, over all variants, except recoveries and variants that
scatter more than the others by an F test (UNLIKE). The interval of a ratio is Welch's 95 %
interval (1947) with these variances.

A machine that others share may become slower within an hour, for all engines alike. So with at
least LEAST_FREEDOM degrees of freedom, variants are compared within each repeat, in which all are
measured in turn: a randomized block design, whose interval contains no difference between repeats.

A difference is claimed if it is significant, with the error probability controlled over all
questions of one call (Holm 1979), if the repeats resolve its interval, and if the harness resolves
the difference. Of 20 calls that compare an
engine with itself, at most one claims a difference (simulated in tests/analysis/test_claims.py).
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from racetrack.analysis.intervals import CONFIDENCE, Ratio, Summary, summary, t_quantile
from racetrack.analysis.table import ENGINE_CORES, Interval, Load, Place, Row, whole_runs
from racetrack.metrics import (
    BASE_CPU,
    CAPACITY,
    MARGINAL_COST,
    NORMAL_AFTER,
    QUESTIONS,
    SATURATED_COST,
    SHARE_OF_IDEAL,
    WRONG_VIEWS,
    Metric,
    is_registered,
    metric_of,
)
from racetrack.results.classes import TITLES, ClassesOfRun, differing, ranked
from racetrack.results.run import SATURATION

# Error probability of Holm's procedure. The probability of a false claim is below 5 %, because
# differences that the harness does not resolve are not claimed either.
FAMILY_ERROR = 0.08
# Lower limit of the standard deviation of logarithms: a smaller one is due to rounding.
LEAST_DEVIATION = 0.002
# Fewest degrees of freedom of a comparison within repeats. With fewer, its interval would be wider
# than Welch's.
LEAST_FREEDOM = 4
# Error probability with which a variant that scatters like the others is said to scatter more.
UNLIKE = 0.001
# An interval is not resolved if its upper end is more than this many times its lower end, and
# imprecise if an end is further than this from the mean.
WIDEST, IMPRECISE = 4.0, 0.15
# Variants are compared at no rate below this share of the capacity of one of them, since timers and
# idle processes would rank there; and at the highest share of their capacities up to RANKED_SHARE.
LEAST_SHARE, RANKED_SHARE = 0.1, 0.5
# A capacity that something else limited is at most this many times what the engine's cores allow
# at its cost when saturated: the cost of an event may fall with the load.
HEADROOM = 2.0
FEW_LOADS = 4  # a line through fewer loads may be far off

REPLICAS = "engine_replicas"  # the setting, as recorded
Repeat = tuple[str, int]  # experiment and number of the repeat
Key = tuple[str, str, Load | None]  # variant, key of the metric, and load


class WhyNot:
    """Reasons why a difference is not claimed."""

    ONE_RUN = "only one run"
    NOT_SHOWN = "the repeats show no difference"
    MORE_REPEATS = "too few repeats"
    MORE_LOADS = "too few loads"
    TOO_SMALL = "smaller than what the harness resolves"
    LOWER_BOUND = "a value is only a lower bound"


@dataclass(frozen=True)
class Estimate:
    """Geometric mean of a figure over `n` runs with its 95 % interval. The interval is None if it
    is not resolved; then `why_not` is the reason. `values` are those of the runs, empty if they
    are unknown. Of these, `bounds` are only lower bounds: then the true mean may be higher, up to
    `at_most`."""

    mean: float
    low: float | None
    high: float | None
    n: int
    freedom: float | None = None
    values: tuple[float, ...] = ()
    bounds: int = 0
    why_not: str = ""
    at_most: float = math.inf

    @property
    def at_least(self) -> bool:
        """True if the mean is only a lower bound."""
        return self.bounds > 0

    @property
    def is_resolved(self) -> bool:
        """True if the runs gave an interval, or can't give one: a single run, or values without a
        known spread."""
        return self.n == 1 or self.at_limit > 0 or None not in (self.low, self.high)

    @property
    def is_imprecise(self) -> bool:
        """True if an end of the interval is further than IMPRECISE from the mean."""
        ends = [end for end in (self.low, self.high) if end is not None]
        return not self.at_limit and any(
            abs(end - self.mean) > IMPRECISE * self.mean for end in ends
        )

    @property
    def at_limit(self) -> int:
        """Number of runs with an infinite value, or of all if they are bounds, such as the time for
        which recoveries are watched: nothing is known of their spread."""
        if 1 < self.n <= self.bounds:
            return self.n
        return sum(map(math.isinf, self.values or (self.mean,)))


@dataclass(frozen=True)
class Pair:
    """Ratio of variant `of` to variant `to`, with its 95 % interval and two-sided p-value (None
    without repeats). If the difference is not claimed, `why_not` is the reason."""

    of: str
    to: str
    ratio: Ratio
    p: float | None = None
    claimed: bool = False
    why_not: str = ""


@dataclass(frozen=True)
class Claim:
    """Answer to one question: which variants differ in a figure at a load (None: the figure has no
    load). `order` are the variants from best to worst; `leaders` are the best one and all from
    which no difference is claimed to it. `classes` are those of all in `order`. `error` is the
    largest error of the figures, if they have one (`Metric.error`)."""

    metric: Metric
    load: Load | None
    estimates: Mapping[str, Estimate]
    order: tuple[str, ...]
    pairs: Mapping[tuple[str, str], Pair] = field(default_factory=dict)
    leaders: tuple[str, ...] = ()
    classes: Mapping[str, ClassesOfRun] = field(default_factory=dict)
    error: float = 0.0

    @property
    def is_decided(self) -> bool:
        """True if a difference from the best is claimed."""
        return len(self.leaders) < len(self.order)

    @property
    def across(self) -> tuple[str, ...]:
        """Titles of the classes in which the variants differ."""
        return tuple(TITLES[key] for key in differing(self.classes.values()))

    def among(self, names: Collection[str]) -> "Claim":
        """Return the answer for some variants only, with the same decisions on their pairs."""
        order = tuple(name for name in self.order if name in names)
        pairs = {at: pair for at, pair in self.pairs.items() if {*at} <= {*order}}
        some = replace(self, order=order, pairs=pairs)
        return replace(
            some,
            estimates={name: self.estimates[name] for name in order},
            leaders=_leaders(some),
            classes={name: self.classes[name] for name in order},
        )


def estimates(rows: "Rows") -> dict[Key, Estimate]:
    """Return the estimates of all figures of rows of one place."""
    samples = Samples.of(rows)
    known = {key: samples.estimate(key) for key in samples.by_key}
    return known | _shares_of_ideal(samples)


def _shares_of_ideal(samples: "Samples") -> dict[Key, Estimate]:
    """Return, for variants that differ in their number of replicas, the growth of capacity since
    the fewest replicas in percent of the growth of replicas."""
    texts = {row.variant: row.config.get(REPLICAS) or "1" for row in samples.rows if row.config}
    replicas = {name: int(text) for name, text in texts.items() if text.isdecimal()}
    if len(set(replicas.values())) < 2:
        return {}
    fewest = min(replicas, key=lambda name: replicas[name])
    shares: dict[Key, Estimate] = {}
    for variant, count in replicas.items():
        pair = samples.pair((variant, CAPACITY.key, None), fewest) if variant != fewest else None
        if pair:
            percent, ratio = 100 * replicas[fewest] / count, pair.ratio
            shares[variant, SHARE_OF_IDEAL.key, None] = Estimate(
                mean=percent * ratio.ratio,
                low=None if ratio.low is None else percent * ratio.low,
                high=None if ratio.high is None else percent * ratio.high,
                n=len(samples.by_key[variant, CAPACITY.key, None].values),
            )
    return shares


def ratios(rows: "Rows", to: str) -> dict[Key, Pair]:
    """Return the ratio of each figure to that of the variant `to`, at all loads that both held in
    all runs. None of these is a claim."""
    samples = Samples.of(rows)
    return {
        (variant, key, load): pair
        for variant, key, load in samples.by_key
        if variant != to and not samples.missed(variant, load) and not samples.missed(to, load)
        if (pair := samples.pair((variant, key, load), to))
    }


def claims(
    rows: "Rows", questions: Sequence[Metric] = QUESTIONS, *, baseline: str | None = None
) -> list[Claim]:
    """Compare the variants of one place that are ranked (`racetrack.results.classes.ranked`) by
    each question for which at least two have figures. A figure of a window is compared at the
    highest rate that all of them held and that is at least LEAST_SHARE of each capacity; and at the
    highest shares of their own capacities up to RANKED_SHARE that all, and that several of them,
    held. A load is held if it was in most runs; figures are those of all runs. Recoveries are
    compared among those whose views were right afterwards. A variant with fewer than half of the
    runs that two others have, or with a single run where two have more, is not compared: each
    further comparison asks more evidence of all others. At a share of capacity, variants measured
    on a fresh stack are compared, or else those measured after saturation, which fills heaps. Some
    figures are compared only between variants of one class (`Metric.alike`). With `baseline`, each
    variant is only compared with that one.

    One call is one family of Holm's procedure.
    """
    samples = Samples.of(rows)
    made = [
        claim
        for metric in questions
        for load in samples.loads_of(metric)
        if len((claim := samples.claim(metric, load, baseline)).order) > 1
        and metric.alike not in differing(claim.classes.values())
    ]
    return _decided(made)


@dataclass
class _Sample:
    """What was measured of a figure in each repeat, on one stack or on several (`stacks`).
    `repeats` are these repeats (None: not in turn with other variants). `limited` are the positions
    of those that something other than the engine limited. `interval` is that of a recorded mean.
    `held` is true if most runs held the load, and it was offered to the others, which have values,
    too. `is_steady` is true if all held it, and the values scatter as others do with which their
    variance is pooled."""

    repeats: list[Repeat | None] = field(default_factory=list)
    stacks: list[list[float]] = field(default_factory=list)
    interval: Interval | None = None
    limited: set[int] = field(default_factory=set)
    held: bool = True
    is_steady: bool = True

    @property
    def values(self) -> list[float]:
        """The value of each repeat: the mean of its stacks, as in a search."""
        return [sum(values) / len(values) for values in self.stacks]

    @property
    def bounds(self) -> int:
        """Number of values that are lower bounds."""
        return len(self.limited)

    @property
    def has_logarithm(self) -> bool:
        return all(value > 0 and math.isfinite(value) for value in self.values)


class _LogMean(NamedTuple):
    """Mean of logarithms, with its variance and the variance's degrees of freedom (0: unknown).
    `is_pooled` is true if all variants have the same variance."""

    mean: float
    variance: float
    freedom: float
    is_pooled: bool = False


class Samples:
    """The figures of rows of one place, by variant, metric and load. It is made
    once for all of `claims`, `estimates` and `ratios`. `after_saturation` are the variants and
    shares of their capacity that were measured after saturation, on the same stack."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        ok = [row for row in rows if row.outcome == "ok"]
        self.classes = {row.variant: row.classes for row in ok}
        self.ranked = ranked(self.classes)
        self.variants = tuple(dict.fromkeys((*self.ranked, *self.classes)))
        counted, self.after_saturation = _in_one_order(ok)
        self._runs: dict[str, dict[Load, list[Row]]] = {name: {} for name in self.variants}
        for row in counted:
            if row.load:
                self._runs[row.variant].setdefault(row.load.asked, []).append(row)
        self.by_key: dict[Key, _Sample] = {}
        for row in [*counted, *whole_runs(ok)]:
            for key, value in row.values.items():
                if is_registered(key):
                    self._add(row, key, value)
        for (variant, key, load), sample in self.by_key.items():
            missed = self.missed(variant, load)
            sample.is_steady = not missed
            sample.held = self._has_held(variant, load) and all(
                row.is_offered and key in row.values for row in missed
            )
        for unlike in [each for each in self.by_key if self._scatters_more(each)]:
            self.by_key[unlike].is_steady = False

    @classmethod
    def of(cls, rows: "Rows") -> "Samples":
        """Return the samples of rows, unless they are samples already."""
        return rows if isinstance(rows, Samples) else cls(rows)

    def _add(self, row: Row, key: str, value: float) -> None:
        load = row.load.asked if row.load else None
        sample = self.by_key.setdefault((row.variant, key, load), _Sample())
        repeat = (row.experiment, row.repeat) if row.experiment else None
        if repeat and row.tag and repeat in sample.repeats:
            at = sample.repeats.index(repeat)
            sample.stacks[at].append(value)
        else:
            at = len(sample.stacks)
            sample.repeats.append(repeat)
            sample.stacks.append([value])
        sample.interval = row.intervals.get(key, sample.interval)
        if key in row.at_least:
            sample.limited.add(at)

    def loads(self, variant: str) -> list[Load]:
        """Return the loads at which a variant was measured, rising."""
        return sorted(self._runs[variant], key=lambda load: load.order)

    def windows(self, variant: str, load: Load | None) -> list[Row]:
        """Return the windows of a variant at a load."""
        return self._runs[variant].get(load, []) if load else []

    def missed(self, variant: str, load: Load | None) -> list[Row]:
        """Return the windows in which a variant did not hold a load."""
        return [row for row in self.windows(variant, load) if not row.held]

    def _has_held(self, variant: str, load: Load | None) -> bool:
        missed = self.missed(variant, load)
        return not missed or 2 * len(missed) < len(self.windows(variant, load))

    def _scatters_more(self, key: Key) -> bool:
        """Return whether a figure without a load scatters more than those of other variants."""
        (variant, metric, load), sample = key, self.by_key[key]
        if not _is_pooled(metric, load) or sample.interval:
            return False
        others = [name for name in self.variants if name != variant]
        own, of_own = _scatter([sample])
        usual, of_others = self._pooled(others, metric, at_loads=False)
        return bool(of_own and of_others) and _exceeds(own / usual, of_own, of_others)

    def is_held(self, key: Key) -> bool:
        """Return whether a figure is one of a load that was held in most runs, or has no load."""
        variant, _, load = key
        return self.by_key[key].held if key in self.by_key else self._has_held(variant, load)

    def _has_place(self, key: Key) -> bool:
        """Return whether a figure has a place in orders, if there is one."""
        sample, (_, metric, load) = self.by_key.get(key), key
        if not sample or (sample.is_steady and (load or _is_pooled(metric, load))):
            return self.is_held(key)
        # It has a variance of its own. If it is not resolved, it would tie with any other.
        return sample.held and sample.has_logarithm and self.estimate(key).is_resolved

    def loads_of(self, metric: Metric) -> list[Load | None]:
        """Return the loads at which a metric is compared."""
        if metric.per != "window":
            return [None]
        in_order = Counter(
            (load, (name, load) in self.after_saturation)
            for name in self.ranked
            for load in self._runs[name]
            if not load.profile and self._has_place((name, metric.key, load))
        )
        held = {load: max(in_order[load, late] for late in (False, True)) for load, _ in in_order}
        # Some may have been measured at saturation only.
        at_loads = [name for name in self.ranked if self._runs[name]]
        by_all = {load for load, count in held.items() if count == len(at_loads)}
        rates = [load for load in by_all if load.share is None and not self.idle_at(load)]
        shares = [load for load in held if LEAST_SHARE <= (load.share or 0) <= RANKED_SHARE]
        most = [
            max(loads, key=lambda load: load.share or 0)
            for loads in (by_all.intersection(shares), [s for s in shares if held[s] > 1])
            if loads
        ]
        return [
            *([max(rates, key=lambda load: load.per_s)] if rates else []),
            *dict.fromkeys(most),
        ]

    def idle_at(self, load: Load) -> tuple[str, ...]:
        """Return the variants that are hardly busy at a load, so that none are compared there: it
        is below LEAST_SHARE of their capacities."""
        if load.share is not None:
            return () if load.share >= LEAST_SHARE else self.ranked
        return tuple(
            name for name in self.ranked if load.per_s < LEAST_SHARE * self._capacity(name)
        )

    def _most(self, key: Key) -> float:
        """Return how large a figure can be that something other than the engine limited."""
        variant, metric, _ = key
        cost = self.by_key.get((variant, SATURATED_COST.key, None))
        mine = (row.facts.get(ENGINE_CORES) for row in self.rows if row.variant == variant)
        cores = max((float(count) for count in mine if count), default=0.0)
        if metric != CAPACITY.key or not cost or not cores:
            return math.inf
        return HEADROOM * cores * 1e6 / min(cost.values)

    def _capacity(self, variant: str) -> float:
        """Return the mean capacity of a variant; 0 if it was not measured."""
        sample = self.by_key.get((variant, CAPACITY.key, None))
        return float(np.mean(sample.values)) if sample else 0.0

    def is_wrong(self, key: Key) -> bool:
        """Return whether a figure is the time of recoveries after which views were wrong."""
        variant, metric, load = key
        wrong = self.by_key.get((variant, WRONG_VIEWS.key, load), _Sample())
        return metric == NORMAL_AFTER.key and any(wrong.values)

    def estimate(self, key: Key) -> Estimate:
        """Return the estimate of a figure."""
        estimate = self._estimate(key)
        return replace(estimate, at_most=self._most(key)) if estimate.at_least else estimate

    def _estimate(self, key: Key) -> Estimate:
        sample = self.by_key[key]
        if sample.interval:
            mean, interval = sample.values[0], sample.interval
            return Estimate(
                mean, interval.low, interval.high, interval.n, interval.freedom, (), sample.bounds
            )
        values, n = tuple(sample.values), len(sample.values)
        if not sample.has_logarithm:
            plain = summary(values) if all(map(math.isfinite, values)) else None
            mean = plain.mean if plain else math.inf
            estimate = Estimate(mean, None, None, n, None, values, sample.bounds)
            return _resolved(estimate, plain, self._why_wide(key))
        log = self._log_mean(key)
        mean = math.exp(log.mean)
        if not log.freedom:
            return Estimate(mean, None, None, n, None, values, sample.bounds, WhyNot.ONE_RUN)
        half = math.sqrt(log.variance) * t_quantile(log.freedom)
        whole = Summary(mean, mean * math.exp(-half), mean * math.exp(half), n, freedom=log.freedom)
        estimate = Estimate(mean, None, None, n, None, values, sample.bounds)
        return _resolved(estimate, whole, self._why_wide(key))

    def _why_wide(self, key: Key) -> str:
        """Return why an interval may be wide: a line was fitted through few loads, or there are few
        repeats."""
        variant, metric, _ = key
        loads = {load for name, _, load in self.by_key if name == variant and load}
        is_fitted = metric in (BASE_CPU.key, MARGINAL_COST.key)
        return WhyNot.MORE_LOADS if is_fitted and len(loads) < FEW_LOADS else WhyNot.MORE_REPEATS

    def claim(self, metric: Metric, load: Load | None, baseline: str | None) -> Claim:
        """Return the comparison of the ranked variants by a metric at a load, with nothing claimed
        yet."""
        keys = [(name, metric.key, load) for name in self.ranked]
        known = {
            key[0]: self.estimate(key)
            for key in keys
            if key in self.by_key and self._has_place(key) and not self.is_wrong(key)
        }
        late = [name for name in known if (name, load) in self.after_saturation]
        fresh = [name for name in known if name not in late]
        in_order = fresh if len(fresh) > 1 or not late else late
        known = _measured_often({name: known[name] for name in in_order})
        sign = -1 if metric.better == "more" else 1
        order = tuple(sorted(known, key=lambda name: (sign * known[name].mean, name)))
        pairs = {
            (name, to): pair
            for name in order
            for to in order
            if name != to
            and baseline in (None, name, to)
            and (pair := self.pair((name, metric.key, load), to))
        }
        classes = {name: self.classes[name] for name in order}
        errors = [(name, metric.error, load) for name in order]
        error = max((self.estimate(key).mean for key in errors if key in self.by_key), default=0.0)
        return Claim(metric, load, known, order, pairs, classes=classes, error=error)

    def pair(self, key: Key, to: str) -> Pair | None:
        """Return the ratio of a figure to that of another variant; None if it can't be computed."""
        variant, metric, load = key
        there = (to, metric, load)
        here, other = self.by_key.get(key), self.by_key.get(there)
        if not (here and other and here.held and other.held):
            return None
        if not (here.has_logarithm and other.has_logarithm):
            return None
        mine, others = self._log_mean(key), self._log_mean(there)
        middle = mine.mean - others.mean
        if not (mine.freedom and others.freedom):
            return Pair(variant, to, Ratio(math.exp(middle), None, None), why_not=WhyNot.ONE_RUN)
        if paired := self._within_repeats(variant, to, metric, load):
            middle, variance, freedom = paired.mean, paired.variance, paired.freedom
        else:
            variance, freedom = mine.variance + others.variance, _welch(mine, others)
        half = math.sqrt(variance) * t_quantile(freedom)
        ratio = Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half))
        return Pair(variant, to, ratio, _p_value(middle / math.sqrt(variance), freedom))

    def _log_mean(self, key: Key) -> _LogMean:
        sample = self.by_key[key]
        if sample.interval:
            return _of_interval(sample.values[0], sample.interval)
        variant, metric, load = key
        is_pooled = _is_pooled(metric, load)
        pooled = self.variants if is_pooled else (variant,)
        variance, freedom = self._pooled(pooled, metric, at_loads=load is not None)
        if not sample.is_steady:
            variance, freedom = max((variance, freedom), _scatter([sample]))
        mean = float(np.mean(np.log(sample.values)))
        return _LogMean(mean, variance / len(sample.values), freedom, is_pooled)

    def _pooled(self, variants: Sequence[str], metric: str, *, at_loads: bool) -> tuple[float, int]:
        """Return the pooled variance of the logarithms within each variant and load, and its
        degrees of freedom."""
        return _scatter(
            sample
            for (variant, key, load), sample in self.by_key.items()
            if key == metric and variant in variants and (load is not None) == at_loads
            if sample.is_steady and not sample.interval
        )

    def _within_repeats(
        self, variant: str, to: str, metric: str, load: Load | None
    ) -> _LogMean | None:
        """Return the logarithm of the ratio of two variants within repeats; None if there are too
        few.

        For a figure with loads, the variance is that of the ratios at all loads that no run missed;
        at one that was missed, of those there. For others it is the mean square of the residuals of
        all variants that scatter alike, of recoveries of these two, without the means of variants
        and of repeats.
        """
        here = self._by_repeat([variant, to], metric, load)
        if load is None:
            pair = [variant, to]
            is_pooled = _is_pooled(metric, load) and self._is_steady(pair, metric, load)
            steady = [name for name in self.variants if self._is_steady([name], metric, load)]
            alike = steady if is_pooled else pair
            known = [name for name in alike if (name, metric, None) in self.by_key]
            tables = [self._by_repeat(known, metric, None)]
        else:
            loads = self._alike(variant, to, metric, load)
            tables = [self._by_repeat([variant, to], metric, at) for at in loads]
        squares, freedom = 0.0, 0
        for table in tables:
            sides, repeats = table.shape
            if sides > 1 and repeats > 1:
                means = table.mean(axis=0) + table.mean(axis=1, keepdims=True)
                squares += float(np.sum((table - means + table.mean()) ** 2))
                freedom += (sides - 1) * (repeats - 1)
        if freedom < LEAST_FREEDOM or not here.size:
            return None
        common = here.shape[1]
        if not self._is_steady([variant, to], metric, load) and any(
            len(self.by_key[name, metric, load].values) > common for name in (variant, to)
        ):
            return None  # the run that missed the load may be among those without a counterpart
        variance = 2 * max(squares / freedom, LEAST_DEVIATION**2) / common
        return _LogMean(float(np.mean(here[0] - here[1])), variance, freedom)

    def _alike(self, variant: str, to: str, metric: str, load: Load) -> set[Load | None]:
        """Return the loads at which the ratios of a figure scatter as they do at `load`."""
        steady = {
            at
            for _, key, at in self.by_key
            if key == metric and self._is_steady([variant, to], metric, at)
        }
        return steady if load in steady else {load}

    def _is_steady(self, variants: Sequence[str], metric: str, load: Load | None) -> bool:
        samples = (self.by_key.get((name, metric, load), _Sample()) for name in variants)
        return all(sample.is_steady for sample in samples)

    def _by_repeat(
        self, variants: Sequence[str], metric: str, load: Load | None
    ) -> NDArray[np.float64]:
        """Return the logarithms of a figure: a row for each variant, a column for each repeat in
        which all variants have a positive value."""
        of_variants = []
        for variant in variants:
            sample = self.by_key.get((variant, metric, load), _Sample())
            pairs = zip(sample.repeats, sample.values, strict=True)
            of_variants.append(
                {repeat: value for repeat, value in pairs if repeat and 0 < value < math.inf}
            )
        common = sorted(set.intersection(*(set(by_repeat) for by_repeat in of_variants)))
        values = np.array(
            [[by_repeat[repeat] for repeat in common] for by_repeat in of_variants], np.float64
        )
        logarithms: NDArray[np.float64] = np.log(values.reshape(len(variants), len(common)))
        return logarithms


Rows = Sequence[Row] | Samples


def _is_pooled(metric: str, load: Load | None) -> bool:
    """Return whether the variance of a figure is pooled over the variants. Recoveries are not: what
    they consist of differs."""
    return load is None and metric_of(metric).per != "fault"


def _scatter(samples: Iterable[_Sample]) -> tuple[float, int]:
    """Return the pooled variance of logarithms within samples, and its degrees of freedom."""
    squares, freedom = 0.0, 0
    for sample in samples:
        if len(sample.values) > 1 and sample.has_logarithm:
            squares += float(np.var(np.log(sample.values))) * len(sample.values)
            freedom += len(sample.values) - 1
    return (max(squares / freedom, LEAST_DEVIATION**2), freedom) if freedom else (0.0, 0)


def _exceeds(ratio: float, freedom: int, of_other: int) -> bool:
    """Return whether a ratio of two variances is significantly above 1 (F test)."""
    from scipy import special

    return float(special.fdtrc(freedom, of_other, ratio)) < UNLIKE


def is_resolved(ratio: Ratio) -> bool:
    """Return whether the repeats resolve the interval of a ratio."""
    return None not in (ratio.low, ratio.high) and ratio.high <= WIDEST * ratio.low  # type: ignore[operator]


def _in_one_order(rows: Sequence[Row]) -> tuple[list[Row], set[tuple[str, Load]]]:
    """Return the rows in which each variant's shares of capacity were all measured on a fresh stack
    or all after saturation on the same stack, whichever there are more of; and the variants and
    shares that were measured after saturation."""
    saturated: set[str] = set()
    is_late: list[bool] = []
    for row in rows:
        if row.window == SATURATION and row.tag:
            saturated.add(row.tag)
        is_late.append(bool(row.share) and row.tag in saturated)
    count = Counter(
        (row.variant, row.load.asked, late)
        for row, late in zip(rows, is_late, strict=True)
        if row.load
    )
    after = {
        (of, at) for of, at, late in count if late and count[of, at, True] > count[of, at, False]
    }
    kept = [
        row
        for row, late in zip(rows, is_late, strict=True)
        if not row.load or ((row.variant, row.load.asked) in after) is late
    ]
    return kept, after


def _measured_often(known: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """Return the estimates of the variants that are compared with each other; see `claims`."""
    _, second, *_ = (*sorted((estimate.n for estimate in known.values()), reverse=True), 1, 1)
    least = max(min(second, 2), math.ceil(second / 2))
    return {name: estimate for name, estimate in known.items() if estimate.n >= least}


def _resolved(estimate: Estimate, interval: Summary | None, why_wide: str) -> Estimate:
    """Return an estimate with the interval of a summary, if repeats resolve it."""
    if not interval or interval.low is None or interval.high is None:
        return replace(estimate, why_not=WhyNot.ONE_RUN if estimate.n == 1 else WhyNot.NOT_SHOWN)
    if interval.low < interval.high and (
        interval.low <= 0 or interval.high > WIDEST * interval.low
    ):
        return replace(estimate, why_not=why_wide)
    return replace(estimate, low=interval.low, high=interval.high, freedom=interval.freedom)


def _decided(made: Sequence[Claim]) -> list[Claim]:
    """Decide which differences are claimed, by Holm's procedure over all pairs of all questions,
    and which variants lead."""
    tests = sorted(
        (pair.p, number, at)
        for number, claim in enumerate(made)
        for at, pair in claim.pairs.items()
        if at[0] < at[1] and pair.p is not None
    )
    significant: set[tuple[int, tuple[str, str]]] = set()
    for rank, (p, number, (variant, to)) in enumerate(tests):
        # So the interval of each claimed ratio excludes 1.
        if p > min(1 - CONFIDENCE, FAMILY_ERROR / (len(tests) - rank)):
            break
        significant |= {(number, (variant, to)), (number, (to, variant))}
    return [
        _with_leaders(claim, {at for claim_number, at in significant if claim_number == number})
        for number, claim in enumerate(made)
    ]


def _with_leaders(claim: Claim, significant: set[tuple[str, str]]) -> Claim:
    pairs = {}
    for at, pair in claim.pairs.items():
        why_not = _why_not(claim, pair, at in significant)
        pairs[at] = replace(pair, claimed=not why_not, why_not=why_not)
    decided = replace(claim, pairs=pairs)
    return replace(decided, leaders=_leaders(decided))


def _leaders(claim: Claim) -> tuple[str, ...]:
    """Return the best variant and all from which no difference is claimed to it."""
    best = claim.order[:1]
    behind = {
        name for (first, name), pair in claim.pairs.items() if (first,) == best and pair.claimed
    }
    return tuple(name for name in claim.order if name not in behind)


def _why_not(claim: Claim, pair: Pair, is_significant: bool) -> str:
    """Return why a difference is not claimed; empty if it is."""
    mine, to = claim.estimates[pair.of], claim.estimates[pair.to]
    if pair.p is None or min(mine.n, to.n) < 2:
        return WhyNot.ONE_RUN
    # If the smaller value is a lower bound, the true value may be the larger one.
    smaller, larger = sorted((mine, to), key=lambda estimate: estimate.mean)
    if smaller.at_least and smaller.at_most >= larger.mean:
        return WhyNot.LOWER_BOUND
    apart = abs(mine.mean - to.mean)
    metric = claim.metric
    within = max(metric.within_abs, metric.within * min(mine.mean, to.mean), claim.error)
    if apart <= within:
        return WhyNot.TOO_SMALL
    if is_significant and is_resolved(pair.ratio):
        return ""
    return WhyNot.MORE_REPEATS if pair.ratio.excludes_1 else WhyNot.NOT_SHOWN


def _welch(first: _LogMean, other: _LogMean) -> float:
    """Return the degrees of freedom of the difference of two means."""
    if first.is_pooled and other.is_pooled:
        return first.freedom
    variance = first.variance + other.variance
    return variance**2 / (first.variance**2 / first.freedom + other.variance**2 / other.freedom)


def _of_interval(mean: float, interval: Interval) -> _LogMean:
    """Return the mean logarithm of a recorded mean, from its interval."""
    freedom = interval.freedom or interval.n - 1
    if interval.high is None or not math.isfinite(interval.high) or not freedom:
        return _LogMean(math.log(mean), 0.0, 0)
    deviation = max(math.log(interval.high / mean) / t_quantile(freedom), LEAST_DEVIATION)
    return _LogMean(math.log(mean), deviation**2, freedom)


def _p_value(t: float, freedom: float) -> float:
    """Return the two-sided p-value of Student's t."""
    from scipy import special

    return 2 * float(special.stdtr(freedom, -abs(t)))


def by_place(rows: Iterable[Row]) -> dict[Place, list[Row]]:
    """Return the rows of each place, in the order of the rows, without the trials of searches."""
    places: dict[Place, list[Row]] = {}
    for row in (window for window in rows if not window.is_trial):
        places.setdefault(row.place, []).append(row)
    return places
