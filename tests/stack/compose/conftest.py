"""`docker compose` without an engine: it reads files."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from racetrack import install
from racetrack.install.debian import COMPOSE_PLUGIN
from racetrack.settings import REPO

Describe = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def compose_plugin(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The environment in which `docker compose` works."""
    try:
        if _works(os.environ):
            return os.environ
    except FileNotFoundError:
        pytest.skip("there is no `docker` on PATH, and the compose plugin is a plugin of it")
    parts = install.ensure(["compose"], install.read_versions(), print)
    configuration = tmp_path_factory.mktemp("docker")
    folders = {"cliPluginsExtraDirs": [str((parts["compose"] / COMPOSE_PLUGIN).parent)]}
    (configuration / "config.json").write_text(json.dumps(folders))
    environment = {**os.environ, "DOCKER_CONFIG": str(configuration)}
    assert _works(environment)
    return environment


@pytest.fixture(scope="session")
def described(compose_plugin: Mapping[str, str]) -> Describe:
    """What `docker compose config` says of some files, with these variables."""

    def describe(*files: str, profile: str = "*", **variables: str) -> dict[str, Any]:
        named = [argument for file in files for argument in ("--file", str(REPO / file))]
        done = subprocess.run(
            ["docker", "compose", *named, "--profile", profile, "config", "--format", "json"],
            env={**compose_plugin, **variables},
            cwd=REPO,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert not done.stderr, "a variable is not set, or a key is not known"
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    return describe


def _works(environment: Mapping[str, str]) -> bool:
    asked = ["docker", "compose", "version"]
    return subprocess.run(asked, env=environment, capture_output=True, check=False).returncode == 0


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes `docker` be this script."""

    def make(text: str) -> None:
        (tmp_path / "docker").write_text(text)
        (tmp_path / "docker").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return make
