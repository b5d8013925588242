"""A fake Docker engine that answers the requests before the first use of an engine."""

import platform
import socketserver
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from racetrack.stack.compose import engine
from tests.fake_server import JsonHandler, serve_in_background

Program = Callable[[str], None]
COMPOSE = '#!/bin/sh\necho \'{"version": "%s"}\'\n'


HERE = {
    "Name": "debian",
    "OperatingSystem": "Debian GNU/Linux 12",
    "KernelVersion": platform.release(),
    "MemTotal": 24 << 30,
}


class FakeEngine(socketserver.ThreadingUnixStreamServer):
    """A fake Docker engine with a socket of its own. It answers the requests that precede the first
    use of an engine."""

    daemon_threads = True

    def __init__(self, path: Path, version: dict[str, Any], info: dict[str, Any]) -> None:
        self.answers = {
            "version": {"Version": "99.1.2", "MinAPIVersion": "1.24", **version},
            "info": {**HERE, **info},
        }
        super().__init__(str(path), Handler)
        self.url = f"unix://{path}"
        serve_in_background(self)


class Handler(JsonHandler):
    server: FakeEngine

    def get(self) -> None:
        answer = self.server.answers.get(self.path.rpartition("/")[2])
        self.answer(answer, 200 if answer else 404)


@pytest.fixture
def find_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Program) -> Iterator[Any]:
    """Return a function that runs `find`, which looks for a Docker engine, with a given fake engine
    and compose plugin."""
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
        version = {"ApiVersion": api, **(version or {})}
        servers.append(FakeEngine(tmp_path / f"{len(servers)}.sock", version, info))
        monkeypatch.setenv("DOCKER_HOST", servers[-1].url)
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
