"""Tests mirror the rooms: whoever looks for the tests of a module knows where they are."""

from pathlib import Path

import pytest

import engines
from racetrack import cli
from racetrack.settings import REPO

TESTS = REPO / "tests"
HARNESS = REPO / "racetrack"
# Folders of tests/ that are no room's: the real stack.
NO_ROOM = {"e2e"}


def rooms(folder: Path) -> set[str]:
    """The folders in this one that hold Python, by their paths from it."""
    return {str(file.parent.relative_to(folder)) for file in folder.rglob("*.py")} - {"."}


def test_every_folder_of_tests_is_a_room() -> None:
    strangers = {
        name
        for name in rooms(TESTS) - NO_ROOM
        if not (HARNESS / name).is_dir() and not (REPO / name).is_dir()
    }
    assert strangers == set()


def test_every_room_has_a_folder_of_tests() -> None:
    of_harness = {name for name in rooms(HARNESS) if "/" not in name.removeprefix("stack/")}
    assert (of_harness | {"loadgen"}) - rooms(TESTS) == set()


@pytest.mark.parametrize("name", engines.engine_names())
def test_every_engine_has_its_tests(name: str) -> None:
    assert list((REPO / "engines" / name / "tests").glob("test_*.py"))


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in (HARNESS / "run").glob("[!_]*.py")), ids=str
)
def test_every_module_of_run_has_its_tests(name: str) -> None:
    assert (TESTS / "run" / f"test_{name}.py").is_file()


@pytest.mark.parametrize("name", ["experiment", *sorted(cli.race.commands)])
def test_every_command_has_its_tests(name: str) -> None:
    assert (TESTS / "cli" / f"test_{name}.py").is_file()
