"""Tests of slopes of lag: Theil-Sen's estimate with a correct interval, and the transient at the
beginning, which is left out."""

import numpy as np
import pytest
from scipy import stats

from racetrack.analysis.curves import Floats
from racetrack.analysis.slope import growth, shortest_window_s, transient_length
from racetrack.results.figures import Slope

RNG = np.random.default_rng


def seconds(count: int) -> Floats:
    return np.arange(count, dtype=np.float64) * 1_000


def test_the_slope_is_theil_and_sens() -> None:
    rng = RNG(1)
    times, values = np.cumsum(rng.random(40) * 2_000), rng.normal(0, 100, 40)
    assert growth(times, values).pct == pytest.approx(100 * stats.theilslopes(values, times)[0])


@pytest.mark.slow
def test_the_interval_has_its_nominal_coverage() -> None:
    """The noise is independent. An interval may miss the true slope in 2 % of the runs; more than 4
    % of 1,000 runs can't be chance."""
    rng, times = RNG(1), seconds(30)
    slopes = [growth(times, rng.normal(0, 100, 30) + 0.02 * times) for _ in range(1_000)]
    missed = sum(not slope.low_pct < 2 < slope.high_pct for slope in slopes)
    assert 2 <= missed <= 40


@pytest.mark.slow
def test_correlated_noise_widens_the_interval() -> None:
    rng, times = RNG(1), seconds(60)
    white = rng.normal(0, 100, (100, 60))
    walk = np.cumsum(white, axis=1)
    scaled = walk * (white.std() / walk.std(axis=1, keepdims=True))

    def width(rows: Floats) -> float:
        slopes = [growth(times, row) for row in rows]
        return float(np.median([slope.high_pct - slope.low_pct for slope in slopes]))

    assert width(scaled) > 2 * width(white)


def test_a_line_that_bends_at_its_end_stretches_the_interval() -> None:
    times = seconds(60)
    late_stall: Floats = np.maximum(times - 54_000, 0)
    slope = growth(times, late_stall)
    assert slope.pct == pytest.approx(0, abs=0.01)
    assert slope.high_pct > 1


def test_a_lag_without_any_noise_has_a_narrow_interval() -> None:
    times = seconds(20)
    assert growth(times, np.zeros(20)) == Slope(pct=0, low_pct=0, high_pct=0)
    assert growth(times, 0.03 * times).low_pct == pytest.approx(3, abs=1e-3)


def test_the_shortest_window_scales_with_the_noise() -> None:
    # The interval of ± 1 % must shrink to ± 0.5 %. Its width is proportional to the window's length
    # to the power of -1.5, so the window must be longer by a factor of 2 to the power of 2/3.
    assert shortest_window_s(Slope(pct=0, low_pct=-1, high_pct=1), 100) == 159
    assert shortest_window_s(Slope(pct=0, low_pct=-8, high_pct=8), 100) == 635


def test_what_is_left_out_at_the_beginning_is_found() -> None:
    times = seconds(60)
    noise = RNG(1).normal(0, 100, 60)
    dying = 5_000 * np.exp(-times / 4_000)
    assert transient_length(times, noise) == 0
    assert transient_length(times, noise + 0.05 * times) == 0
    assert 5 <= transient_length(times, noise + dying) <= 20
    assert 5 <= transient_length(times, noise + dying + 0.05 * times) <= 20
    assert transient_length(times[:8], dying[:8]) == 0
