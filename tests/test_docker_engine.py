"""Where Docker can't run, the tests are told why."""

import os
from pathlib import Path

import psutil
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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts an engine")
def test_one_that_was_started_is_ended_and_no_other(programs: Path) -> None:
    """Two programs that behave like Docker's: the engine makes a socket, the other looks for it."""
    here = docker_engine.home()
    path = "PATH=/usr/bin:/bin"
    program(programs / "docker", f"{path}; test -e {here}/docker.sock")
    leaves = f"trap 'kill $!; rm {here}/docker.sock; exit' TERM"
    stays = f"echo $$ >{here}/dockerd.pid; touch {here}/docker.sock; sleep 600 & wait"
    program(programs / "dockerd", f"{path}; {leaves}; {stays}")
    with docker_engine.running() as engine:
        assert engine.is_ours
        assert os.environ["DOCKER_HOST"] == f"unix://{here}/docker.sock"
        pid = int((here / "dockerd.pid").read_text())
        with docker_engine.running():
            pass
        assert psutil.pid_exists(pid), "who came second ended what the first had started"
    assert "DOCKER_HOST" not in os.environ
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_nothing_to_end(programs: Path) -> None:
    assert not docker_engine.down()
