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


def test_run_json_is_never_seen_half_written(folder: RunFolder) -> None:
    before = (folder.path / "run.json").read_text()
    with pytest.raises(ValidationError), folder.recording() as run:
        run.outcome = object()  # type: ignore[assignment]
    assert (folder.path / "run.json").read_text() == before
    assert json.loads(before)["tag"] == folder.tag
