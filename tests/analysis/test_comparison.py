"""Tests of comparisons: an engine does not differ from itself, a difference of 15 % is found, ties
and lower bounds are named.

Synthetic repeats scatter by SCATTER between fresh runs; half of that variance is common to all
rates of a run. Recorded runs on an idle machine scattered by 2 to 3 % in the p99 of the lag of
`dh`, and by 3 to 4 % in the capacity of `pg` and `flink` (2026-11-25).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.random import Generator, default_rng

from racetrack.analysis.comparison import (
    CAPACITY,
    CPU,
    LAG_P99,
    Answer,
    Figures,
    Metric,
    Side,
    answers,
    difference,
    highest_common_rate,
    mean_of,
)
from racetrack.analysis.intervals import Summary, summary

SCATTER = 0.025
RATES = (1_000, 5_000, 10_000)
AT_RATES = {"cpu_s_per_million": 80, "lag_p50_ms": 400, "lag_p99_ms": 700, "read_time_p99_ms": 50}
OVERALL = {"capacity_per_s": 120_000, "memory_gib": 1.2, "base_cpu_pct": 11}
PAIRS = 100


def side(
    rng: Generator,
    label: str,
    factors: Mapping[str, float] | None = None,
    repeats: int = 3,
    drift: Sequence[float] = (),
) -> Side:
    """Return a side of a comparison whose true figures are AT_RATES and OVERALL, times `factors`.
    `drift` is added to the logarithms of all figures, per repeat; without it, the sides were not
    measured in turns."""
    factors, each = factors or {}, SCATTER / math.sqrt(2)
    shift = np.array(drift) if drift else np.zeros(repeats)
    figures: dict[tuple[str, int | None], Summary] = {}
    for key, true in AT_RATES.items():
        of_run = rng.normal(0, each, repeats)
        for rate in RATES:
            scattered = np.exp(shift + of_run + rng.normal(0, each, repeats))
            figures[key, rate] = summary(list(true * factors.get(key, 1) * scattered))
    for key, mean in OVERALL.items():
        scattered = np.exp(shift + rng.normal(0, SCATTER, repeats))
        figures[key, None] = summary(list(mean * factors.get(key, 1) * scattered))
    numbers = {at: tuple(range(1, repeats + 1)) for at in figures} if drift else {}
    return Side(label, figures, repeats=numbers)


def answer(sides: list[Side], metric: Metric) -> Answer:
    (found,) = [one for one in answers(sides) if one.metric is metric]
    return found


def differs(sides: list[Side]) -> bool:
    return any(len(one.leaders) < len(sides) for one in answers(sides))


def test_an_engine_does_not_differ_from_itself() -> None:
    rng = default_rng(33)
    wrong = sum(differs([side(rng, "one"), side(rng, "same")]) for _ in range(2 * PAIRS))
    assert wrong <= 0.05 * 2 * PAIRS


@pytest.mark.parametrize(
    ("metric", "rng"),
    [(CPU, default_rng(1)), (LAG_P99, default_rng(2)), (CAPACITY, default_rng(3))],
)
def test_a_difference_of_15_percent_is_found_and_lies_in_the_interval(
    metric: Metric, rng: Generator
) -> None:
    found = contained = 0
    for _ in range(PAIRS):
        injected = side(rng, "worse", {metric.key: 1.15})
        apart = answer([side(rng, "one"), injected], metric).between("worse", "one")
        assert apart and apart.ratio.low and apart.ratio.high
        found += apart.is_shown
        contained += apart.ratio.low <= 1.15 <= apart.ratio.high
    assert found >= 0.9 * PAIRS
    assert contained >= 0.9 * PAIRS


def drifting(rng: Generator) -> list[float]:
    """Return the machine's slowdown in each of three repeats, as a logarithm."""
    return list(rng.normal(0, 0.3, 3))


@pytest.mark.parametrize(
    ("metric", "labels", "often"),
    [(CPU, "ab", 0.9), (LAG_P99, "ab", 0.9), (CPU, "abc", 0.9), (CAPACITY, "abc", 0.6)],
)
def test_a_machine_that_becomes_slower_hides_no_difference(
    metric: Metric, labels: str, often: float
) -> None:
    found = inside = 0
    for seed in range(PAIRS):
        rng = default_rng(seed)
        drift, factors = drifting(rng), {"b": {metric.key: 1.15}}
        sides = [side(rng, label, factors.get(label), drift=drift) for label in labels]
        apart = answer(sides, metric).between("b", "a")
        assert apart and apart.ratio.low and apart.ratio.high
        found += apart.is_shown
        inside += apart.ratio.low <= 1.15 <= apart.ratio.high
    assert found >= often * PAIRS
    assert inside >= 0.9 * PAIRS


@pytest.mark.parametrize("labels", ["ab", "abc"])
def test_a_machine_that_becomes_slower_makes_no_difference(labels: str) -> None:
    differences = 0
    for seed in range(PAIRS):
        rng = default_rng(seed)
        drift = drifting(rng)
        differences += differs([side(rng, label, drift=drift) for label in labels])
    assert differences <= 0.05 * PAIRS


def test_two_sides_alone_are_compared_as_in_a_comparison_of_two() -> None:
    rng = default_rng(1)
    drift = drifting(rng)
    one, two = (side(rng, label, drift=drift) for label in "ab")
    alone = difference(one, two, CAPACITY.key, None)
    assert alone == difference(one, two, CAPACITY.key, None, [one, two])


def test_a_repeat_that_a_side_lacks_is_left_out() -> None:
    rng = default_rng(1)
    drift = drifting(rng)
    one, two = (side(rng, label, drift=drift) for label in "ab")
    at = (CPU.key, 1_000)
    lacks = {**two.figures, at: summary(two.figures[at].values[1:])}
    other = replace(two, figures=lacks, repeats={**two.repeats, at: (2, 3)})
    apart = difference(one, other, *at)
    ratios = np.log(one.figures[at].values[1:]) - np.log(two.figures[at].values[1:])
    assert apart and math.log(apart.ratio.ratio) == pytest.approx(float(np.mean(ratios)))


def test_what_the_harness_does_not_resolve_is_a_tie() -> None:
    def alike(ms: float) -> dict[tuple[str, int | None], Summary]:
        return {("lag_p99_ms", 1_000): summary([ms, ms * 1.001, ms * 0.999])}

    near = answer([Side("a", alike(10)), Side("b", alike(30))], LAG_P99)
    assert near.leaders == ("a", "b")
    apart = near.between("a", "b")
    assert apart and apart.p is not None and apart.p < 1e-6 and not apart.is_shown
    assert answer([Side("a", alike(10)), Side("b", alike(60))], LAG_P99).leaders == ("a",)


def test_a_lower_bound_is_not_called_less() -> None:
    def side_of(label: str, per_s: float, *, is_bound: bool) -> Side:
        figures: dict[tuple[str, int | None], Summary] = {
            ("capacity_per_s", None): summary([per_s, per_s * 1.01])
        }
        bounds = frozenset({"capacity_per_s"}) if is_bound else frozenset[str]()
        return Side(label, figures, lower_bounds=bounds)

    sides = [side_of("a", 100, is_bound=True), side_of("b", 200, is_bound=False)]
    assert answer(sides, CAPACITY).leaders == ("b", "a")
    sides = [side_of("a", 100, is_bound=False), side_of("b", 200, is_bound=True)]
    assert answer(sides, CAPACITY).leaders == ("b",)


def test_one_run_each_claims_nothing() -> None:
    rng = default_rng(1)
    sides = [side(rng, "a", repeats=1), side(rng, "b", {"capacity_per_s": 3}, repeats=1)]
    found = answer(sides, CAPACITY)
    apart = found.between("b", "a")
    assert apart and apart.ratio.ratio == pytest.approx(3, rel=0.2)
    assert (apart.ratio.low, apart.p, apart.is_shown) == (None, None, False)
    assert found.leaders == ("b", "a")


def test_a_result_file_has_its_interval_only() -> None:
    rng = default_rng(1)
    recorded = Side("recorded", {("capacity_per_s", None): Summary(60_000, 57_000, 63_000, 3)})
    found = answer([side(rng, "now"), recorded], CAPACITY)
    assert found.leaders == ("now",)
    apart = found.between("now", "recorded")
    assert apart and apart.ratio.low and apart.ratio.high
    assert apart.ratio.low < 2 < apart.ratio.high


def test_a_result_file_is_compared_as_the_runs_would_be() -> None:
    rng = default_rng(1)
    now, old = side(rng, "now", repeats=2), side(rng, "old", repeats=2)
    means = {at: mean_of(old, *at, [old]) for at in old.figures}
    published = Side("old", {at: replace(of, values=()) for at, of in means.items()})
    by_runs, by_file = (difference(now, each, CPU.key, 5_000) for each in (old, published))
    assert by_runs and by_file
    assert by_file.p == pytest.approx(by_runs.p)
    assert [by_file.ratio.low, by_file.ratio.high] == pytest.approx(
        [by_runs.ratio.low, by_runs.ratio.high]
    )


def test_means_agree_with_their_ratio() -> None:
    rng = default_rng(1)
    found = answer([side(rng, "a"), side(rng, "b", {CPU.key: 2})], CPU)
    apart = found.between("b", "a")
    assert apart
    assert found.values["b"].mean / found.values["a"].mean == pytest.approx(apart.ratio.ratio)


@pytest.mark.parametrize(
    ("values", "behind"), [((0.0, 2.0), frozenset[int]()), ((1.0, 3.0), frozenset({1_000}))]
)
def test_a_mean_that_can_t_be_pooled_is_that_of_its_values(
    values: tuple[float, float], behind: frozenset[int]
) -> None:
    figures: Figures = {
        (CPU.key, 1_000): summary(values),
        (CPU.key, 5_000): summary([1.0, 1.1]),
    }
    one = Side("one", figures, behind)
    assert mean_of(one, CPU.key, 1_000, [one]) == summary(values)


def test_a_single_run_has_the_interval_of_the_others_scatter() -> None:
    figures: Figures = {
        (CPU.key, 1_000): summary([2.0]),
        (CPU.key, 5_000): summary([1.0, 1.1]),
    }
    one = Side("one", figures)
    alone, pair = (mean_of(one, CPU.key, rate, [one]) for rate in (1_000, 5_000))
    assert alone.log_half and pair.log_half
    assert alone.log_half == pytest.approx(math.sqrt(2) * pair.log_half)


def test_sides_are_compared_at_the_highest_rate_that_all_kept_up_with() -> None:
    rng = default_rng(1)
    slow = Side("slow", side(rng, "slow").figures, not_sustained=frozenset({10_000}))
    assert highest_common_rate([side(rng, "one"), slow]) == 5_000
    assert answer([side(rng, "one"), slow], CPU).rate == 5_000
