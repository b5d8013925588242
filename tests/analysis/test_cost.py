"""Base and marginal cost: found where they are known, and not told where runs don't tell."""

import csv

import numpy as np
import pytest

from racetrack.analysis.cost import fitted
from racetrack.settings import REPO


def test_a_line_is_found_with_an_interval_that_holds_it() -> None:
    rng = np.random.default_rng(7)
    rates = np.repeat([500.0, 2_000, 10_000, 30_000], 3)
    held = 0
    for _ in range(400):
        cores = 0.218 + 12.1e-6 * rates + rng.normal(0, 0.02, len(rates))
        found = fitted(rates.tolist(), cores.tolist())
        assert found
        held += abs(found.base_pct - 21.8) <= found.base_half_pct
        held += abs(found.per_million_s - 12.1) <= found.per_million_half_s
    # 95 % of 800, give or take three standard deviations.
    assert 740 <= held <= 780


def test_the_published_sweep_costs_what_a_fit_by_hand_says() -> None:
    rows = [
        row
        for row in csv.DictReader((REPO / "docs/example/report.csv").open())
        if row["verdict"] != "fell behind"
    ]
    first = [row for row in rows if row["engine"] == rows[0]["engine"]]
    rates = [float(row["processed_pageviews_per_s"]) for row in first]
    costs = [float(row["cpu_s_per_million"]) for row in first]
    found = fitted(rates, [rate * cost / 1e6 for rate, cost in zip(rates, costs, strict=True)])
    assert found and found.runs == 12
    assert (found.base_pct, found.base_half_pct) == pytest.approx((21.8, 2.4), abs=0.06)
    assert (found.per_million_s, found.per_million_half_s) == pytest.approx((12.1, 1.5), abs=0.06)


@pytest.mark.parametrize("rates", [[], [500.0], [500.0, 30_000.0], [500.0, 501.0, 499.0, 500.0]])
def test_runs_at_one_rate_or_too_few_make_no_line(rates: list[float]) -> None:
    assert fitted(rates, [0.2] * len(rates)) is None
