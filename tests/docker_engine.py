"""A Docker engine for the tests: a running one, or one that the tests start and stop.

Packages provide the programs: docker.io (tests/apt-packages.txt) and, if the command line has no
compose plugin, that plugin in a private folder. The engine's data is in the cache folder, so that
later runs find the layers of images.
"""

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from racetrack import install
from racetrack.errors import SetupError
from racetrack.install import cache
from racetrack.install.debian import COMPOSE_PLUGIN

UP_WITHIN_S = 60.0
DOWN_WITHIN_S = 30.0
LAST_WORDS_LINES = 8


class NoEngine(Exception):
    """Docker can't run here; the message has the reason."""


@dataclass(frozen=True)
class Engine:
    """A Docker engine, with the environment variables by which any Docker client reaches it."""

    environment: dict[str, str]
    is_ours: bool


def home() -> Path:
    """Return the folder of an engine that these tests start: its socket, process id, log and
    data."""
    return cache.root() / "docker"


def up() -> Engine:
    """Return a Docker engine that answers; start one if none does. Install `docker compose` if it
    is missing.

    Raises:
        NoEngine: no engine answers and none can be started, or `docker compose` can't be installed.
    """
    if shutil.which("docker") is None:
        raise NoEngine("there is no `docker` on PATH")
    socket = f"unix://{home() / 'docker.sock'}"
    for host in (os.environ.get("DOCKER_HOST"), socket):
        environment = {"DOCKER_HOST": host} if host else {}
        if _answers(environment):
            return Engine({**environment, **_compose()}, is_ours=host == socket)
    _start()
    return Engine({"DOCKER_HOST": socket, **_compose()}, is_ours=True)


def down() -> None:
    """Stop the engine that these tests started, if it runs."""
    if process := _ours():
        process.terminate()
        try:
            process.wait(DOWN_WITHIN_S)
        except psutil.TimeoutExpired:
            process.kill()
            process.wait(DOWN_WITHIN_S)


@contextlib.contextmanager
def running() -> Iterator[Engine]:
    """Yield an engine. Stop it at the end, unless it ran before.

    Raises:
        NoEngine: see `up`.
    """
    ran_before = _ours() is not None
    engine = up()
    try:
        with pytest.MonkeyPatch.context() as environment:
            for name, value in engine.environment.items():
                environment.setenv(name, value)
            yield engine
    finally:
        if engine.is_ours and not ran_before:
            down()


def _answers(environment: dict[str, str]) -> bool:
    return _succeeds("docker", "version", "--format", "{{.Server.Version}}", **environment)


def _succeeds(*command: str, **environment: str) -> bool:
    variables = {**os.environ, **environment}
    done = subprocess.run(command, env=variables, capture_output=True, check=False)
    return done.returncode == 0


def _start() -> None:
    if os.geteuid() != 0:
        raise NoEngine("no engine answers, and only root can start one")
    if shutil.which("dockerd") is None:
        raise NoEngine("no engine answers, and there is no `dockerd` on PATH (package docker.io)")
    here = home()
    here.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = here / "dockerd.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [
                "dockerd",
                f"--host=unix://{here / 'docker.sock'}",
                f"--data-root={here / 'data'}",
                f"--exec-root={here / 'exec'}",
                f"--pidfile={here / 'dockerd.pid'}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C must reach the tests only, which stop the engine once their containers are
            # gone.
            start_new_session=True,
        )
    give_up = time.monotonic() + UP_WITHIN_S
    while not _answers({"DOCKER_HOST": f"unix://{here / 'docker.sock'}"}):
        if process.poll() is not None or time.monotonic() > give_up:
            process.kill()
            process.wait()
            words = "\n".join(log.read_text(errors="replace").splitlines()[-LAST_WORDS_LINES:])
            raise NoEngine(f"dockerd did not come up; its last words ({log}):\n{words}")
        time.sleep(0.1)


def _ours() -> psutil.Process | None:
    """Return the process of the dockerd whose files are in the cache folder; None if it does not
    run."""
    pidfile = home() / "dockerd.pid"
    with contextlib.suppress(FileNotFoundError, ValueError, psutil.NoSuchProcess):
        process = psutil.Process(int(pidfile.read_text()))
        if f"--pidfile={pidfile}" in process.cmdline():
            return process
    return None


def _compose() -> dict[str, str]:
    try:
        return compose_plugin(home() / "config")
    except SetupError as error:
        raise NoEngine(f"`docker compose` is missing, and can't be installed: {error}") from None


def compose_plugin(configuration: Path) -> dict[str, str]:
    """Return the environment variables that add `docker compose` to a command line without it, by
    a folder with a configuration."""
    if _succeeds("docker", "compose", "version"):
        return {}
    parts = install.ensure(["compose"], install.read_versions(), _say)
    configuration.mkdir(parents=True, exist_ok=True)
    plugins = (parts["compose"] / COMPOSE_PLUGIN).parent
    (configuration / "config.json").write_text(json.dumps({"cliPluginsExtraDirs": [str(plugins)]}))
    return {"DOCKER_CONFIG": str(configuration)}


def _say(line: str) -> None:
    print(f"[docker] {line}", file=sys.stderr, flush=True)


def main(arguments: list[str]) -> None:
    """Run `up` (print shell statements for Docker's client) or `down` (stop our engine)."""
    if arguments == ["up"]:
        for name, value in up().environment.items():
            print(f"export {name}={shlex.quote(value)}")
    elif arguments == ["down"]:
        down()


if __name__ == "__main__":
    main(sys.argv[1:])
