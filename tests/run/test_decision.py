"""Tests that a run continues until its verdict is decided, and that the report agrees."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from racetrack.results.figures import VerdictKind
from racetrack.results.folder import read_run
from racetrack.results.run import TracedViewRecord, Window
from racetrack.run import experiment
from simulations import synthetic
from tests.analysis import view_files
from tests.report import folders
from tests.report.folders import RunSpec
from tests.run.fluid_session import FakeClock

START_MS = int(synthetic.START_MS)


def run(logs: Path, **spec: Any) -> Any:
    arguments = {"decide_within_s": 120.0, **spec.pop("arguments", {})}
    return read_run(
        folders.run(logs, RunSpec(window_s=10, recorded_after_s=121, arguments=arguments, **spec))
    )


def seconds_watched(record: Any) -> float:
    watched: float = (record.measured.watched_until_ms - record.measured.window.end_ms) / 1000
    return watched


def test_what_is_decided_is_not_watched_on(tmp_path: Path) -> None:
    record = run(tmp_path, delay_ms=20)
    assert record.results.verdict.kind is VerdictKind.KEPT_UP
    assert record.results.verdict.until_ms == record.measured.window.end_ms
    assert seconds_watched(record) == 0


def test_a_window_that_does_not_decide_is_watched_on_and_all_figures_with_it(
    tmp_path: Path,
) -> None:
    record = run(tmp_path / "on")
    alone = run(tmp_path / "alone", arguments={"decide_within_s": 0.0})
    assert alone.results.verdict.kind is VerdictKind.UNDECIDED
    assert alone.measured.watched_until_ms is None
    verdict = record.results.verdict
    assert verdict.kind is VerdictKind.KEPT_UP
    assert 5 <= seconds_watched(record) <= 45
    assert record.arguments.decide_within_s == 120
    assert verdict.until_ms == record.measured.watched_until_ms
    assert verdict.window_s == (verdict.until_ms - verdict.from_ms) / 1000
    for result, seconds in ((record.results, verdict.window_s), (alone.results, 10.0)):
        cost = result.processes["steadyd"]
        assert cost.cpu_s == pytest.approx(cost.cpu_mean_pct * seconds / 100, rel=0.01)
        assert result.dt_ms.updates == pytest.approx(seconds, abs=1)
    assert record.results.top == alone.results.top


@pytest.mark.slow
def test_a_leak_is_watched_until_it_can_be_no_wave(tmp_path: Path) -> None:
    record = run(tmp_path, leak=0.05)
    assert record.results.verdict.kind is VerdictKind.FELL_BEHIND
    assert 70 <= seconds_watched(record) <= 110


def test_with_a_fault_the_window_alone_is_judged(tmp_path: Path) -> None:
    record = run(tmp_path, arguments={"faults": ("kill:debezium@10s+5s",)})
    assert record.measured.watched_until_ms is None


def watched_until(folder: Path, **given: Any) -> int:
    """Return when a run is decided whose rate was set 5 s before its window of 10 s."""
    window = Window(start_ms=START_MS, end_ms=START_MS + 10_000)
    return experiment.watch_until_decided(
        [folder], START_MS - 5_000, window, requested_per_s=4_000, within_s=120, **given
    )


def test_it_waits_for_the_rows_of_each_look(tmp_path: Path) -> None:
    """Use a fake clock that begins at the window's end, because the recorded run lies in the
    past."""
    race = synthetic.SyntheticRun(window_s=10, recorded_after_ms=121_000)
    synthetic.write(synthetic.curves(race, np.random.default_rng(1)), tmp_path)
    clock = FakeClock(START_MS + 10_000)

    def watch(seconds: float, _what: str) -> None:
        clock.now_s += seconds

    until_ms = watched_until(tmp_path, watch=watch, now_ms=clock.now_ms)
    assert START_MS + 10_000 < until_ms == clock.now_ms() - experiment.ROWS_WITHIN_MS


@pytest.mark.slow
def test_a_view_that_is_not_decided_is_watched_on(tmp_path: Path) -> None:
    """The verdict on the engine's count is decided at once. That on the view needs a longer look,
    or is that it fell behind."""
    folder = folders.run(
        tmp_path / "count", RunSpec(window_s=10, recorded_after_s=121, delay_ms=20)
    )
    marked = TracedViewRecord(name="sold.views", source="pageviews", parity=0, is_time=False)
    folders.edit(folder, traced_views=[marked.model_dump()])

    def looked_until(growing: float, delay_ms: float) -> int:
        view_files.write(folder, [marked], delay_ms, growing, START_MS - 5_000, 4)
        return watched_until(folder, watch=lambda *_: None) - START_MS

    assert looked_until(0, 20) == 10_000
    assert looked_until(0.05, 20) > 10_000 + 30_000
