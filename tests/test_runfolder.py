"""Tests of run folders: named by time, engine and rate; `run.json` is complete at all times."""

import json
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from racetrack.results.folder import RunFolder
from tests.run_json import read_run


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "logs", "steady", "5000")


def test_its_name_is_the_published_one_and_its_own(folder: RunFolder) -> None:
    assert re.fullmatch(r"\d{4}(\.\d\d){5}_UTC_steady_5000", folder.tag)
    assert folder.stack.is_dir()
    # Another that begins in the same second.
    assert RunFolder.create(folder.path.parent, "steady", "5000").path != folder.path


def test_facts_are_merged_and_on_disk_at_once(folder: RunFolder) -> None:
    with folder.recording() as run:
        run.versions |= {"a": "1"}
        run.outcome = "unfinished"
    with folder.recording() as run:
        run.versions |= {"b": "2"}
        run.outcome = "ok"
    rows = read_run(folder.path)
    assert rows["versions"] == {"a": "1", "b": "2"}
    assert (rows["outcome"], rows["tag"], rows["schema_version"]) == ("ok", folder.tag, 6)


def test_a_step_that_is_going_on_has_no_end_yet(folder: RunFolder) -> None:
    with folder.step("wait"):
        (step,) = read_run(folder.path)["steps"]
        assert step["started_at"].endswith("Z")
        assert step["ended_at"] is None
    (step,) = read_run(folder.path)["steps"]
    assert step["ended_at"] >= step["started_at"]


def test_run_json_is_never_seen_half_written(folder: RunFolder) -> None:
    before = (folder.path / "run.json").read_text()
    with pytest.raises(ValidationError), folder.recording() as run:
        run.outcome = object()  # type: ignore[assignment]
    assert (folder.path / "run.json").read_text() == before
    assert json.loads(before)["tag"] == folder.tag


def test_lines_are_on_disk_as_soon_as_they_end(folder: RunFolder) -> None:
    with folder.open_for_lines("arrivals.csv") as csv:
        csv.write("at_ms,due\n")
        assert (folder.path / "arrivals.csv").read_text() == "at_ms,due\n"
