"""Tests that one report overlays a session and its replay."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from racetrack.analysis import table
from racetrack.report.charts import laid_over, replayed_session, run_charts
from racetrack.report.runs import read_runs
from tests.report import folders
from tests.report.folders import RunSpec
from tests.run_json import read_run

pytestmark = pytest.mark.slow

SESSION = "2026.03.22.05.00.00_UTC_steady_live"
Make = Callable[..., list[str]]


@pytest.fixture
def titles(tmp_path: Path) -> Make:
    """Return a function that reports on a session and a replay, and returns the titles of the
    replay's charts. Its arguments are the replay's engine, and the session that it repeats."""

    def make(engine: str, replay_of: str) -> list[str]:
        made = (
            (SESSION, RunSpec(), None),
            (f"2026.03.22.06.00.00_UTC_{engine}_live", RunSpec(engine, delay_ms=900.0), replay_of),
        )
        for tag, spec, of in made:
            path = folders.run(tmp_path, spec, tag)
            from_ms = read_run(path)["measured"]["window"]["start_ms"]
            folders.edit(path, live={"from_ms": from_ms, "replay_of": of})
            header = "at_ms,segment,action,arguments,by"
            row = f'{from_ms + 2000},1,rate,"{{""per_s"": 5000}}",user'
            (path / "actions.csv").write_text(f"{header}\n{row}\n")
        session, replay = read_runs(table.read([tmp_path]))
        repeated = replayed_session(replay, [session, replay])
        assert replayed_session(session, [session, replay]) is None
        found = [*(laid_over(repeated, replay) if repeated else ()), *run_charts(replay)[0]]
        for chart in found:
            if "replay" in chart.title:
                assert [line.name for line in chart.lines] == [
                    "session: steady",
                    f"replay: {engine}",
                ]
                assert all(len(line.x) > 3 and np.isfinite(line.y).all() for line in chart.lines)
                assert [(mark.name, mark.begin) for mark in chart.marks] == [("rate 5000", 2.0)]
        return [chart.title for chart in found]

    return make


@pytest.mark.parametrize("engine", ["steady", "swift"])
def test_a_session_and_its_replay_are_laid_over_each_other(titles: Make, engine: str) -> None:
    found = titles(engine, SESSION)
    assert found[:2] == ["Lag, session and replay", "CPU, session and replay"]
    assert "Lag" in found


def test_a_replay_of_a_session_that_is_not_in_the_report_stands_alone(titles: Make) -> None:
    assert not [title for title in titles("steady", "another") if "replay" in title]
