"""Lag: parts that add up, silence that does not look good, partitions that can't hide."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from racetrack.analysis import curves
from racetrack.analysis.curves import Curve, Curves, throughput, trusted
from racetrack.analysis.lag import lag_series
from racetrack.results.figures import Throughput
from tests.analysis import synthetic
from tests.analysis.synthetic import START_MS, Race

QUIET = Race(noise_ms=0, cycle_ms=100)
PARTS = ("generator_ms", "broker_ms", "engine_ms")


def curves_of(race: Race, seed: int = 1) -> Curves:
    return synthetic.curves(race, np.random.default_rng(seed))


def curve(*rows: tuple[float, float]) -> Curve:
    table = np.array(rows, dtype=np.float64).reshape(-1, 2)
    return Curve(table[:, 0], table[:, 1])


def one_partition(processed: Curve, until_ms: float = 10_000) -> Curves:
    """One pageview per ms, handed over 20 ms late and published another 30 ms later."""
    at = np.arange(0, until_ms + 1, 100.0)
    late = [Curve(at, np.maximum(at - delay, 0)) for delay in (0, 20, 50)]
    return Curves((0,), (late[0],), (late[1],), (late[2],), (processed,))


@pytest.mark.parametrize("delay_ms", [50, 250, 2_000])
def test_a_programmed_delay_is_measured(delay_ms: int) -> None:
    race = replace(QUIET, delay_ms=delay_ms)
    series = lag_series(curves_of(race), *race.window)
    assert np.median(series.lag_ms) == pytest.approx(delay_ms, abs=2)
    assert np.median(series.generator_ms) == pytest.approx(2, abs=2)
    assert np.median(series.broker_ms) == pytest.approx(5, abs=2)


def test_by_hand() -> None:
    series = lag_series(one_partition(curve((3_000, 2_000), (4_000, 4_000))), 1_500, 4_500)
    assert series.at_ms.tolist() == [3_000, 4_000]
    # Number 2,001 was due at 2,001 (give or take the half of a pageview), and at 4,000 none is.
    assert series.lag_ms == pytest.approx([999.5, 0], abs=0.01)
    assert series.generator_ms == pytest.approx([20, 0], abs=0.01)
    assert series.broker_ms == pytest.approx([30, 0], abs=0.01)
    assert series.engine_ms == pytest.approx([949.5, 0], abs=0.01)
    # Just before 4,000 the oldest was still number 2,001.
    assert series.stale_ms[1] == pytest.approx(1_999.5, abs=0.01)
    assert not series.silent.any()


def test_an_age_at_few_pageviews_per_second_has_no_bias() -> None:
    race = replace(QUIET, rate_per_s=12, delay_ms=1_000)
    errors = [
        np.median(lag_series(curves_of(race, s), *race.window).lag_ms) - 1_000 for s in range(30)
    ]
    # 3/s a partition: what is oldest and not counted is up to a third of a second younger.
    assert -334 / 2 < float(np.mean(errors)) <= 5


def test_who_falls_silent_ages() -> None:
    told = one_partition(curve((1_000, 1_000), (1_500, 1_500)))
    series = lag_series(told, 1_000, 9_000)
    assert series.at_ms.tolist() == [1_000, 1_500, *range(2_500, 9_000, 1_000), 9_000]
    assert series.silent.tolist() == [False, False] + [True] * 8
    assert series.lag_ms[-1] == pytest.approx(9_000 - 1_500, abs=2)
    assert np.all(np.diff(series.lag_ms[1:]) > 0)


def test_an_engine_that_never_says_anything_is_as_late_as_the_first_pageview() -> None:
    series = lag_series(one_partition(curve()), 0, 9_000)
    assert series.silent.all()
    assert series.lag_ms == pytest.approx(series.at_ms, abs=2)


def test_a_slow_rhythm_is_not_silence() -> None:
    slow = curve(*((at, at) for at in range(0, 30_001, 5_000)))
    assert not lag_series(one_partition(slow, 31_000), 0, 30_000).silent.any()


def test_silence_is_a_silence_of_all_partitions_but_a_stalled_one_decides() -> None:
    race = replace(QUIET, partitions=16, stalled_partition=11, stalled_at_ms=10_000)
    series = lag_series(curves_of(race), *race.window)
    late = series.at_ms > START_MS + 12_000
    assert set(series.partition[late]) == {11}
    assert series.lag_ms[-1] == pytest.approx(20_000 + race.delay_ms, abs=150)
    assert not series.silent.any()


def test_what_is_not_known_is_not_zero() -> None:
    told = one_partition(curve((3_000, 3_000), (20_000, 20_000)))
    assert lag_series(told, 1_000, 20_000).end_ms == 10_000  # the recording's end
    begun_late = replace(told, due=(curve((0, 5_000), (10_000, 15_000)),))
    assert np.isinf(lag_series(begun_late, 1_000, 4_000).lag_ms).all()


def test_what_is_counted_before_it_is_due_is_told() -> None:
    assert lag_series(one_partition(curve((1_000, 1_000))), 0, 5_000).early_ms == 0
    early = lag_series(one_partition(curve((1_000, 1_800), (2_000, 2_800))), 0, 5_000)
    assert early.early_ms == 700  # at 1,700 not yet 1,800 were due


def test_nothing_after_a_step_back_is_trusted() -> None:
    race = replace(QUIET, delay_ms=300)
    told = synthetic.set_back(curves_of(race), START_MS + 20_000, 5_000)
    cut = trusted(told)
    step = cut.step
    assert step is not None
    assert step.to_ms == pytest.approx(START_MS + 15_000, abs=300)
    assert step.from_ms - step.to_ms == pytest.approx(5_000, abs=150)
    series = lag_series(told, *race.window)
    assert series.end_ms == pytest.approx(START_MS + 15_000, abs=300)
    assert np.all(np.diff(series.at_ms) > 0)
    for name in curves.NAMES:
        assert all(np.all(np.diff(c.at_ms) >= 0) for c in getattr(cut, name))


def test_rows_a_little_out_of_order_are_no_step() -> None:
    told = one_partition(curve((1_000, 900), (2_000, 1_900), (1_990, 1_950), (3_000, 2_900)))
    assert trusted(told).step is None
    assert np.all(np.diff(lag_series(told, 0, 4_000).at_ms) > 0)


def test_throughput() -> None:
    race = replace(QUIET, generator_leak=0.1, broker_leak=0.05, leak=0.5)
    found = throughput(curves_of(race), START_MS + 1_000, START_MS + 29_000)
    expected = Throughput(
        offered_per_s=4_000,
        handed_over_per_s=3_600,
        published_per_s=3_400,
        processed_per_s=2_000,
    )
    for name in Throughput.__annotations__:
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=0.01)


# What holds for any curves.


@st.composite
def any_curves(draw: st.DrawFn) -> Curves:
    """A few partitions with any counts that grow, sampled and told at any times."""

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


@given(any_curves())
def test_parts_add_up_and_nothing_is_negative(told: Curves) -> None:
    series = lag_series(told, 0, 5_000)
    known = np.isfinite(series.lag_ms)
    parts = [getattr(series, name) for name in PARTS]
    assert np.allclose(sum(parts)[known], series.lag_ms[known])
    for values in (series.lag_ms, series.stale_ms, *parts):
        assert np.all(values >= -1e-6)
    # Who counts can't make a view staler. (A count never falls here.)
    assert np.all(series.stale_ms[known] >= series.lag_ms[known] - 1e-6)


@given(any_curves(), st.randoms())
def test_the_order_of_partitions_does_not_matter(told: Curves, random: object) -> None:
    order = list(told.partitions)
    random.shuffle(order)  # type: ignore[attr-defined]
    turned = replace(
        told, **{name: tuple(getattr(told, name)[p] for p in order) for name in curves.NAMES}
    )
    one, other = lag_series(told, 0, 5_000), lag_series(turned, 0, 5_000)
    assert np.array_equal(one.lag_ms, other.lag_ms)
    assert np.array_equal(one.stale_ms, other.stale_ms)


@given(any_curves())
def test_no_partition_lags_more_than_the_lag(told: Curves) -> None:
    whole = lag_series(told, 0, 5_000)
    largest = np.zeros(len(whole.at_ms))
    for p in told.partitions:
        # The others count all at once, so that only this one can decide, at the same times.
        done = tuple(
            c if row == p else Curve(c.at_ms, np.full(len(c.at_ms), 1e9))
            for row, c in enumerate(told.processed)
        )
        unsaid = tuple(
            Curve(c.at_ms, np.zeros(len(c.at_ms))) if row != p else c
            for row, c in enumerate(told.due)
        )
        alone = lag_series(replace(told, processed=done, due=unsaid), 0, 5_000)
        assert np.array_equal(alone.at_ms, whole.at_ms)
        assert np.all(alone.lag_ms <= whole.lag_ms)
        largest = np.maximum(largest, alone.lag_ms)
    assert np.array_equal(largest, whole.lag_ms)


# The file.


def test_what_is_written_is_read(tmp_path: Path) -> None:
    told = curves_of(replace(QUIET, window_s=3, stalled_partition=1, stalled_at_ms=-9_999))
    synthetic.write(told, tmp_path)
    read = curves.read(tmp_path)
    assert read.partitions == told.partitions
    for name in curves.NAMES:
        for there, here in zip(getattr(read, name), getattr(told, name), strict=True):
            assert np.array_equal(there.at_ms, here.at_ms)
            assert np.array_equal(there.count, here.count)
    assert not len(read.processed[1].at_ms)


ROWS = "1,due,0,1\n1,handed_over,0,1\n1,published,0,1\n"


def test_a_line_that_was_cut_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "curves.csv").write_text(f"at_ms,curve,partition,count\n{ROWS}2,due,0,1")
    assert curves.read(tmp_path).due[0].at_ms.tolist() == [1]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "recorded no curves"),
        ("", "does not start with"),
        ("at_ms,due\n", "does not start with"),
        (f"at_ms,curve,partition,count\n{ROWS}2,due,zero,1\n", "line 5: '2,due,zero,1'"),
        (f"at_ms,curve,partition,count\n{ROWS}2,eaten,0,1\n", "eaten"),
        ("at_ms,curve,partition,count\n", "lacks any row"),
        (f"at_ms,curve,partition,count\n{ROWS}1,due,1,1\n", "lacks handed_over/1, published/1"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str | None, says: str) -> None:
    if text is not None:
        (tmp_path / "curves.csv").write_text(text)
    with pytest.raises(curves.CurvesError, match=says):
        curves.read(tmp_path)


def test_the_recording_ends_with_its_shortest_curve() -> None:
    told = one_partition(curve((1, 1)))
    shorter = replace(told, published=(curve((0, 0), (700, 600)),))
    assert curves.recorded_until_ms(told) == 10_000
    assert curves.recorded_until_ms(shorter) == 700
