"""Tests of the comparison of the files in the harness's image with those of the checkout."""

from pathlib import Path

import pytest

from racetrack.images import IMAGES, checkout


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in IMAGES["harness"].files:
        if name != ".env":
            (tmp_path / name).mkdir()
            (tmp_path / name / "a.py").write_text("a = 1\n")
    (tmp_path / ".env").write_text("RUNTIME=auto\n")
    return tmp_path


def test_another_file_is_another_checkout(root: Path) -> None:
    before = checkout.digest(root)
    (root / "racetrack" / "b.sql").write_text("SELECT 1")
    assert checkout.digest(root) != before


def test_settings_and_compiled_files_do_not_count(root: Path) -> None:
    before = checkout.digest(root)
    (root / ".env").write_text("RUNTIME=native\n")
    (root / "racetrack" / "__pycache__").mkdir()
    (root / "racetrack" / "__pycache__" / "a.pyc").write_text("compiled")
    assert checkout.digest(root) == before


def test_an_outdated_image_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert checkout.main() == checkout.main("") == checkout.main(checkout.digest()) == 0
    assert checkout.main("another") == 3
    assert "`./race images`" in capsys.readouterr().err
