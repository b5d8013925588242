"""Tests of Deephaven as a native service: readiness, the addresses of its peers, its version, and
the classes into which it compiles formulas, which are kept for later starts."""

import zipfile
from contextlib import nullcontext
from pathlib import Path

import pytest

from racetrack.engines.dh import server
from racetrack.engines.dh.recipe import LOCK
from racetrack.engines.dh.settings import DeephavenSettings
from racetrack.install import pypi
from racetrack.install.versions import read_versions
from racetrack.stack.service import Context, NotReady, find_service
from tests.stack.conftest import Answer, answer, context, http, settings
from tests.stack.services.test_peers import inside

__all__ = ["answer", "context", "inside", "settings"]  # fixtures


@pytest.mark.parametrize("is_ready", [True, False])
def test_it_is_ready_when_it_serves_its_ide(
    context: Context, answer: Answer, is_ready: bool
) -> None:
    port = DeephavenSettings.of(context.settings).deephaven_port
    answer(port, http(b"<html>") if is_ready else http(b"", "404 Not Found"))
    with nullcontext() if is_ready else pytest.raises(NotReady, match="HTTP 404"):
        find_service("deephaven").check(context)


def test_it_gets_its_peers_and_keeps_compiled_formulas_in_its_part(inside: Context) -> None:
    env = find_service("deephaven").launch(inside).env
    port = inside.settings.schema_registry_port
    assert env["SCHEMA_REGISTRY_URL"] == f"http://redpanda:{port}"
    assert env["KAFKA_BOOTSTRAP"] == f"redpanda:{inside.settings.kafka_port}"
    assert env["DEEPHAVEN_FORMULAS"] == str(inside.parts["deephaven"] / "made" / "formulas.zip")


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


def test_client_and_server_are_the_version_of_env() -> None:
    version = read_versions(environ={})["DEEPHAVEN_VERSION"]
    assert pypi.pinned(LOCK, "deephaven-server") == version
    assert pypi.pinned(pypi.HARNESS_LOCK, "pydeephaven") == version
    assert pypi.pinned(pypi.HARNESS_LOCK, "pydeephaven-ticking") == version
