"""Tests that one line reports, before the start, why containers can't be used or measured."""

import hashlib
import json
import platform
import socketserver
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest
from docker.errors import DockerException

from racetrack.config import REPO
from racetrack.stack.compose import engine
from tests.stack.compose.fake_docker import COMPOSE, Handler, Program, find_docker

__all__ = ["find_docker"]  # a fixture

COLIMA = {
    "Name": "colima",
    "OperatingSystem": "Ubuntu 24.04.2 LTS",
    "KernelVersion": "6.8.0-64-generic",
}


def refuse(**_: object) -> NoReturn:
    """Take the place of Docker's client if the user may not use the socket."""
    raise DockerException("Error while fetching: PermissionError(13, 'Permission denied')")


def fail(**_: object) -> NoReturn:
    """Take the place of Docker's client where it must not be called."""
    raise AssertionError("it was used")


def test_an_engine_on_this_kernel_can_be_used_and_measured(find_docker: Any) -> None:
    found = find_docker()
    assert (found.version, found.compose_version) == ("99.1.2", "2.39.1-0debian1")
    assert (found.unmeasurable, found.memory_bytes) == (None, 24 << 30)
    assert find_docker(api="1.41", airgap=True).version == "99.1.2"
    for compose in ("2.24.6+ds1-0ubuntu1", "5.1.1"):
        assert find_docker(compose=COMPOSE % compose).compose_version == compose


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"api": "1.43"}, "Docker 99.1.2 is too old: its API is 1.43, and 1.44 is needed"),
        ({"api": "1.40", "airgap": True}, "1.41 is needed"),
        ({"compose": None}, "There is no `docker compose` (the plugin, version 2). Install it"),
        ({"compose": COMPOSE % "v2.23.3"}, "plugin v2.23.3 is too old, 2.24.6 is needed"),
        ({"compose": COMPOSE % "2.24.5"}, "plugin 2.24.5 is too old, 2.24.6 is needed"),
        ({"is_visible": False}, "Racetrack runs in a container itself"),
    ],
)
def test_an_engine_that_can_not_be_used_is_refused_with_the_reason(
    find_docker: Any, how: dict[str, Any], says: str
) -> None:
    assert says in find_docker(**how)


def test_a_missing_program_engine_or_permission_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Program
) -> None:
    with monkeypatch.context() as environment:
        environment.setenv("PATH", str(tmp_path))
        with pytest.raises(engine.NoDocker, match=r"no `docker` on PATH. Install Docker, or"):
            engine.find(airgap=False)
    program("#!/bin/sh\n")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    with pytest.raises(engine.NoDocker, match=r"No Docker engine answers at unix://.*\. Start it"):
        engine.find(airgap=False)
    monkeypatch.delenv("DOCKER_HOST")
    with pytest.raises(engine.NoDocker, match=r"may not use the Docker .*group `docker`"):
        engine.find(airgap=False, connect=refuse)


@pytest.mark.parametrize(
    ("title", "info"),
    [
        (
            "Docker Desktop",
            {
                "Name": "docker-desktop",
                "OperatingSystem": "Docker Desktop",
                "KernelVersion": "6.10.14-linuxkit",
            },
        ),
        (
            "OrbStack",
            {
                "Name": "orbstack",
                "OperatingSystem": "OrbStack",
                "KernelVersion": "6.17.8-orbstack-00308-g8f9c941121b1",
            },
        ),
        ("Colima", COLIMA),
        ("Lima", {**COLIMA, "Name": "lima-docker"}),
        ("Rancher Desktop", {**COLIMA, "Name": "lima-rancher-desktop"}),
        (
            "built-by-hand, Debian GNU/Linux 13",
            {
                "Name": "built-by-hand",
                "OperatingSystem": "Debian GNU/Linux 13",
                "KernelVersion": "6.12.43+deb13-arm64",
            },
        ),
    ],
)
def test_an_engine_in_a_virtual_machine_can_be_used_but_not_measured(
    find_docker: Any, title: str, info: dict[str, str]
) -> None:
    unmeasurable = find_docker(**info).unmeasurable
    kernel = info["KernelVersion"]
    assert f"in a virtual machine ({title}, kernel {kernel}; " in unmeasurable.why
    assert platform.release() in unmeasurable.why
    assert unmeasurable.remedy.startswith("Run Racetrack ")


def test_a_virtual_machine_may_have_this_kernel(find_docker: Any) -> None:
    info = {**COLIMA, "KernelVersion": platform.release()}
    unmeasurable = find_docker(**info).unmeasurable
    assert f"in a virtual machine (Colima, whose kernel {platform.release()} is" in unmeasurable.why
    assert unmeasurable.remedy.startswith("Run Racetrack inside it")
    # Inside the virtual machine, containers can be measured.
    assert find_docker(host_name=info["Name"], **info).unmeasurable is None


@pytest.mark.parametrize("system", ["Docker Desktop", "Rancher Desktop WSL Distribution"])
def test_an_engine_beside_this_linux_on_windows_has_this_kernel(
    find_docker: Any, system: str
) -> None:
    unmeasurable = find_docker(OperatingSystem=system).unmeasurable
    assert "in another Linux on this kernel" in unmeasurable.why
    assert "Install a Docker engine in this Linux" in unmeasurable.remedy


@pytest.mark.slow
def test_a_listener_in_another_process_namespace_is_not_visible(tmp_path: Path) -> None:
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
def test_podman_is_refused_by_its_name(
    find_docker: Any, version: dict[str, str], airgap: bool
) -> None:
    """The API version does not tell Podman from Docker: it was 1.41 for years, and has been 1.44
    since 2026 (https://github.com/containers/podman/pull/27915)."""
    podman = {**version, "Version": "5.8.0", "Components": [{"Name": "Podman Engine"}]}
    assert "Podman 5.8.0 answers in Docker's place" in find_docker(version=podman, airgap=airgap)


@pytest.mark.parametrize("by", ["DOCKER_HOST", "current context", "DOCKER_CONTEXT"])
def test_an_engine_on_another_machine_is_refused_without_asking_it(
    program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, by: str
) -> None:
    host = "ssh://me@192.0.2.1"
    program(COMPOSE % "2.39.1")
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.delenv("DOCKER_CONTEXT", raising=False)
    if by == "DOCKER_HOST":
        monkeypatch.setenv("DOCKER_HOST", host)
    else:
        monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
        meta = tmp_path / "contexts/meta" / hashlib.sha256(b"far").hexdigest()
        meta.mkdir(parents=True)
        endpoint = {"docker": {"Host": host, "SkipTLSVerify": False}}
        context = {"Name": "far", "Metadata": {}, "Endpoints": endpoint}
        (meta / "meta.json").write_text(json.dumps(context))
        current = "far" if by == "current context" else "default"
        (tmp_path / "config.json").write_text(json.dumps({"currentContext": current}))
    if by == "DOCKER_CONTEXT":
        monkeypatch.setenv("DOCKER_CONTEXT", "far")
    with pytest.raises(engine.NoDocker, match=rf"runs elsewhere \({host}"):
        engine.find(airgap=False, connect=fail)
