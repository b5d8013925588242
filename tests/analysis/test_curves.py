"""Tests of curves (counts over time): reading them, clocks that were set back, and rates."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from racetrack.analysis import curves
from racetrack.analysis.curves import throughput, trusted
from racetrack.analysis.lag import lag_series
from racetrack.errors import UnreadableFile
from simulations import synthetic
from simulations.synthetic import START_MS
from tests.analysis.test_lag import QUIET, curve, curves_of, one_partition


def test_nothing_after_a_step_back_is_trusted() -> None:
    run = replace(QUIET, delay_ms=300)
    recorded = synthetic.set_back(curves_of(run), START_MS + 20_000, 5_000)
    cut = trusted(recorded)
    step = cut.step
    assert step is not None
    assert step.to_ms == pytest.approx(START_MS + 15_000, abs=300)
    assert step.from_ms - step.to_ms == pytest.approx(5_000, abs=150)
    series = lag_series(recorded, *run.window)
    assert series.end_ms == pytest.approx(START_MS + 15_000, abs=300)
    assert np.all(np.diff(series.at_ms) > 0)
    for name in curves.NAMES:
        assert all(np.all(np.diff(c.at_ms) >= 0) for c in getattr(cut, name))


def test_rows_a_little_out_of_order_are_no_step() -> None:
    recorded = one_partition(curve((1_000, 900), (2_000, 1_900), (1_990, 1_950), (3_000, 2_900)))
    assert trusted(recorded).step is None
    assert np.all(np.diff(lag_series(recorded, 0, 4_000).at_ms) > 0)


def test_throughput() -> None:
    run = replace(QUIET, generator_leak=0.1, broker_leak=0.05, leak=0.5)
    found = throughput(curves_of(run), START_MS + 1_000, START_MS + 29_000)
    rates = (found.offered_per_s, found.handed_over_per_s, found.published_per_s)
    assert (*rates, found.processed_per_s) == pytest.approx((4_000, 3_600, 3_400, 2_000), rel=0.01)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    recorded = curves_of(replace(QUIET, window_s=3, stalled_partition=1, stalled_at_ms=-9_999))
    synthetic.write(recorded, tmp_path)
    read = curves.read(tmp_path)
    assert read.partitions == recorded.partitions
    for name in curves.NAMES:
        for there, here in zip(getattr(read, name), getattr(recorded, name), strict=True):
            assert np.array_equal(there.at_ms, here.at_ms)
            assert np.array_equal(there.count, here.count)
    assert not len(read.processed[1].at_ms)
    with (tmp_path / "curves.csv").open("a") as file:
        file.write(f"{read.due[0].at_ms[-1] + 1:.0f},due,0,1")  # a line that was cut
    assert len(curves.read(tmp_path).due[0].at_ms) == len(recorded.due[0].at_ms)


ROWS = "1,due,0,1\n1,handed_over,0,1\n1,published,0,1\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "recorded no curves"),
        ("", "recorded no curves"),
        ("at_ms,due\n", "does not start with"),
        (f"at_ms,curve,partition,count\n{ROWS}2,due,zero,1\n", "Row #5.* 'zero'"),
        (f"at_ms,curve,partition,count\n{ROWS}2,due,,1\n", "line 5"),
        (f"at_ms,curve,partition,count\n{ROWS}{10**12},due,0,1\n", "line 5"),
        (f"at_ms,curve,partition,count\n{ROWS}2,eaten,0,1\n", "eaten"),
        ("at_ms,curve,partition,count\n", "lacks any row"),
        (f"at_ms,curve,partition,count\n{ROWS}1,due,1,1\n", "lacks handed_over/1, published/1"),
    ],
)
def test_an_invalid_file_is_rejected(tmp_path: Path, text: str | None, expected: str) -> None:
    if text is not None:
        (tmp_path / "curves.csv").write_text(text)
    with pytest.raises((curves.CurvesError, UnreadableFile), match=expected):
        curves.read(tmp_path)


def test_the_recording_ends_with_its_shortest_curve() -> None:
    recorded = one_partition(curve((1, 1)))
    assert curves.recorded_until_ms(recorded) == 10_000
    shorter = replace(recorded, published=(curve((0, 0), (700, 600)),))
    assert curves.recorded_until_ms(shorter) == 700
