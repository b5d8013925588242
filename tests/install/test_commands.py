"""Tests that commands are retried where this may help, and failures reported with causes."""

from pathlib import Path

import pytest

from racetrack.errors import SetupError
from racetrack.install.recipe import Site
from tests.install.conftest import BACKOFF_S, said_by


def test_a_command_that_fails_once_is_tried_again(site: Site, tmp_path: Path) -> None:
    script = 'echo line >> tries; [ "$(wc -l < tries)" -gt 1 ] || { echo no route >&2; exit 7; }'
    site.run("bash", "-c", f"{script}; echo done", doing="fetching", cwd=tmp_path)
    assert said_by(site) == ["part: fetching failed (no route); again in 0.01 s"]
    assert "no route" in (tmp_path / "log").read_text()


def test_a_command_that_always_fails_is_reported_with_its_last_lines(
    site: Site, tmp_path: Path
) -> None:
    script = "echo line >> tries; for i in $(seq 20); do echo cause $i; done; exit 7"
    with pytest.raises(SetupError) as failure:
        site.run("bash", "-c", script, doing="fetching", cwd=tmp_path)
    assert "part: fetching failed: bash ended with exit code 7" in str(failure.value)
    assert "cause 20" in str(failure.value)
    assert "cause 12\n" not in str(failure.value)
    assert str(tmp_path / "log") in str(failure.value)
    assert (tmp_path / "tries").read_text().count("line") == len(BACKOFF_S) + 1
