"""`./race report`: where its files go, and folders that are none."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from racetrack import cli
from racetrack.report import write as files
from tests.cli.conftest import Ended


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Where files would have gone."""
    where: list[Path] = []
    monkeypatch.setattr(files, "write", lambda folder, *_: where.append(folder))
    return where


def test_of_one_folder_it_goes_into_that_folder(ended: Ended, written: list[Path]) -> None:
    folder = ended("ok")
    result = CliRunner().invoke(cli.race, ["report", str(folder)])
    assert result.exit_code == 0, result.output
    assert written == [folder / "report"]
    assert result.output.endswith(f"{folder / 'report' / 'report.html'}\n")


def test_of_several_it_goes_beside_the_first(ended: Ended, written: list[Path]) -> None:
    folder = ended("ok")
    result = CliRunner().invoke(cli.race, ["report", str(folder), str(folder)])
    assert result.exit_code == 0, result.output
    (where,) = written
    assert where.parent == folder.parent
    assert where.name.endswith("_UTC_report")


def test_it_goes_where_it_is_told(ended: Ended, written: list[Path], tmp_path: Path) -> None:
    typed = ["report", str(ended("ok")), "--out", str(tmp_path / "there")]
    assert CliRunner().invoke(cli.race, typed).exit_code == 0
    assert written == [tmp_path / "there"]


def test_a_folder_that_is_not_there_is_refused(written: list[Path], tmp_path: Path) -> None:
    result = CliRunner().invoke(cli.race, ["report", str(tmp_path / "nowhere")])
    assert result.exit_code == 2
    assert written == []


def test_a_place_that_can_not_be_written_is_refused_before_the_work(
    ended: Ended, written: list[Path], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    folder = ended("ok")
    for out in (tmp_path / "file" / "below", Path("/proc/report")):
        result = CliRunner().invoke(cli.race, ["report", str(folder), "--out", str(out)])
        assert result.exit_code == 2
        assert f"The report can't be written to {out}" in result.output
        assert "kept up" not in result.output
    assert written == []
