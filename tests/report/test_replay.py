"""Test that one report overlays a session and its replay."""

from pathlib import Path

import numpy as np
import pytest

from racetrack.analysis import table
from racetrack.report.charts import laid_over, replayed_session, run_charts
from racetrack.report.runs import read_runs
from tests.report.folders import RunSpec, session

pytestmark = pytest.mark.slow

SESSION = "2026.03.22.05.00.00_UTC_steady_live"


@pytest.mark.parametrize("engine", ["steady", "swift"])
def test_a_session_and_its_replay_are_laid_over_each_other(tmp_path: Path, engine: str) -> None:
    session(tmp_path, RunSpec(), SESSION)
    replay_spec = RunSpec(engine, delay_ms=900.0)
    session(tmp_path, replay_spec, f"2026.03.22.06.00.00_UTC_{engine}_live", SESSION)
    both = read_runs(table.read([tmp_path]))
    first, replay = both
    repeated = replayed_session(replay, both)
    assert repeated and replayed_session(first, both) is None
    lag, cpu = laid_over(repeated, replay)
    own = run_charts(replay)[0]
    assert (lag.title, cpu.title) == ("Lag, session and replay", "CPU, session and replay")
    assert "Lag" in [chart.title for chart in own]
    for chart in (lag, cpu):
        assert [line.name for line in chart.lines] == ["session: steady", f"replay: {engine}"]
        assert all(len(line.x) > 3 and np.isfinite(line.y).all() for line in chart.lines)
        assert [(mark.name, mark.begin) for mark in chart.marks] == [("rate 5000", 2.0)]
