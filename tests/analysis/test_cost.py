"""Base and marginal cost: found where they are known, and not told where runs don't tell."""

import numpy as np
import pytest

from racetrack.analysis.compare import fit_cost


def test_a_line_is_found_with_an_interval_that_holds_it() -> None:
    rng = np.random.default_rng(7)
    rates = np.repeat([500.0, 2_000, 10_000, 30_000], 3)
    held = 0
    for _ in range(400):
        cores = 0.218 + 12.1e-6 * rates + rng.normal(0, 0.02, len(rates))
        found = fit_cost(rates.tolist(), cores.tolist())
        assert found
        held += abs(found.base_pct - 21.8) <= found.base_half_pct
        held += abs(found.per_million_s - 12.1) <= found.per_million_half_s
    # 95 % of 800, give or take three standard deviations.
    assert 740 <= held <= 780


# A sweep of 2026-11-21: pageviews per second that were processed, CPU seconds per million.
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


def test_a_sweep_costs_what_a_fit_by_hand_says() -> None:
    rates = [rate for rate, _ in SWEEP]
    found = fit_cost(rates, [rate * cost / 1e6 for rate, cost in SWEEP])
    assert found and found.runs == 12
    assert (found.base_pct, found.base_half_pct) == pytest.approx((21.8, 2.4), abs=0.06)
    assert (found.per_million_s, found.per_million_half_s) == pytest.approx((12.1, 1.5), abs=0.06)


@pytest.mark.parametrize("rates", [[], [500.0], [500.0, 30_000.0], [500.0, 501.0, 499.0, 500.0]])
def test_runs_at_one_rate_or_too_few_make_no_line(rates: list[float]) -> None:
    assert fit_cost(rates, [0.2] * len(rates)) is None
