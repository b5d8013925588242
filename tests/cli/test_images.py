"""`./race images`: images are built, and what can't be built is said."""

from collections.abc import Callable

import pytest
from click.testing import CliRunner

from racetrack import cli
from racetrack.errors import SetupError
from racetrack.images import build


def test_what_is_built_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "build", lambda _, say: say("made it"))
    result = CliRunner().invoke(cli.race, ["images"])
    assert (result.exit_code, result.output) == (0, "made it\n")


def test_what_is_missing_for_it_ends_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_settings: object, _say: Callable[[str], None]) -> None:
        raise SetupError("debootstrap is missing")

    monkeypatch.setattr(build, "build", missing)
    result = CliRunner().invoke(cli.race, ["images"])
    assert result.exit_code == 3
    assert "Error: debootstrap is missing\n" in result.output
