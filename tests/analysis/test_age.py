"""Lag at every instant: against a truth made by looking at each millisecond."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from racetrack.analysis import curves as curve_module
from racetrack.analysis.curves import Curve, Curves, Floats, update_times_ms
from racetrack.analysis.lag import Age, age, lag_series, quantile_ms
from racetrack.analysis.verdict import judge
from tests.analysis import synthetic
from tests.analysis.synthetic import START_MS, Race

SAWTOOTH = Race(noise_ms=0, cycle_ms=1_000, delay_ms=135)
SHARES = (0.1, 0.5, 0.9, 0.99, 1.0)


def curves_of(race: Race, seed: int = 1) -> Curves:
    return synthetic.curves(race, np.random.default_rng(seed))


def looked_at(told: Age, every_ms: float) -> Floats:
    """The age at instants so far apart, without any of what `quantiles_ms` does."""
    at_ms = np.arange(told.from_ms[0] + every_ms / 2, told.until_ms[-1], every_ms)
    row = np.searchsorted(told.from_ms, at_ms, "right") - 1
    return np.maximum(at_ms - told.oldest_ms[row], 0)


def test_updates_once_a_second_show_ages_from_the_delay_to_a_second_more() -> None:
    p10, p50, p90, p99, most = age(curves_of(SAWTOOTH), *SAWTOOTH.window).quantiles_ms(SHARES)
    assert p10 == pytest.approx(135 + 100, abs=20)
    assert p50 == pytest.approx(135 + 500, abs=20)
    assert p90 == pytest.approx(135 + 900, abs=20)
    assert p99 == pytest.approx(135 + 990, abs=25)
    assert most == pytest.approx(135 + 1_000, abs=30)


def test_two_engines_of_the_same_delay_rank_by_what_a_reader_sees() -> None:
    often = replace(SAWTOOTH, cycle_ms=100, delay_ms=160)
    seldom, steady = (judge(curves_of(race), *race.window).measured for race in (SAWTOOTH, often))
    assert seldom and steady
    assert seldom.processing_lag_p99_ms < steady.processing_lag_p99_ms
    assert seldom.lag_p50_ms > 2 * steady.lag_p50_ms
    assert seldom.lag_p99_ms > 3 * steady.lag_p99_ms


def test_a_partition_that_stalls_is_as_old_as_its_oldest_pageview() -> None:
    race = replace(SAWTOOTH, cycle_ms=100, stalled_partition=2, stalled_at_ms=10_000)
    (most,) = age(curves_of(race), *race.window).quantiles_ms((1.0,))
    assert most == pytest.approx(20_135, abs=150)


def test_what_is_not_due_yet_is_not_late() -> None:
    at = np.arange(0, 10_001, 100.0)
    due = Curve(at, np.minimum(at, 5_000))  # nothing is due after 5 s
    told = Curves((0,), (due,), (due,), (due,), (Curve(np.array([5_500.0]), np.array([5_000.0])),))
    assert age(told, 6_000, 9_000).quantiles_ms((0.5, 1.0)) == [0, 0]


def test_what_was_due_before_the_recording_began_is_without_end() -> None:
    at = np.arange(1_000, 10_001, 100.0)
    due = Curve(at, at)
    told = Curves((0,), (due,), (due,), (due,), (Curve(np.array([1_500.0]), np.array([500.0])),))
    assert age(told, 2_000, 9_000).quantiles_ms((0.5, 1.0)) == [np.inf, np.inf]


@given(
    cycle_ms=st.sampled_from([50.0, 300.0, 1_000.0, 4_000.0]),
    delay_ms=st.floats(0, 3_000),
    noise_ms=st.sampled_from([0.0, 100.0, 800.0]),
    pause_ms=st.sampled_from([0.0, 5_000.0]),
    seed=st.integers(0, 10_000),
)
@settings(max_examples=30, deadline=None)
def test_quantiles_are_those_of_a_look_at_every_instant(
    cycle_ms: float, delay_ms: float, noise_ms: float, pause_ms: float, seed: int
) -> None:
    race = replace(
        SAWTOOTH, cycle_ms=cycle_ms, delay_ms=delay_ms, noise_ms=noise_ms, pause_ms=pause_ms
    )
    race = replace(race, pause_at_ms=8_000.0 if pause_ms else None)
    told = age(curves_of(race, seed), *race.window)
    seen = looked_at(told, 0.5)
    for share, exact in zip(SHARES, told.quantiles_ms(SHARES), strict=True):
        low, high = np.quantile(seen, [max(0, share - 1e-4), min(1, share + 1e-4)])
        assert low - 1 <= exact <= high + 1


def test_an_update_whose_partitions_come_a_millisecond_apart_is_one_step() -> None:
    whole = curves_of(replace(SAWTOOTH, cycle_ms=1_000))
    spread = replace(
        whole,
        processed=tuple(
            Curve(curve.at_ms + partition, curve.count)
            for partition, curve in enumerate(whole.processed)
        ),
    )
    assert len(update_times_ms(spread)) == len(update_times_ms(whole))
    for told in (whole, spread):
        series = lag_series(told, *SAWTOOTH.window)
        assert quantile_ms(series, series.lag_ms, 0.5) == pytest.approx(135, abs=5)
        (p50,) = age(told, *SAWTOOTH.window).quantiles_ms((0.5,))
        assert p50 == pytest.approx(635, abs=20)


@pytest.mark.parametrize("apart_ms", [1, 2, 3, 4])
def test_without_that_rule_the_same_rows_give_another_processing_lag(
    apart_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = curves_of(SAWTOOTH)

    def processing_lag_p50_ms() -> float:
        stamped = (
            Curve(curve.at_ms + row * apart_ms, curve.count)
            for row, curve in enumerate(whole.processed)
        )
        series = lag_series(replace(whole, processed=tuple(stamped)), *SAWTOOTH.window)
        return quantile_ms(series, series.lag_ms, 0.5)

    last_ms = apart_ms * (SAWTOOTH.partitions - 1)
    assert processing_lag_p50_ms() == pytest.approx(135 + last_ms, abs=5)
    # Each row taken for an update: the first of them finds the other partitions a cycle old.
    monkeypatch.setattr(curve_module, "STEP_MS", 0.0)
    assert processing_lag_p50_ms() == pytest.approx(135 + 1_000, abs=20)


def test_the_window_ends_where_the_recording_does() -> None:
    told = age(curves_of(SAWTOOTH), START_MS, START_MS + 10_000_000)
    assert told.until_ms[-1] < START_MS + 32_000
