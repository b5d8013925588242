"""Tests of means, ratios and cost lines: against values computed by hand, and their error rates."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from racetrack.analysis.intervals import Ratio, fit_cost, ratio, summary

POSITIVE = st.lists(st.floats(0.1, 1e6), min_size=2, max_size=6)


def test_the_interval_of_a_mean_is_students() -> None:
    found = summary([10.0, 12.0, 14.0])
    assert found.mean == 12
    # t(0.975, 2 degrees of freedom) = 4.30265; the standard error is 2 / sqrt(3).
    assert found.half == pytest.approx(4.30265 * 2 / math.sqrt(3), rel=1e-5)
    assert found.n == 3


def test_one_run_has_a_mean_but_no_interval() -> None:
    assert summary([7.0]).half is None
    with pytest.raises(ValueError, match="no values"):
        summary([])


def test_the_ratios_interval_is_scipys_welch() -> None:
    a, b = [3.1, 2.7, 2.9, 3.6], [1.1, 1.9, 1.4]
    found = ratio(a, b)
    theirs = stats.ttest_ind(np.log(a), np.log(b), equal_var=False).confidence_interval(0.95)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((math.exp(theirs.low), math.exp(theirs.high)))


@given(POSITIVE, POSITIVE)
def test_the_inverse_ratio_has_the_inverse_interval(a: list[float], b: list[float]) -> None:
    there, back = ratio(a, b), ratio(b, a)
    assert there and back
    assert there.ratio == pytest.approx(1 / back.ratio)
    if there.low is not None and there.high is not None:
        assert back.low is not None and back.high is not None
        assert there.low <= there.ratio <= there.high
        assert there.low * back.high == pytest.approx(1, rel=1e-6)


def test_what_has_no_ratio_or_no_interval() -> None:
    assert ratio([0.0, 1.0], [1.0, 2.0]) is None
    assert ratio([], [1.0]) is None
    single = ratio([2.0], [1.0, 1.1])
    assert single is not None and single.low is None
    assert single.ratio == pytest.approx(1.907, abs=0.001)
    alike = ratio([2.0, 2.0], [1.0, 1.0])
    assert alike is not None and alike.low is None
    assert "no interval" in alike.conclusion


def test_the_conclusion_follows_from_the_interval() -> None:
    assert Ratio(2.0, 1.5, 2.5).conclusion == "more"
    assert Ratio(0.5, 0.4, 0.6).conclusion == "less"
    assert Ratio(1.1, 0.9, 1.3).conclusion == "no difference shown"


def test_the_intervals_miss_the_truth_about_once_in_twenty() -> None:
    rng = np.random.default_rng(2022)
    missed_mean = missed_ratio = 0
    for _ in range(1000):
        a, b = rng.lognormal(1.0, 0.1, 3), rng.lognormal(0.0, 0.2, 3)
        of = summary(list(np.log(a)))
        assert of.half is not None
        missed_mean += abs(of.mean - 1.0) > of.half
        found = ratio(list(a), list(b))
        assert found is not None and found.low is not None and found.high is not None
        missed_ratio += not found.low <= math.e <= found.high
    assert 30 <= missed_mean <= 70
    # With few repeats, Welch's interval is slightly too wide, which is better than too narrow.
    assert 15 <= missed_ratio <= 70


def test_a_line_is_found_with_an_interval_that_holds_it() -> None:
    rng = np.random.default_rng(7)
    rates = np.repeat([500.0, 2_000, 10_000, 30_000], 3)
    rows = 0
    for _ in range(400):
        cores = 0.218 + 12.1e-6 * rates + rng.normal(0, 0.02, len(rates))
        found = fit_cost(zip(rates.tolist(), (100 * cores).tolist(), strict=True))
        assert found
        rows += abs(found.base_pct - 21.8) <= found.base_half_pct
        rows += abs(found.per_million_s - 12.1) <= found.per_million_half_s
    # 95 % of the 800 intervals must hold the true value, give or take three standard deviations.
    assert 740 <= rows <= 780


# Processed pageviews per second, and CPU seconds per million of them, measured in a sweep on
# 2026-11-21.
SWEEP = (
    (498.7, 449.512),
    (1_990.6, 105.661),
    (10_004.4, 32.52),
    (29_844.8, 18.932),
    (499.1, 411.329),
    (1_990.1, 108.186),
    (10_010.8, 33.52),
    (29_995.5, 19.627),
    (498.6, 526.843),
    (1_990.8, 151.151),
    (9_946.2, 32.524),
    (29_822.1, 19.927),
)


def test_a_sweep_costs_what_a_fit_by_hand_gives() -> None:
    found = fit_cost((rate, rate * cost / 1e4) for rate, cost in SWEEP)
    assert found and found.runs == 12
    assert (found.base_pct, found.base_half_pct) == pytest.approx((21.8, 2.4), abs=0.06)
    assert (found.per_million_s, found.per_million_half_s) == pytest.approx((12.1, 1.5), abs=0.06)


@pytest.mark.parametrize("rates", [[], [500.0], [500.0, 30_000.0], [500.0, 501.0, 499.0, 500.0]])
def test_runs_at_one_rate_or_too_few_make_no_line(rates: list[float]) -> None:
    assert fit_cost((rate, 20.0) for rate in rates) is None
