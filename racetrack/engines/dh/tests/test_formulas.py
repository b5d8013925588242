"""Tests that the classes into which Deephaven compiles formulas are kept for later starts."""

import zipfile
from pathlib import Path

import pytest

from racetrack.engines.dh import server

CLASS = "io/deephaven/temp/c_{}v61_0/Formula.class"


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """Return the folder of a server's script session."""
    folder = tmp_path / "data/cache/script-session-classes/of-a-session"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def formulas(tmp_path: Path) -> Path:
    return tmp_path / "made/formulas.zip"


def compiled(session: Path, name: str) -> str:
    """Write a class file as Deephaven does; return its name."""
    file = session / CLASS.format(name)
    file.parent.mkdir(parents=True)
    file.write_bytes(name.encode())
    return CLASS.format(name)


def test_what_was_compiled_is_kept(session: Path, formulas: Path) -> None:
    name = compiled(session, "a")
    compiled(session / "temporaryCompilationDirectory1", "unfinished")
    server.keep_formulas(formulas, session)
    assert server.kept_formulas(formulas) == {name}
    assert zipfile.ZipFile(formulas).read(name) == b"a"
    assert list(formulas.parent.iterdir()) == [formulas]


@pytest.mark.parametrize("damage", [b"", b"no zip file"])
def test_a_damaged_file_is_replaced(session: Path, formulas: Path, damage: bytes) -> None:
    formulas.parent.mkdir()
    formulas.write_bytes(damage)
    assert server.kept_formulas(formulas) == set()
    name = compiled(session, "a")
    server.keep_formulas(formulas, session)
    assert server.kept_formulas(formulas) == {name}


def test_the_file_does_not_grow_for_ever(session: Path, formulas: Path) -> None:
    compiled(session, "a")
    compiled(session, "b")
    server.keep_formulas(formulas, session, at_most=1)
    assert not formulas.exists()
