"""Tests of claims: an engine does not differ from itself, a difference of 15 % is found, ties and
lower bounds are named.

Synthetic repeats scatter by SCATTER between fresh runs; half of that variance is common to all
rates of a run. Recorded runs on an idle machine scattered by 2 to 3 % in the p99 of the lag of
`dh`, and by 3 to 4 % in the capacity of `pg` and `flink` (2026-11-25).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator, default_rng

from racetrack.analysis.claims import Claim, claims, estimates, ratios
from racetrack.analysis.table import Interval, Load, Place, Row
from racetrack.metrics import (
    BASE_CPU,
    CAPACITY,
    CPU_MEAN,
    CPU_PER_MILLION,
    MEMORY,
    NORMAL_AFTER,
    PROCESSED,
    SATURATED_COST,
    VIEW_LAG_ERROR,
    VIEW_LAG_P99,
    WRONG_VIEWS,
    Metric,
)
from racetrack.results.run import SATURATION, TRIAL

SCATTER = 0.025
RATES = (12_000, 30_000, 60_000)
AT_RATES = {
    "cpu_s_per_million": 80,
    "lag_p50_ms": 400,
    "view_lag_p99_ms": 700,
    "lag_p99_ms": 500,
    "read_time_p99_ms": 50,
}
PAIRS = 100
PLACE = Place("shop", "native", "a machine")


def row(variant: str, values: Mapping[str, float], load: Load | None = None, **more: Any) -> Row:
    return Row(variant, variant, PLACE, load, str(load), values, **more)


def rows_of(
    rng: Generator,
    variant: str,
    factors: Mapping[str, float] | None = None,
    repeats: int = 3,
    drift: Sequence[float] = (),
) -> list[Row]:
    """Return the rows of a variant whose true figures are AT_RATES and a few of whole runs, times
    `factors`. `drift` is added to the logarithms of all figures, per repeat; without it, the
    variants were not measured in turns."""
    factors, each = factors or {}, SCATTER / math.sqrt(2)
    made = []
    for number in range(repeats):
        shift = drift[number] if drift else 0.0
        of_run = {key: rng.normal(0, each) for key in AT_RATES}
        more: dict[str, Any] = {
            "experiment": "e" if drift else "",
            "repeat": number + 1,
            "tag": f"{variant}{number}",
        }

        def scattered(true: float, key: str, deviation: float, common: float = shift) -> float:
            return true * factors.get(key, 1) * math.exp(common + rng.normal(0, deviation))

        for rate in RATES:
            at_rate = {
                key: scattered(true, key, each, shift + of_run[key])
                for key, true in AT_RATES.items()
            }
            at_rate["memory_gib"] = scattered(1.2, "memory_gib", SCATTER)
            at_rate["processed_events_per_s"] = float(rate)
            base = scattered(11, "base_cpu_pct", SCATTER)
            at_rate["cpu_mean_pct"] = base + rate * 80e-4
            made.append(row(variant, at_rate, Load(rate), **more))
        capacity = {"capacity_per_s": scattered(120_000, "capacity_per_s", SCATTER)}
        made.append(row(variant, capacity, **more))
    return made


def claim(rows: list[Row], metric: Metric) -> Claim:
    (made,) = [each for each in claims(rows) if each.metric is metric]
    return made


@pytest.mark.slow
@pytest.mark.parametrize("drifts", [False, True])
@pytest.mark.parametrize("repeats", [2, 3, 5])
def test_an_engine_does_not_differ_from_itself(repeats: int, drifts: bool) -> None:
    wrong = 0
    for seed in range(1_000):
        rng = default_rng(seed)
        drift = list(rng.normal(0, 0.3, repeats)) if drifts else []
        sides = [rows_of(rng, name, repeats=repeats, drift=drift) for name in "ab"]
        wrong += any(each.is_decided for each in claims([*sides[0], *sides[1]]))
    assert wrong <= 50


def missed_by_some(rng: Generator, rows: list[Row]) -> list[Row]:
    """Return rows of which a fifth at the highest rate have a high lag and a higher cost."""
    return [
        replace(
            each,
            values={
                **each.values,
                VIEW_LAG_P99.key: rng.uniform(6_000, 30_000),
                CPU_PER_MILLION.key: each.values[CPU_PER_MILLION.key] * rng.uniform(1, 1.5),
            },
        )
        if each.load == Load(RATES[-1]) and rng.random() < 0.2
        else each
        for each in rows
    ]


@pytest.mark.slow
@pytest.mark.parametrize("repeats", [3, 5])
def test_an_engine_that_misses_a_load_in_some_runs_does_not_differ_from_itself(
    repeats: int,
) -> None:
    wrong = 0
    for seed in range(1_000):
        rng = default_rng(seed)
        drift = list(rng.normal(0, 0.05, repeats))
        sides = [missed_by_some(rng, rows_of(rng, at, repeats=repeats, drift=drift)) for at in "ab"]
        wrong += any(each.is_decided for each in claims([*sides[0], *sides[1]]))
    assert wrong <= 50


def drifting(rng: Generator) -> list[float]:
    """Return the machine's slowdown in each of three repeats, as a logarithm."""
    return list(rng.normal(0, 0.3, 3))


@pytest.mark.parametrize(
    ("metric", "labels", "drifts", "often"),
    [
        (CPU_PER_MILLION, "ab", False, 0.9),
        (VIEW_LAG_P99, "ab", False, 0.9),
        (CAPACITY, "ab", False, 0.9),
        (BASE_CPU, "ab", False, 0.9),
        (CPU_PER_MILLION, "ab", True, 0.9),
        (VIEW_LAG_P99, "ab", True, 0.9),
        (CPU_PER_MILLION, "abc", True, 0.9),
        (CAPACITY, "abc", True, 0.6),
    ],
)
def test_a_difference_of_15_percent_is_found_even_if_the_machine_becomes_slower(
    metric: Metric, labels: str, drifts: bool, often: float
) -> None:
    times = 1.5 if metric is BASE_CPU else 1.15
    claimed = inside = 0
    for seed in range(PAIRS):
        rng = default_rng(seed)
        drift, factors = drifting(rng) if drifts else [], {"b": {metric.key: times}}
        rows = [
            each for name in labels for each in rows_of(rng, name, factors.get(name), drift=drift)
        ]
        pair = claim(rows, metric).pairs["b", "a"]
        assert pair.ratio.low and pair.ratio.high
        claimed += pair.claimed
        inside += pair.ratio.low <= times <= pair.ratio.high
    assert claimed >= often * PAIRS
    assert inside >= 0.9 * PAIRS


def test_two_variants_alone_are_compared_as_in_a_comparison_of_two() -> None:
    rng = default_rng(1)
    drift = drifting(rng)
    rows = [*rows_of(rng, "a", drift=drift), *rows_of(rng, "b", drift=drift)]
    of_claim = claim(rows, CAPACITY).pairs["b", "a"]
    alone = ratios(rows, "a")["b", CAPACITY.key, None]
    assert (alone.ratio, alone.p) == (of_claim.ratio, of_claim.p)
    assert not alone.claimed


def test_a_repeat_that_a_variant_lacks_is_left_out() -> None:
    rng = default_rng(1)
    drift = drifting(rng)
    ones, others = (rows_of(rng, name, drift=drift) for name in "ab")
    fewer = [each for each in others if (each.repeat, each.load) != (1, Load(12_000))]
    pair = ratios([*ones, *fewer], "a")["b", VIEW_LAG_P99.key, Load(12_000)]

    def mean(rows: list[Row]) -> float:
        at = [each.values[VIEW_LAG_P99.key] for each in rows if each.load == Load(12_000)]
        return float(np.mean(np.log(at[-2:])))

    assert math.log(pair.ratio.ratio) == pytest.approx(mean(fewer) - mean(ones))


def of_values(variant: str, key: str, *values: float, bound: bool = False) -> list[Row]:
    load = None if key == CAPACITY.key else Load(12_000)
    at_least = frozenset({key} if bound else ())
    return [
        row(variant, {VIEW_LAG_P99.key: 1.0, key: value}, load, repeat=number, at_least=at_least)
        for number, value in enumerate(values, start=1)
    ]


def alike(variant: str, ms: float) -> list[Row]:
    return of_values(variant, VIEW_LAG_P99.key, ms, ms * 1.001, ms * 0.999)


def test_a_difference_that_the_harness_does_not_resolve_is_a_tie() -> None:
    made = claim([*alike("a", 10), *alike("b", 30)], VIEW_LAG_P99)
    assert made.leaders == ("a", "b")
    pair = made.pairs["a", "b"]
    assert pair.p is not None and pair.p < 1e-6
    assert "resolves" in pair.why_not
    assert claim([*alike("a", 10), *alike("b", 60)], VIEW_LAG_P99).leaders == ("a",)
    # Those who are equal are in alphabetical order.
    assert claim([*alike("b", 10), *alike("a", 10)], VIEW_LAG_P99).order == ("a", "b")


@pytest.mark.parametrize(("error_ms", "leaders"), [(30, ("a",)), (60, ("a", "b"))])
def test_a_difference_within_the_error_of_the_values_is_a_tie(
    error_ms: float, leaders: tuple[str, ...]
) -> None:
    rows = [
        replace(each, values={**each.values, VIEW_LAG_ERROR.key: error})
        for of, error in ((alike("a", 10), error_ms), (alike("b", 60), error_ms / 2))
        for each in of
    ]
    (found,) = claims(rows, [VIEW_LAG_P99])
    assert found.leaders == leaders


def test_a_lower_bound_is_not_called_less() -> None:
    low, high = (CAPACITY.key, 100, 101), (CAPACITY.key, 200, 202)
    made = claim([*of_values("a", *low, bound=True), *of_values("b", *high)], CAPACITY)
    assert made.leaders == ("b", "a")
    assert "lower bound" in made.pairs["a", "b"].why_not
    made = claim([*of_values("a", *low), *of_values("b", *high, bound=True)], CAPACITY)
    assert made.leaders == ("b",)


def test_a_lower_bound_is_less_than_what_its_cores_never_allow() -> None:
    one_core = {"engine_cores": 1}
    bound = [
        replace(row, facts=one_core, values={**row.values, SATURATED_COST.key: 5_000.0})
        for row in of_values("a", CAPACITY.key, 100, 101, bound=True)  # half of the core
    ]
    for faster, leaders in ((350, ("b", "a")), (450, ("b",))):
        rows = [*bound, *of_values("b", CAPACITY.key, faster, faster + 1)]
        assert claim(rows, CAPACITY).leaders == leaders


def test_one_run_claims_nothing_even_beside_repeats() -> None:
    rng = default_rng(1)
    one = rows_of(rng, "b", {"capacity_per_s": 3}, repeats=1)
    made = claim([*rows_of(rng, "a", repeats=1), *one], CAPACITY)
    pair = made.pairs["b", "a"]
    assert pair.ratio.ratio == pytest.approx(3, rel=0.2)
    assert (pair.ratio.low, pair.p, pair.claimed) == (None, None, False)
    assert made.leaders == ("b", "a")
    assert not claim([*rows_of(rng, "a"), *one], CAPACITY).pairs["b", "a"].claimed


def test_one_run_is_not_compared_where_others_were_repeated_and_limits_no_load() -> None:
    rng = default_rng(1)
    repeated = [*rows_of(rng, "a"), *rows_of(rng, "b", {"capacity_per_s": 2})]
    one = [each for each in rows_of(rng, "c", {"capacity_per_s": 3}, repeats=1) if not each.load]
    made = claim([*repeated, *one], CAPACITY)
    assert (made.order, made.leaders) == (("b", "a"), ("b",))
    assert Load(60_000) in {each.load for each in claims([*repeated, *one])}


def test_who_has_less_than_half_of_the_runs_of_two_others_is_not_compared() -> None:
    rng = default_rng(1)
    often = [*rows_of(rng, "a", repeats=5), *rows_of(rng, "b", {"capacity_per_s": 2}, repeats=5)]
    seldom = rows_of(rng, "c", {"capacity_per_s": 3}, repeats=2)
    assert claim([*often, *seldom], CAPACITY).order == ("b", "a")
    half = rows_of(rng, "c", {"capacity_per_s": 3}, repeats=3)
    assert claim([*often, *half], CAPACITY).order == ("c", "b", "a")


def test_a_void_window_is_not_compared() -> None:
    rng = default_rng(1)
    clear = rows_of(rng, "b", {"capacity_per_s": 3})
    void = [replace(each, outcome="Void: other programs used 33 % of a core") for each in clear]
    assert claims([*rows_of(rng, "a"), *void]) == []


def recorded(variant: str, rows: list[Row]) -> list[Row]:
    """Return rows of recorded means, as in a result file: one per load."""
    known = estimates(rows)
    made = []
    for load in dict.fromkeys(load for _, _, load in known):
        of_load = {key: of for (_, key, at), of in known.items() if at == load}
        means = {key: of.mean for key, of in of_load.items()}
        ends = {key: Interval(of.low, of.high, of.n, of.freedom) for key, of in of_load.items()}
        made.append(row(variant, means, load, intervals=ends))
    return made


def test_a_result_file_is_compared_as_the_runs_would_be() -> None:
    rng = default_rng(1)
    now, old = rows_of(rng, "now", repeats=2), rows_of(rng, "old", repeats=2)
    at = ("now", CPU_PER_MILLION.key, Load(30_000))
    by_runs, by_file = (ratios([*now, *of], "old")[at] for of in (old, recorded("old", old)))
    assert by_file.p == pytest.approx(by_runs.p)
    assert by_file.ratio.low == pytest.approx(by_runs.ratio.low)
    assert by_file.ratio.high == pytest.approx(by_runs.ratio.high)


def test_means_agree_with_their_ratio() -> None:
    rng = default_rng(1)
    rows = [*rows_of(rng, "a"), *rows_of(rng, "b", {"cpu_s_per_million": 2})]
    made = claim(rows, CPU_PER_MILLION)
    of_means = made.estimates["b"].mean / made.estimates["a"].mean
    assert of_means == pytest.approx(made.pairs["b", "a"].ratio.ratio)


def test_an_interval_that_repeats_do_not_resolve_is_not_given() -> None:
    made = estimates(of_values("a", CAPACITY.key, 100, 180))["a", CAPACITY.key, None]
    assert (made.low, made.high) == (None, None)
    assert made.why_not


def test_windows_are_compared_at_the_highest_rate_and_share_that_were_held() -> None:
    rng = default_rng(1)
    one, slow = rows_of(rng, "one"), rows_of(rng, "slow")
    for number, each in enumerate(slow):
        if each.load == Load(60_000):
            late = {**each.values, VIEW_LAG_P99.key: 60_000.0}
            slow[number] = replace(each, values=late)
    rows = [*one, *slow]
    for metric in (CPU_PER_MILLION, VIEW_LAG_P99):
        assert [each.load for each in claims(rows, [metric])] == [Load(30_000)]
    shares = [
        replace(each, load=Load(each.load.per_s * factor, each.load.per_s / 60_000))
        for factor, of in ((3, one), (4, slow))
        for each in of
        if each.load
    ]
    loads = [each.load for each in claims([*rows, *shares], [CPU_PER_MILLION])]
    assert loads == [Load(30_000), Load(0, 0.5)]

    # One that did not hold the share is not compared there; the others are.
    third = [
        replace(each, variant="third", values={**each.values, VIEW_LAG_P99.key: 60_000.0})
        for each in shares
        if each.variant == "one"
    ]
    both, *none = claims([*shares, *third], [CPU_PER_MILLION])
    assert (both.load, set(both.order), none) == (Load(0, 0.5), {"one", "slow"}, [])


def test_recoveries_are_compared_if_views_were_right_afterwards() -> None:
    rows = [
        row(variant, {NORMAL_AFTER.key: seconds, WRONG_VIEWS.key: wrong}, repeat=repeat)
        for variant, seconds, wrong in (("slow", 60.0, 0), ("quick", 30.0, 0), ("wrong", 9.0, 1))
        for repeat, seconds in enumerate((seconds, seconds * 1.01), 1)
    ]
    assert claim(rows, NORMAL_AFTER).order == ("quick", "slow")
    assert estimates(rows)["wrong", NORMAL_AFTER.key, None].mean == pytest.approx(9, rel=0.01)


def test_a_recovery_that_is_not_resolved_ties_with_no_other() -> None:
    times_s = {"quick": (30.0, 31.0, 29.0), "slow": (90.0, 92.0, 88.0), "any": (20.0, 60.0, 200.0)}
    rows = [
        row(variant, {NORMAL_AFTER.key: seconds}, repeat=repeat)
        for variant, of_runs in times_s.items()
        for repeat, seconds in enumerate(of_runs, 1)
    ]
    made = claim(rows, NORMAL_AFTER)
    assert (made.order, made.leaders) == (("quick", "slow"), ("quick",))
    assert not estimates(rows)["any", NORMAL_AFTER.key, None].is_resolved


def test_a_variant_that_scatters_more_than_all_others_has_a_variance_of_its_own() -> None:
    rng = default_rng(1)
    rows = [each for name in ("slow", "quick") for each in rows_of(rng, name, repeats=5)]
    odd = [
        row("odd", {CAPACITY.key: per_s}, tag=str(per_s), repeat=repeat)
        for repeat, per_s in enumerate((205_000.0, 289_000.0), 1)
    ]
    without, known = estimates(rows), estimates([*rows, *odd])
    assert not known["odd", CAPACITY.key, None].is_resolved
    assert known["slow", CAPACITY.key, None] == without["slow", CAPACITY.key, None]
    assert set(claim([*rows, *odd], CAPACITY).order) == {"slow", "quick"}


def test_a_variant_that_scatters_more_does_not_widen_a_comparison_within_repeats() -> None:
    rng, at_once = default_rng(1), [0.0] * 5
    rows = [
        each for name in ("slow", "quick") for each in rows_of(rng, name, drift=at_once, repeats=5)
    ]
    odd = [
        row("odd", {CAPACITY.key: per_s}, experiment="e", repeat=repeat, tag=f"odd{repeat}")
        for repeat, per_s in enumerate((50e3, 300e3, 60e3, 280e3, 90e3), 1)
    ]
    without, known = (claim(each, CAPACITY).pairs for each in (rows, [*rows, *odd]))
    assert known["slow", "quick"].ratio == without["slow", "quick"].ratio


def test_memory_is_that_of_whole_runs_with_all_rates() -> None:
    rows = [
        row("a", {VIEW_LAG_P99.key: 1.0, MEMORY.key: gib}, Load(rate), tag=tag, repeat=repeat)
        for tag, repeat, memories in (("x", 1, (1.0, 2.0)), ("y", 2, (1.1, 2.1)), ("z", 3, (9.0,)))
        for rate, gib in zip((100, 200), memories, strict=False)
    ]
    assert estimates(rows)["a", MEMORY.key, None].values == (2.0, 2.1)


def test_whole_runs_of_experiments_at_other_rates_count_and_searches_do_not() -> None:
    rows = [
        row("a", {VIEW_LAG_P99.key: 1.0, MEMORY.key: gib}, Load(rate), tag=name, experiment=name)
        for name, gib, rates in (("x", 2.0, (100, 200)), ("y", 3.0, (100, 300)))
        for rate in rates
    ]
    trials = [
        replace(rows[0], load=Load(rate), window=f"{TRIAL}{rate}/s", tag="z", experiment="z")
        for rate in (10, 20, 30)
    ]
    assert estimates([*rows, *trials])["a", MEMORY.key, None].values == (2.0, 3.0)


@pytest.mark.parametrize(
    ("used_pct", "base_pct"), [((20, 30, 40), 10.0), ((24, 55, 80), None), ((24, 28, 32), 20.0)]
)
def test_a_base_is_given_where_cpu_uses_are_on_a_line(
    used_pct: tuple[float, ...], base_pct: float | None
) -> None:
    rows = [
        row("a", {VIEW_LAG_P99.key: 1.0, PROCESSED.key: rate, CPU_MEAN.key: pct}, Load(rate))
        for rate, pct in zip((1_000, 2_000, 3_000), used_pct, strict=True)
    ]
    found = estimates(rows).get(("a", BASE_CPU.key, None))
    assert (found and round(found.mean, 3)) == base_pct


def test_the_stacks_of_a_repeat_count_alike_and_once() -> None:
    rows = [
        row("a", {CAPACITY.key: per_s}, tag=str(per_s), experiment="x", at_least=bound)
        for per_s, bound in ((100.0, {CAPACITY.key}), (100.0, ()), (200.0, {CAPACITY.key}))
    ]
    found = estimates([replace(each, tag=str(at)) for at, each in enumerate(rows)])
    assert found["a", CAPACITY.key, None].values == pytest.approx((400 / 3,))
    assert found["a", CAPACITY.key, None].bounds == 1


def test_shares_on_a_fresh_stack_replace_and_are_not_compared_with_those_after_saturation() -> None:
    rng = default_rng(1)

    def shares_of(name: str, *, fresh: bool, factor: float = 1.0) -> list[Row]:
        measured = []
        for at, each in enumerate(rows_of(rng, name, {CPU_PER_MILLION.key: factor})):
            if each.load == Load(30_000):
                tag = f"{name} {at} {fresh}"
                saturated = row(name, {CAPACITY.key: 60_000.0}, tag="" if fresh else tag)
                measured += [
                    replace(saturated, window=SATURATION),
                    replace(each, load=Load(30_000, 0.5), tag=tag),
                ]
        return measured

    late = [*shares_of("a", fresh=False), *shares_of("b", fresh=False)]
    c = shares_of("c", fresh=True)
    (found,) = claims([*late, *c], [CPU_PER_MILLION])
    assert {*found.order} == {"a", "b"}
    again = shares_of("a", fresh=True, factor=2.0)
    (found,) = claims([*late, *c, *again], [CPU_PER_MILLION])
    assert {*found.order} == {"a", "c"}
    assert found.estimates["a"].mean == pytest.approx(160, rel=0.1)
    # Fewer fresh ones replace none.
    (found,) = claims([*late, *c, *again[:2]], [CPU_PER_MILLION])
    assert {*found.order} == {"a", "b"}
    assert found.estimates["a"].mean == pytest.approx(80, rel=0.1)
    # A higher share that nobody else has in the same order is not compared.
    higher = [
        replace(each, load=each.load and Load(36_000, 0.6), tag=f"{each.tag} {of}")
        for of, those in (("late", late[:6]), ("fresh", c))
        for each in those
    ]
    loads = [each.load for each in claims([*late, *c, *higher], [CPU_PER_MILLION])]
    assert loads == [Load(0, 0.5)]


def test_with_a_baseline_variants_are_only_compared_with_it() -> None:
    rng = default_rng(1)
    rows = [each for name in "abc" for each in rows_of(rng, name, {"cpu_s_per_million": 2.0})]
    (made,) = claims(rows, [CPU_PER_MILLION], baseline="a")
    assert {"".join(pair) for pair in made.pairs} == {"ab", "ba", "ac", "ca"}


def test_a_load_that_was_not_held_in_one_run_is_not_compared_by_the_lag_of_the_others() -> None:
    cost = {"cpu_s_per_million": 80.0}
    rows = [
        row(variant, {"lag_p99_ms": 500.0, **cost}, Load(12_000), repeat=repeat)
        for variant in "ab"
        for repeat in (1, 2)
    ]
    stopped = [*rows[:-1], replace(rows[-1], values=cost)]
    assert ratios(rows, "a") and {each.load for each in claims(rows)} == {Load(12_000)}
    assert not ratios(stopped, "a") and not claims(stopped)


def test_a_load_that_one_of_five_runs_missed_is_compared_with_all_their_values() -> None:
    rng = default_rng(3)
    lags_ms = {"a": [500.0, 510, 490, 505, 9_000], "b": [2_000.0, 2_010, 1_990, 2_005, 1_995]}
    rows = [
        row(
            variant,
            {VIEW_LAG_P99.key: lag_ms, CPU_PER_MILLION.key: cost * rng.uniform(0.99, 1.01)},
            Load(0, share),
            repeat=repeat,
            experiment="full",
        )
        for (variant, of_half), cost in zip(lags_ms.items(), (7.0, 43.0), strict=True)
        for share, lags in ((0.25, of_half[:4] + of_half[:1]), (0.5, of_half))
        for repeat, lag_ms in enumerate(lags, 1)
    ]
    by_load = {(each.metric, each.load): each for each in claims(rows)}
    assert by_load[CPU_PER_MILLION, Load(0, 0.5)].leaders == ("a",)
    # Its lag there is that of all runs. Nothing is claimed of it, since they do not resolve it.
    half = estimates(rows)["a", VIEW_LAG_P99.key, Load(0, 0.5)]
    assert half.mean == pytest.approx(math.prod(lags_ms["a"]) ** 0.2) and not half.is_resolved
    assert (VIEW_LAG_P99, Load(0, 0.5)) not in by_load
    # At the next lower share it is compared, no less certain for that.
    assert by_load[VIEW_LAG_P99, Load(0, 0.25)].leaders == ("a",)
    quarter = estimates(rows)["a", VIEW_LAG_P99.key, Load(0, 0.25)]
    assert quarter.is_resolved and not quarter.is_imprecise


def test_who_missed_a_load_without_a_lag_is_not_compared_by_the_lag_of_the_others() -> None:
    both = {VIEW_LAG_P99.key: 500.0, CPU_PER_MILLION.key: 7.0}
    rows = [
        row(variant, both, Load(0, 0.5), repeat=repeat) for variant in "ab" for repeat in (1, 2, 3)
    ]
    assert {each.metric for each in claims(rows)} == {VIEW_LAG_P99, CPU_PER_MILLION}
    stopped = [*rows[:-1], replace(rows[-1], values={CPU_PER_MILLION.key: 7.0})]
    assert {each.metric for each in claims(stopped)} == {CPU_PER_MILLION}


def of_class(rows: list[Row], **classes: str) -> list[Row]:
    return [replace(each, classes=classes) for each in rows]


def test_who_computes_when_read_makes_no_claim_and_limits_no_load() -> None:
    rng = default_rng(5)
    early = [*rows_of(rng, "one"), *rows_of(rng, "worse", {"view_lag_p99_ms": 1.5})]
    late = rows_of(rng, "late", {"lag_p99_ms": 0.1, "capacity_per_s": 9.0})
    late = [each for each in late if each.load in (None, Load(RATES[0]))]
    rows = [*of_class(late, work="when read"), *of_class(early, work="as events arrive")]
    made = claims(rows)
    orders = [
        {(each.metric.key, each.load): each.order for each in of} for of in (made, claims(early))
    ]
    assert orders[0] == orders[1]
    assert not any("late" in pair for each in made for pair in each.pairs)
    assert ("late", CAPACITY.key, None) in estimates(rows)
    # Those who all do are compared.
    among_them = claim(of_class(early, work="when read"), VIEW_LAG_P99)
    assert among_them.is_decided and among_them.across == ()


def test_a_claim_names_the_classes_that_differ_and_can_be_made_among_some() -> None:
    rng = default_rng(7)
    times = {"one": 1.0, "two": 1.5, "three": 2.0}
    rows: list[Row] = []
    for name, results in zip(times, ("served", "published to Kafka", "served"), strict=True):
        rows += of_class(rows_of(rng, name, {"view_lag_p99_ms": times[name]}), results=results)
    made = claim(rows, VIEW_LAG_P99)
    assert made.order == ("one", "two", "three") and len(made.across) == 1
    some = made.among(("two", "three"))
    assert (some.order, some.leaders) == (("two", "three"), ("two",))
    assert some.pairs["three", "two"] == made.pairs["three", "two"]
    assert made.among(("one", "three")).across == ()
    assert made.among(()).order == made.among(()).leaders == ()
