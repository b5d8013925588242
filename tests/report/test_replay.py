"""Tests that one report overlays a session and its replay."""

from pathlib import Path

import numpy as np
import pytest

from racetrack.analysis import table
from racetrack.report.chart_data import Chart
from racetrack.report.charts import laid_over, replayed_session, run_charts
from racetrack.report.runs import read_runs
from tests.report.folders import RunSpec, session

pytestmark = pytest.mark.slow

SESSION = "2026.03.22.05.00.00_UTC_steady_live"


def charts_of_a_replay(logs: Path, engine: str, replay_of: str) -> list[Chart]:
    """Write a session of the engine "steady", and one that replays a session; return the charts of
    the replay."""
    session(logs, RunSpec(), SESSION)
    replay_spec = RunSpec(engine, delay_ms=900.0)
    session(logs, replay_spec, f"2026.03.22.06.00.00_UTC_{engine}_live", replay_of)
    both = read_runs(table.read([logs]))
    first, replay = both
    repeated = replayed_session(replay, both)
    assert replayed_session(first, both) is None
    return [*(laid_over(repeated, replay) if repeated else ()), *run_charts(replay)[0]]


@pytest.mark.parametrize("engine", ["steady", "swift"])
def test_a_session_and_its_replay_are_laid_over_each_other(tmp_path: Path, engine: str) -> None:
    lag, cpu, *own = charts_of_a_replay(tmp_path, engine, SESSION)
    assert (lag.title, cpu.title) == ("Lag, session and replay", "CPU, session and replay")
    assert "Lag" in [chart.title for chart in own]
    for chart in (lag, cpu):
        assert [line.name for line in chart.lines] == ["session: steady", f"replay: {engine}"]
        assert all(len(line.x) > 3 and np.isfinite(line.y).all() for line in chart.lines)
        assert [(mark.name, mark.begin) for mark in chart.marks] == [("rate 5000", 2.0)]


def test_a_replay_of_a_session_that_is_not_in_the_report_stands_alone(tmp_path: Path) -> None:
    charts = charts_of_a_replay(tmp_path, "steady", "another")
    assert not [chart for chart in charts if "replay" in chart.title]
