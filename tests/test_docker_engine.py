"""Where Docker can't run, the tests are told why."""

import os
from pathlib import Path

import pytest

from tests import docker_engine


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH, and a cache folder where no engine of ours runs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("RACETRACK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    return folder


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_without_docker(programs: Path) -> None:
    with pytest.raises(docker_engine.NoEngine, match="no `docker` on PATH"):
        docker_engine.up()


def test_without_an_engine_and_none_to_start(programs: Path) -> None:
    program(programs / "docker", "exit 1")
    with pytest.raises(docker_engine.NoEngine, match=r"no `dockerd`|only root"):
        docker_engine.up()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts an engine")
def test_an_engine_that_ends_at_once_tells_its_last_words(programs: Path) -> None:
    program(programs / "docker", "exit 1")
    program(programs / "dockerd", "echo 'no cgroups here' >&2; exit 1")
    with pytest.raises(docker_engine.NoEngine, match="no cgroups here"):
        docker_engine.up()


def test_nothing_to_end(programs: Path) -> None:
    assert not docker_engine.down()
