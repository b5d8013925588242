"""What stands in the way of containers is told in one line, before anything starts."""

import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.errors import DockerException

from racetrack.stack.compose import engine

Program = Callable[[str], None]
COMPOSE = '#!/bin/sh\necho \'{"version": "%s"}\'\n'


class FakeEngine(socketserver.ThreadingUnixStreamServer):
    """Answers what an engine is asked before it is trusted, over a socket of its own."""

    daemon_threads = True

    def __init__(self, path: Path, api: str, system: str) -> None:
        self.answers = {
            "version": {"Version": "99.1.2", "ApiVersion": api, "MinAPIVersion": "1.24"},
            "info": {"OperatingSystem": system},
        }
        super().__init__(str(path), _Handler)
        self.url = f"unix://{path}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    server: FakeEngine

    def do_GET(self) -> None:
        answer = self.server.answers.get(self.path.rpartition("/")[2])
        body = json.dumps(answer).encode()
        self.send_response(200 if answer else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "a socket"

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Program) -> Iterator[Any]:
    """What `find` says of an engine like this, with this compose plugin."""
    servers: list[FakeEngine] = []

    def tell(
        api: str = "1.47",
        system: str = "Debian GNU/Linux 12",
        compose: str | None = COMPOSE % "2.39.1-0debian1",
        *,
        airgap: bool = False,
    ) -> engine.Docker | str:
        servers.append(FakeEngine(tmp_path / f"{len(servers)}.sock", api, system))
        monkeypatch.setenv("DOCKER_HOST", servers[-1].url)
        program(compose or "#!/bin/sh\nexit 1\n")
        try:
            return engine.find(airgap=airgap)
        except engine.NoDocker as reason:
            assert "\n" not in str(reason)
            return str(reason)

    yield tell
    for server in servers:
        server.shutdown()
        server.server_close()


def test_one_that_will_do(told: Any) -> None:
    found = told()
    assert (found.version, found.compose_version) == ("99.1.2", "2.39.1-0debian1")


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


def test_one_that_is_not_for_this_user(monkeypatch: pytest.MonkeyPatch, program: Program) -> None:
    """Root may everything, so the answer is that of the client library."""
    program("#!/bin/sh\n")

    def refuse(**_: object) -> None:
        raise DockerException(
            "Error while fetching server API version: PermissionError(13, 'Permission denied')"
        )

    monkeypatch.setattr(docker, "from_env", refuse)
    with pytest.raises(
        engine.NoDocker, match=r"may not talk to the Docker engine .*group `docker`"
    ):
        engine.find(airgap=False)


def test_one_that_is_too_old(told: Any) -> None:
    assert "Docker 99.1.2 is too old: its API is 1.43, and 1.44 is needed" in told(api="1.43")
    assert "1.41 is needed" in told(api="1.40", airgap=True)
    assert told(api="1.41", airgap=True).version == "99.1.2"


def test_one_that_runs_elsewhere(told: Any) -> None:
    assert "runs elsewhere (Docker Desktop)" in told(system="Docker Desktop")


def test_one_on_another_machine(monkeypatch: pytest.MonkeyPatch, program: Program) -> None:
    class Far:
        api = None

        def version(self) -> dict[str, str]:
            return {"Version": "99.1", "ApiVersion": "1.47"}

        def info(self) -> dict[str, str]:
            return {"OperatingSystem": "Debian GNU/Linux 12"}

    program(COMPOSE % "2.39.1")
    monkeypatch.setenv("DOCKER_HOST", "tcp://192.0.2.1:2376")
    monkeypatch.setattr(docker, "from_env", lambda **_: Far())
    with pytest.raises(engine.NoDocker, match=r"runs elsewhere \(tcp://192.0.2.1:2376\)"):
        engine.find(airgap=False)


def test_no_compose_and_one_that_is_too_old(told: Any) -> None:
    assert "There is no `docker compose` (the plugin, version 2). Install it" in told(compose=None)
    assert "The compose plugin v2.23.3 is too old, 2.24 is needed" in told(
        compose=COMPOSE % "v2.23.3"
    )
    assert told(compose=COMPOSE % "5.1.1").compose_version == "5.1.1"
