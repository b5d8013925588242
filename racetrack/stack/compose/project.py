"""Compose project: runs `docker compose` commands for one project only."""

import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psutil

from racetrack.config import REPO, Settings, revealed
from racetrack.errors import RacetrackError, SetupError
from racetrack.stack.compose import orphans
from racetrack.stack.containers import REDIS

STARTED_BY = "racetrack.started-by"  # a label: the program that started a container
HARNESS = "harness"
MEMORY = "racetrack.memory"  # a label: the memory that a service may use
ENGINES = "engines"  # a profile: services that start only if named
LAST_LINES = 12


class ComposeFailed(RacetrackError):
    """`docker compose` failed; the message ends with its output."""


@dataclass(frozen=True)
class Service:
    """A service in the compose files, after settings were substituted."""

    image: str
    is_built_here: bool
    ports: Sequence[int]  # published ports
    memory: str  # sizes whose sum the service may use, such as `4g 300m`


class Project:
    """The project with the name STACK_NAME, whose compose files get the settings of a run."""

    def __init__(self, settings: Settings) -> None:
        self.name = settings.stack_name
        self._settings = settings
        files = [REPO / "docker-compose.yml"]
        if settings.airgap:
            files.append(REPO / "docker-compose.airgap.yml")
        self._command = ["docker", "compose", "--project-name", self.name, "--profile", ENGINES]
        self._command += ["--project-directory", str(REPO), "--ansi", "never"]
        self._command += [argument for file in files for argument in ("--file", str(file))]

    def services(self) -> dict[str, Service]:
        """Return all services in the compose files.

        Raises:
            ComposeFailed: the files can't be read.
        """
        config = json.loads(self._run("config", "--format", "json"))
        return {name: _service(described) for name, described in config["services"].items()}

    def up(self, services: Sequence[str], within_s: float) -> "subprocess.Popen[str]":
        """Begin to start services; the returned process exits with 0 when all are healthy.

        Of the services on which they depend, only those among `services` are started and waited
        for: not every workload needs all."""
        up = "--progress quiet up --no-deps --detach --wait --no-build"
        within = f"--wait-timeout {int(within_s)}"
        loadgen_redis = REDIS if "redis" in services else ""
        return self._open(*f"{up} {within}".split(), *services, LOADGEN_REDIS=loadgen_redis)

    def down(self) -> None:
        """Stop and remove the project's containers, networks and data."""
        self._run("--progress", "quiet", "down", "--volumes", "--remove-orphans")

    def build(self, services: Sequence[str], say: Callable[[str], None]) -> None:
        """Build images that are not up to date.

        Raises:
            SetupError: a build failed; the message ends with its output.
        """
        if not services:
            return
        say(f"  building the images of {', '.join(services)}, if something has changed")
        process = self._open("--progress", "plain", "build", *services)
        try:
            lines = output_of(process)
        finally:
            end(process)
        if process.returncode:
            raise SetupError(
                f"The images of {', '.join(services)} can't be built:\n{tail(lines)}\nCheck the"
                " network, or use RUNTIME=native, or images built here (`./race images`,"
                " AIRGAP=true)."
            )

    def _open(self, *arguments: str, **variables: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*self._command, *arguments],
            env={**self._environment(), **variables},
            cwd=REPO,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # Ctrl-C must not reach this process: the harness stops services in its own order.
            start_new_session=True,
        )

    def _environment(self) -> dict[str, str]:
        return {**environment(self._settings), **orphans.mark(self.name)}

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._command, *arguments],
            env=self._environment(),
            cwd=REPO,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
        )
        if done.returncode:
            raise ComposeFailed(
                f"`docker compose {' '.join(arguments)}` failed:\n{tail(done.stderr.splitlines())}"
            )
        return done.stdout


def environment(settings: Settings) -> dict[str, str]:
    """Return the environment for `docker compose`: the settings of this run override `.env`.

    The user's COMPOSE_* variables are removed, because they would add files and profiles.
    """
    outside = {name: v for name, v in os.environ.items() if not name.startswith("COMPOSE_")}
    return {
        **outside,
        **revealed(settings),
        "KAFKA_ADVERTISED_ADDRESS": settings.advertised_address,
        "RACETRACK_STARTED_BY": HARNESS,
        "LOADGEN_REDIS": "",
    }


def end(process: "subprocess.Popen[str]") -> None:
    """Kill a running `docker compose` command: `docker` and the plugin that it started."""
    try:
        plugin = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        plugin = []
    programs: list[subprocess.Popen[str] | psutil.Process] = [process, *plugin]
    for each in programs:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()
    process.wait()


def output_of(process: "subprocess.Popen[str]") -> list[str]:
    """Wait until a command ends; return all lines of its output."""
    return process.communicate()[0].splitlines()


def tail(lines: Sequence[str]) -> str:
    """Return the last lines, indented."""
    return "\n".join(f"    {line}" for line in lines[-LAST_LINES:]) or "    (no output)"


def _service(described: Mapping[str, Any]) -> Service:
    published = [
        int(port["published"]) for port in described.get("ports", []) if "published" in port
    ]
    memory = described.get("labels", {}).get(MEMORY, "")
    return Service(described["image"], "build" in described, published, memory)
