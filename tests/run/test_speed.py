"""How fast the machine was at its calibration is kept for it, and for no other."""

from pathlib import Path

import pytest

from racetrack.run import speed


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RACETRACK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_it_is_found_again() -> None:
    assert speed.calibrated() is None
    speed.keep(384.2)
    assert speed.calibrated() == 384.2


def test_that_of_another_machine_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    speed.keep(384.2)
    monkeypatch.setattr(speed, "_here", lambda: "another one")
    assert speed.calibrated() is None


def test_a_file_that_can_not_be_read_is_none(cache: Path) -> None:
    speed.keep(384.2)
    (cache / speed.FILE).write_text("{")
    assert speed.calibrated() is None
