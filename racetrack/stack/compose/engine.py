"""The Docker engine and its compose plugin: are they there, may we, are they new enough?"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlparse

import docker
from docker.errors import DockerException

from racetrack.errors import SetupError

# `start_interval` of a health check. Images made here do without (docker-compose.airgap.yml).
NEEDS_API = (1, 44)
NEEDS_API_AIRGAP = (1, 41)
NEEDS_COMPOSE = (2, 24)
ANSWER_WITHIN_S = 10
# Each service's log is followed over a connection of its own.
CONNECTIONS = 32


class NoDocker(SetupError):
    """Containers can't be started here: `why`, and what to do, in one line."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(f"{why[0].upper()}{why[1:]}. {remedy}, or set RUNTIME=native.")
        self.why = why


@dataclass(frozen=True)
class Docker:
    """An engine that answers, on this machine, new enough."""

    client: docker.DockerClient
    version: str
    compose_version: str


def find(*, airgap: bool) -> Docker:
    """Look, start nothing.

    Raises:
        NoDocker: says what stands in the way.
    """
    if shutil.which("docker") is None:
        raise NoDocker("there is no `docker` on PATH", "Install Docker")
    client = _connect()
    told = client.version()
    _require_api(told, NEEDS_API_AIRGAP if airgap else NEEDS_API)
    _require_this_machine(client)
    return Docker(client, str(told["Version"]), _compose_version())


def _connect() -> docker.DockerClient:
    """A client that goes where the `docker` command goes: DOCKER_HOST, or the current context."""
    try:
        return docker.from_env(timeout=ANSWER_WITHIN_S, max_pool_size=CONNECTIONS)
    except (DockerException, OSError, ValueError) as error:
        if "permission denied" in str(error).lower():
            raise NoDocker(
                "this user may not talk to the Docker engine (permission denied)",
                "Have it added to the group `docker` and log in again",
            ) from None
        where = f" at {host}" if (host := os.environ.get("DOCKER_HOST")) else ""
        raise NoDocker(f"no Docker engine answers{where}", "Start it") from None


def _require_api(told: Mapping[str, object], needed: tuple[int, int]) -> None:
    api = str(told.get("ApiVersion", "0.0"))
    if _numbers(api) < needed:
        wanted = ".".join(map(str, needed))
        raise NoDocker(
            f"Docker {told.get('Version')} is too old: its API is {api}, and {wanted} is needed",
            "Upgrade it",
        )


def _require_this_machine(client: docker.DockerClient) -> None:
    """CPU and memory of a container are read from this machine's kernel."""
    host = os.environ.get("DOCKER_HOST", "")
    scheme = urlparse(host or str(client.api.base_url)).scheme
    system = str(client.info().get("OperatingSystem", ""))
    remote = scheme in ("tcp", "ssh")
    if remote or "Docker Desktop" in system:
        raise NoDocker(
            f"the Docker engine runs elsewhere ({host if remote else system}), and what is in its"
            " containers can't be measured from here",
            "Run Racetrack where the engine is",
        )


def _compose_version() -> str:
    done = subprocess.run(
        ["docker", "compose", "version", "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise NoDocker("there is no `docker compose` (the plugin, version 2)", "Install it")
    version = str(json.loads(done.stdout)["version"])
    if _numbers(version) < NEEDS_COMPOSE:
        wanted = ".".join(map(str, NEEDS_COMPOSE))
        raise NoDocker(f"the compose plugin {version} is too old, {wanted} is needed", "Upgrade it")
    return version


def _numbers(version: str) -> tuple[int, ...]:
    """`v2.24.4-1` → (2, 24)."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])
