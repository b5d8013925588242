"""What stands in the way of containers is told in one line, before anything starts."""

import hashlib
import json
import platform
import socketserver
import subprocess
import sys
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.errors import DockerException

from racetrack.config import REPO
from racetrack.stack.compose import engine
from tests.stack.compose.fake_docker import COMPOSE, Handler, Program, find_docker

__all__ = ["find_docker"]  # a fixture


def test_one_that_will_do(find_docker: Any) -> None:
    found = find_docker()
    assert (found.version, found.compose_version) == ("99.1.2", "2.39.1-0debian1")
    assert (found.unmeasurable, found.memory_bytes) == (None, 24 << 30)


def test_no_docker_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(engine.NoDocker, match=r"There is no `docker` on PATH. Install Docker, or"):
        engine.find(airgap=False)


def test_one_that_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Program
) -> None:
    program("#!/bin/sh\n")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    with pytest.raises(engine.NoDocker, match=r"No Docker engine answers at unix://.*\. Start it"):
        engine.find(airgap=False)


def test_one_that_is_not_for_this_user(program: Program) -> None:
    """Root may everything, so the answer is that of the client library."""
    program("#!/bin/sh\n")

    def refuse(**_: object) -> docker.DockerClient:
        raise DockerException(
            "Error while fetching server API version: PermissionError(13, 'Permission denied')"
        )

    with pytest.raises(
        engine.NoDocker, match=r"may not talk to the Docker engine .*group `docker`"
    ):
        engine.find(airgap=False, connect=refuse)


def test_one_that_is_too_old(find_docker: Any) -> None:
    assert "Docker 99.1.2 is too old: its API is 1.43, and 1.44 is needed" in find_docker(
        api="1.43"
    )
    assert "1.41 is needed" in find_docker(api="1.40", airgap=True)
    assert find_docker(api="1.41", airgap=True).version == "99.1.2"


# What these engines say of themselves, as their users have reported it.
VIRTUAL = {
    "Docker Desktop": {
        "Name": "docker-desktop",
        "OperatingSystem": "Docker Desktop",
        "KernelVersion": "6.10.14-linuxkit",
    },
    "OrbStack": {
        "Name": "orbstack",
        "OperatingSystem": "OrbStack",
        "KernelVersion": "6.17.8-orbstack-00308-g8f9c941121b1",
    },
    "Colima": {
        "Name": "colima",
        "OperatingSystem": "Ubuntu 24.04.2 LTS",
        "KernelVersion": "6.8.0-64-generic",
    },
    "Lima": {
        "Name": "lima-docker",
        "OperatingSystem": "Ubuntu 25.04",
        "KernelVersion": "6.14.0-23-generic",
    },
    "Rancher Desktop": {
        "Name": "lima-rancher-desktop",
        "OperatingSystem": "Alpine Linux v3.21",
        "KernelVersion": "6.6.71-0-virt",
    },
    "built-by-hand, Debian GNU/Linux 13": {
        "Name": "built-by-hand",
        "OperatingSystem": "Debian GNU/Linux 13",
        "KernelVersion": "6.12.43+deb13-arm64",
    },
}


@pytest.mark.parametrize("title", VIRTUAL)
def test_one_in_a_virtual_machine_will_do_to_play(find_docker: Any, title: str) -> None:
    unmeasurable = find_docker(**VIRTUAL[title]).unmeasurable
    kernel = VIRTUAL[title]["KernelVersion"]
    assert f"in a virtual machine ({title}, kernel {kernel}; " in unmeasurable.why
    assert platform.release() in unmeasurable.why
    assert unmeasurable.remedy.startswith("Run Racetrack ")


@pytest.mark.parametrize("system", ["Docker Desktop", "Rancher Desktop WSL Distribution"])
def test_one_beside_this_linux_on_windows_has_this_kernel(find_docker: Any, system: str) -> None:
    unmeasurable = find_docker(OperatingSystem=system).unmeasurable
    assert "in another Linux on this kernel" in unmeasurable.why
    assert "Install a Docker engine in this Linux" in unmeasurable.remedy


@pytest.mark.parametrize("title", ["Colima", "Lima"])
def test_one_in_a_virtual_machine_may_have_this_kernel(find_docker: Any, title: str) -> None:
    says = {**VIRTUAL[title], "KernelVersion": platform.release()}
    unmeasurable = find_docker(**says).unmeasurable
    assert f"in a virtual machine ({title}, whose kernel {platform.release()} is" in (
        unmeasurable.why
    )
    assert unmeasurable.remedy.startswith("Run Racetrack inside it")
    # Which is then where it is.
    assert find_docker(host_name=says["Name"], **says).unmeasurable is None


def test_one_outside_of_the_container_that_racetrack_runs_in(find_docker: Any) -> None:
    assert "Racetrack runs in a container itself" in find_docker(is_visible=False)


def test_whether_who_listens_is_seen(tmp_path: Path) -> None:
    """Asked from here, and from a process that has process ids of its own."""
    with socketserver.UnixStreamServer(str(tmp_path / "socket"), Handler):
        assert engine.listener_is_visible(str(tmp_path / "socket"))
        ask = (
            "from racetrack.stack.compose import engine;"
            f"print(engine.listener_is_visible({str(tmp_path / 'socket')!r}))"
        )
        apart = subprocess.run(
            ["unshare", "--user", "--map-root-user", "--pid", "--fork", sys.executable, "-c", ask],
            cwd=REPO,
            capture_output=True,
            text=True,
            check=False,
        )
    if "unshare" in apart.stderr:
        pytest.skip(f"no namespaces for this user: {apart.stderr}")
    assert apart.stdout == "False\n", apart.stderr


@pytest.mark.parametrize("version", [{"ApiVersion": "1.41"}, {"ApiVersion": "1.44"}])
@pytest.mark.parametrize("airgap", [False, True])
def test_podman_is_called_by_its_name(
    find_docker: Any, version: dict[str, str], airgap: bool
) -> None:
    """Its API was 1.41 for years, and is 1.44 since 2026:
    https://github.com/containers/podman/pull/27915."""
    podman = {**version, "Version": "5.8.0", "Components": [{"Name": "Podman Engine"}]}
    assert "Podman 5.8.0 answers in Docker's place" in find_docker(version=podman, airgap=airgap)


@pytest.fixture
def compose(program: Program) -> None:
    program(COMPOSE % "2.39.1")


def find_far_away() -> engine.Docker:
    """Whoever asks an engine that is far away fails."""

    def refuse(**_: object) -> docker.DockerClient:
        raise AssertionError("it was asked")

    return engine.find(airgap=False, connect=refuse)


@pytest.mark.parametrize("host", ["tcp://192.0.2.1:2376", "ssh://me@192.0.2.1"])
def test_one_on_another_machine(compose: None, monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    with pytest.raises(engine.NoDocker, match=rf"runs elsewhere \({host}\)"):
        find_far_away()


@pytest.mark.parametrize(
    ("current", "variables"), [("far", {}), ("default", {"DOCKER_CONTEXT": "far"})]
)
def test_one_on_another_machine_by_its_context(
    compose: None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    current: str,
    variables: dict[str, str],
) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    meta = tmp_path / "contexts/meta" / hashlib.sha256(b"far").hexdigest()
    meta.mkdir(parents=True)
    endpoint = {"docker": {"Host": "ssh://me@192.0.2.1", "SkipTLSVerify": False}}
    (meta / "meta.json").write_text(
        json.dumps({"Name": "far", "Metadata": {}, "Endpoints": endpoint})
    )
    (tmp_path / "config.json").write_text(json.dumps({"currentContext": current}))
    monkeypatch.delenv("DOCKER_CONTEXT", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(engine.NoDocker, match=r"runs elsewhere \(ssh://me@192.0.2.1"):
        find_far_away()


def test_no_compose_and_one_that_is_too_old(find_docker: Any) -> None:
    assert "There is no `docker compose` (the plugin, version 2). Install it" in find_docker(
        compose=None
    )
    for old in ("v2.23.3", "2.24.5"):
        assert f"The compose plugin {old} is too old, 2.24.6 is needed" in find_docker(
            compose=COMPOSE % old
        )
    assert (
        find_docker(compose=COMPOSE % "2.24.6+ds1-0ubuntu1").compose_version
        == "2.24.6+ds1-0ubuntu1"
    )
    assert find_docker(compose=COMPOSE % "5.1.1").compose_version == "5.1.1"
