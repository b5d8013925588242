"""Tests that the view reader runs in a process of its own, and that the run ends with the reason if
that process ends."""

import time
from pathlib import Path

import pytest

from racetrack.config import load
from racetrack.errors import RacetrackError
from racetrack.probes.reader import COLUMNS
from racetrack.probes.views import READS_CSV, ReadsProbe
from racetrack.results.folder import RunFolder
from tests.run.fakes import FakeEngine, FakeStack

WITHIN_S = 20.0


@pytest.fixture
def probe(tmp_path: Path) -> ReadsProbe:
    engine, stack = FakeEngine(), FakeStack(load({"READS_PER_SECOND": "2"}))
    return ReadsProbe(engine, stack.as_stack(), RunFolder.create(tmp_path, engine.name, "100"), 2.0)


def test_a_reader_that_ends_is_reported_with_its_log_tail(probe: ReadsProbe) -> None:
    probe.start()
    give_up = time.monotonic() + WITHIN_S
    with pytest.raises(RacetrackError, match=r"(?s)view reader can't be read any more.*fake"):
        while time.monotonic() < give_up:
            probe.check()
            probe.stopping.wait(0.05)
    assert probe.pids == []
    probe.stop()


def test_answers_are_timed_once_and_errors_are_none(probe: ReadsProbe, tmp_path: Path) -> None:
    (file,) = tmp_path.rglob(READS_CSV)
    assert probe.new_answer_times() == []
    rows = [",".join(COLUMNS), "1000,1001,1012,best,10,,", "2000,2001,2002,best,,,it is gone"]
    file.write_text("\n".join([*rows, "3000,3001,30"]))
    assert probe.new_answer_times() == [12.0]
    with file.open("a") as more:
        more.write("07,best,10,,\n")
    assert probe.new_answer_times() == [7.0]
    assert probe.new_answer_times() == []
