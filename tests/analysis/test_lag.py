"""Tests of lag: its parts add up, gaps count, no partition is hidden, and quantiles are exact."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from racetrack.analysis import curves
from racetrack.analysis.curves import Curve, Curves, Floats
from racetrack.analysis.lag import Age, age, lag_series, percentiles, quantile_ms, window_writes
from racetrack.results.figures import WindowWrites
from simulations import synthetic
from simulations.synthetic import START_MS, SyntheticRun

QUIET = SyntheticRun(noise_ms=0, cycle_ms=100)
PARTS = ("generator_ms", "broker_ms", "engine_ms")


def curves_of(run: SyntheticRun, seed: int = 1) -> Curves:
    return synthetic.curves(run, np.random.default_rng(seed))


def curve(*rows: tuple[float, float]) -> Curve:
    table = np.array(rows, dtype=np.float64).reshape(-1, 2)
    return Curve(table[:, 0], table[:, 1])


def one_partition(processed: Curve, until_ms: float = 10_000) -> Curves:
    """Return curves of one partition, in which one event per ms is due. Each is handed over 20
    ms later, and published another 30 ms later."""
    at = np.arange(0, until_ms + 1, 100.0)
    late = [Curve(at, np.maximum(at - delay, 0)) for delay in (0, 20, 50)]
    return Curves((0,), (late[0],), (late[1],), (late[2],), (processed,))


def test_by_hand() -> None:
    series = lag_series(one_partition(curve((3_000, 2_000), (4_000, 4_000))), 1_500, 4_500)
    assert series.at_ms.tolist() == [3_000, 4_000]
    # At 3,000, the oldest missing event is number 2,001, which was due at 2,001 (± half a
    # event). At 4,000, none is missing.
    assert series.lag_ms == pytest.approx([999.5, 0], abs=0.01)
    assert series.generator_ms == pytest.approx([20, 0], abs=0.01)
    assert series.broker_ms == pytest.approx([30, 0], abs=0.01)
    assert series.engine_ms == pytest.approx([949.5, 0], abs=0.01)
    # Just before 4,000, the oldest missing event was still number 2,001.
    assert series.stale_ms[1] == pytest.approx(1_999.5, abs=0.01)
    assert not series.silent.any()


def test_lag_grows_while_an_engine_is_silent() -> None:
    recorded = one_partition(curve((1_000, 1_000), (1_500, 1_500)))
    series = lag_series(recorded, 1_000, 9_000)
    assert series.at_ms.tolist() == [1_000, 1_500, *range(2_500, 9_000, 1_000), 9_000]
    assert series.silent.tolist() == [False, False] + [True] * 8
    assert series.lag_ms[-1] == pytest.approx(9_000 - 1_500, abs=2)
    assert np.all(np.diff(series.lag_ms[1:]) > 0)
    # Without any update, it is the age of the first event.
    series = lag_series(one_partition(curve()), 0, 9_000)
    assert series.silent.all()
    assert series.lag_ms == pytest.approx(series.at_ms, abs=2)
    # A long update interval is not silence.
    slow = curve(*((at, at) for at in range(0, 30_001, 5_000)))
    assert not lag_series(one_partition(slow, 31_000), 0, 30_000).silent.any()


def test_a_lag_whose_beginning_was_not_recorded_is_known_to_be_longer() -> None:
    """At 3,000, the engine has counted up to 500; the recording begins with number 1,001."""
    recorded = one_partition(curve((3_000, 500), (4_000, 4_000)))
    due = Curve(recorded.due[0].at_ms[10:], recorded.due[0].count[10:])
    found = percentiles(age(replace(recorded, due=(due,)), 3_000, 5_000))
    assert found["lag_p50_ms"] == pytest.approx(1_000, abs=1)
    assert found["lag_p99_ms"] == found["lag_max_ms"] == np.inf
    assert found["more_than_ms"]["lag_max_ms"] == 3_000
    assert set(found["more_than_ms"]) == {"lag_p90_ms", "lag_p99_ms", "lag_max_ms"}


def test_silence_is_a_silence_of_all_partitions_but_a_stalled_one_decides() -> None:
    run = replace(QUIET, partitions=16, stalled_partition=11, stalled_at_ms=10_000)
    series = lag_series(curves_of(run), *run.window)
    late = series.at_ms > START_MS + 12_000
    assert set(series.partition[late]) == {11}
    assert series.lag_ms[-1] == pytest.approx(20_000 + run.delay_ms, abs=150)
    assert not series.silent.any()


def test_what_is_not_known_is_not_zero() -> None:
    recorded = one_partition(curve((3_000, 3_000), (20_000, 20_000)))
    assert lag_series(recorded, 1_000, 20_000).end_ms == 10_000  # the recording ends there
    assert age(recorded, 1_000, 20_000).until_ms[-1] == 10_000
    begun_late = replace(recorded, due=(curve((0, 5_000), (10_000, 15_000)),))
    assert np.isinf(lag_series(begun_late, 1_000, 4_000).lag_ms).all()


def test_counts_before_the_due_time_are_detected() -> None:
    assert lag_series(one_partition(curve((1_000, 1_000))), 0, 5_000).early_ms == 0
    early = lag_series(one_partition(curve((1_000, 1_800), (2_000, 2_800))), 0, 5_000)
    assert early.early_ms == 700  # at 1,700 fewer than 1,800 were due


# Properties that all curves have.


@st.composite
def any_curves(draw: st.DrawFn) -> Curves:
    """Generate curves with any growing counts and any times, in a few partitions."""

    def growing(most: int) -> Curve:
        size = draw(st.integers(1, most))
        at = np.cumsum(draw(st.lists(st.integers(1, 400), min_size=size, max_size=size)))
        count = np.cumsum(draw(st.lists(st.integers(0, 50), min_size=size, max_size=size)))
        return Curve(at.astype(np.float64), count.astype(np.float64))

    partitions = tuple(range(draw(st.integers(1, 4))))
    sampled = [tuple(growing(12) for _ in partitions) for _ in curves.SAMPLED]
    processed = tuple(
        growing(8) if draw(st.booleans()) else Curve(np.empty(0), np.empty(0)) for _ in partitions
    )
    return Curves(partitions, sampled[0], sampled[1], sampled[2], processed)


@settings(max_examples=30)
@given(any_curves())
def test_parts_add_up_and_nothing_is_negative(recorded: Curves) -> None:
    series = lag_series(recorded, 0, 5_000)
    known = np.isfinite(series.lag_ms)
    parts = [getattr(series, name) for name in PARTS]
    assert np.allclose(sum(parts)[known], series.lag_ms[known])
    for values in (series.lag_ms, series.stale_ms, *parts):
        assert np.all(values >= -1e-6)
    # `stale_ms` is the age just before an update, `lag_ms` just after it. Counts never fall here,
    # so no update can raise the age.
    assert np.all(series.stale_ms[known] >= series.lag_ms[known] - 1e-6)


@settings(max_examples=30)
@given(any_curves())
def test_no_partition_lags_more_than_the_lag(recorded: Curves) -> None:
    whole = lag_series(recorded, 0, 5_000)
    largest = np.zeros(len(whole.at_ms))
    for p in recorded.partitions:
        # The other partitions have no lag: nothing is due in them, and all is counted.
        done = tuple(
            c if row == p else Curve(c.at_ms, np.full(len(c.at_ms), 1e9))
            for row, c in enumerate(recorded.processed)
        )
        unsaid = tuple(
            Curve(c.at_ms, np.zeros(len(c.at_ms))) if row != p else c
            for row, c in enumerate(recorded.due)
        )
        alone = lag_series(replace(recorded, processed=done, due=unsaid), 0, 5_000)
        assert np.array_equal(alone.at_ms, whole.at_ms)
        assert np.all(alone.lag_ms <= whole.lag_ms)
        largest = np.maximum(largest, alone.lag_ms)
    assert np.array_equal(largest, whole.lag_ms)


SAWTOOTH = SyntheticRun(noise_ms=0, cycle_ms=1_000, delay_ms=135)
SHARES = (0.1, 0.5, 0.9, 0.99, 1.0)


def looked_at(recorded: Age, every_ms: float) -> Floats:
    """Return the age at regular instants, computed in another way than in `quantiles_ms`."""
    at_ms = np.arange(recorded.from_ms[0] + every_ms / 2, recorded.until_ms[-1], every_ms)
    row = np.searchsorted(recorded.from_ms, at_ms, "right") - 1
    return np.maximum(at_ms - recorded.oldest_ms[row], 0)


def test_what_is_not_due_yet_is_not_late() -> None:
    recorded = one_partition(curve((5_500, 5_000)))
    at_ms = recorded.due[0].at_ms
    due = Curve(at_ms, np.minimum(at_ms, 5_000))  # nothing is due after 5 s
    recorded = replace(recorded, due=(due,), handed_over=(due,), published=(due,))
    assert age(recorded, 6_000, 9_000).quantiles_ms((0.5, 1.0)) == [0, 0]


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
    run = replace(
        SAWTOOTH, cycle_ms=cycle_ms, delay_ms=delay_ms, noise_ms=noise_ms, pause_ms=pause_ms
    )
    run = replace(run, pause_at_ms=8_000.0 if pause_ms else None)
    recorded = age(curves_of(run, seed), *run.window)
    seen = looked_at(recorded, 0.5)
    for share, exact in zip(SHARES, recorded.quantiles_ms(SHARES), strict=True):
        low, high = np.quantile(seen, [max(0, share - 1e-4), min(1, share + 1e-4)])
        assert low - 1 <= exact <= high + 1


@pytest.mark.parametrize("apart_ms", [1, 2, 3, 4])
def test_rows_that_are_a_few_milliseconds_apart_are_one_update(apart_ms: int) -> None:
    """Otherwise, just after the first of these rows, the other partitions would seem a cycle too
    old."""
    whole = curves_of(SAWTOOTH)
    stamped = (
        Curve(curve.at_ms + row * apart_ms, curve.count)
        for row, curve in enumerate(whole.processed)
    )
    series = lag_series(replace(whole, processed=tuple(stamped)), *SAWTOOTH.window)
    last_ms = apart_ms * (SAWTOOTH.partitions - 1)
    assert quantile_ms(series, series.lag_ms, 0.5) == pytest.approx(135 + last_ms, abs=5)


LENGTH_MS = 10_000
WINDOWED = SyntheticRun(window_s=40, noise_ms=0, cycle_ms=100, recorded_after_ms=15_000)


def window_writes_of(run: SyntheticRun) -> WindowWrites:
    found = window_writes(curves_of(run), *run.window, LENGTH_MS)
    assert found
    return found


def test_a_constant_delay_is_the_same_in_both_measures() -> None:
    found = window_writes_of(WINDOWED)
    assert found.windows == 4
    assert found.after_end_p50_ms == pytest.approx(550, abs=60)
    assert found.lag_max_ms == pytest.approx(600, abs=20)


@pytest.mark.parametrize(("into_the_window_ms", "shows_ms"), [(1_000, 550), (6_000, 4_250)])
def test_what_a_stall_of_8_s_shows_is_where_it_falls_in_a_window(
    into_the_window_ms: int, shows_ms: int
) -> None:
    at_ms = 10_000.0 + into_the_window_ms
    stalled = replace(WINDOWED, pause_at_ms=at_ms, pause_ms=8_000.0, catch_up_factor=20.0)
    found = window_writes_of(stalled)
    assert found.after_end_max_ms == pytest.approx(shows_ms, abs=300)
    assert found.lag_max_ms == pytest.approx(8_500, abs=300)


def test_a_window_that_was_never_written_to_its_end_is_without_end() -> None:
    silent = replace(WINDOWED, pause_at_ms=31_000.0, pause_ms=60_000.0)
    assert window_writes_of(silent).after_end_max_ms == np.inf
    # Where no window ends, nothing is reported.
    assert window_writes(curves_of(WINDOWED), START_MS, START_MS + 9_999, LENGTH_MS) is None
