"""Tests that one line reports, before the start, why containers can't be used or measured."""

import platform
import socketserver
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from racetrack.config import REPO
from racetrack.stack.compose import engine
from tests.fake_server import JsonHandler, serve_in_background
from tests.stack.compose.conftest import Program

COMPOSE = '#!/bin/sh\necho \'{"version": "%s"}\'\n'

HERE = {
    "Name": "debian",
    "OperatingSystem": "Debian GNU/Linux 12",
    "KernelVersion": platform.release(),
    "MemTotal": 24 << 30,
}
COLIMA = {"Name": "colima", "OperatingSystem": "Ubuntu 24.04.2 LTS"}
VERSION = {"Version": "99.1.2", "MinAPIVersion": "1.24"}
# The API version does not tell Podman from Docker: it was 1.41 for years, and has been 1.44 since
# 2026 (https://github.com/containers/podman/pull/27915).
PODMAN = {"Version": "5.8.0", "Components": [{"Name": "Podman Engine"}]}
Find = Callable[..., Any]


class FakeEngine(socketserver.ThreadingUnixStreamServer):
    """A fake Docker engine that answers the requests before the first use of an engine."""

    daemon_threads = True

    def __init__(self, path: Path, **answers: dict[str, Any]) -> None:
        self.answers = answers
        super().__init__(str(path), Handler)
        serve_in_background(self)


class Handler(JsonHandler):
    server: FakeEngine

    def get(self) -> None:
        answer = self.server.answers.get(self.path.rpartition("/")[2])
        self.answer(answer, 200 if answer else 404)


@pytest.fixture
def find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Program) -> Iterator[Find]:
    """Return a function that looks for a Docker engine, where a given fake engine and compose
    plugin are; it returns the engine, or why it can't be used."""
    servers: list[FakeEngine] = []

    def find(
        api: str = "1.47",
        compose: str | None = COMPOSE % "2.39.1-0debian1",
        *,
        airgap: bool = False,
        version: dict[str, Any] | None = None,
        host_name: str = platform.node(),
        is_visible: bool = True,
        **info: object,
    ) -> engine.Docker | str:
        path = tmp_path / f"{len(servers)}.sock"
        answer = {**VERSION, "ApiVersion": api, **(version or {})}
        servers.append(FakeEngine(path, version=answer, info={**HERE, **info}))
        monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
        program(compose or "#!/bin/sh\nexit 1\n")
        try:
            see = engine.listener_is_visible if is_visible else lambda _: False
            return engine.find(airgap=airgap, host_name=host_name, is_visible=see)
        except engine.NoDocker as reason:
            assert "\n" not in str(reason)
            return str(reason)

    yield find
    for server in servers:
        server.shutdown()
        server.server_close()


def test_an_engine_on_this_kernel_can_be_used_and_measured(find: Find) -> None:
    found = find()
    assert (found.version, found.compose_version) == ("99.1.2", "2.39.1-0debian1")
    assert (found.unmeasurable, found.memory_bytes) == (None, 24 << 30)
    assert find(api="1.41", airgap=True).version == "99.1.2"


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"api": "1.43"}, "Docker 99.1.2 is too old: its API is 1.43, and 1.44 is needed"),
        ({"compose": None}, "There is no `docker compose` (the plugin, version 2). Install it"),
        ({"compose": COMPOSE % "2.24.5"}, "plugin 2.24.5 is too old, 2.24.6 is needed"),
        ({"is_visible": False}, "Racetrack runs in a container itself"),
        ({"version": PODMAN, "api": "1.41", "airgap": True}, "Podman 5.8.0 answers"),
    ],
)
def test_an_engine_that_can_not_be_used_is_refused_with_the_reason(
    find: Find, how: dict[str, Any], says: str
) -> None:
    assert says in find(**how)


def test_an_engine_in_a_virtual_machine_can_be_used_but_not_measured(find: Find) -> None:
    system, kernel = "Ubuntu 24.04.2 LTS", "6.8.0-64-generic"
    name = "lima-rancher-desktop"
    found = find(Name=name, OperatingSystem=system, KernelVersion=kernel).unmeasurable
    assert f"(Rancher Desktop, kernel {kernel}; " in found.why
    assert platform.release() in found.why
    assert found.remedy.startswith("Run Racetrack ")


def test_a_virtual_machine_or_another_linux_may_have_this_kernel(find: Find) -> None:
    found = find(**COLIMA).unmeasurable
    assert f"(Colima, whose kernel {platform.release()} is" in found.why
    assert found.remedy.startswith("Run Racetrack inside it")
    # Inside the virtual machine, containers can be measured.
    assert find(host_name=COLIMA["Name"], **COLIMA).unmeasurable is None


@pytest.mark.slow
def test_a_listener_in_another_process_namespace_is_not_visible(tmp_path: Path) -> None:
    with socketserver.UnixStreamServer(str(tmp_path / "socket"), Handler):
        assert engine.listener_is_visible(str(tmp_path / "socket"))
        ask = "import sys; from racetrack.stack.compose import engine"
        ask += "; print(engine.listener_is_visible(sys.argv[1]))"
        alone = ["unshare", "--user", "--map-root-user", "--pid", "--fork"]
        command = [*alone, sys.executable, "-c", ask, str(tmp_path / "socket")]
        apart = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
    if "unshare" in apart.stderr:
        pytest.skip(f"no namespaces for this user: {apart.stderr}")
    assert apart.stdout == "False\n", apart.stderr
