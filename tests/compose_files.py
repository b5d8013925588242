"""Our files as `docker compose` reads them, for tests of stack and engines. Needs no Docker
engine."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from racetrack import plugins
from racetrack.config import REPO
from racetrack.engines import all_engines
from tests import docker_engine
from tests.image_facts import IMAGES, Image

PUBLISHED = ("docker-compose.yml",)
AIRGAP = (*PUBLISHED, "docker-compose.airgap.yml")
OF_THE_STACK = ("mysql", "redpanda", "debezium", "loadgen", "redis")
OF_ENGINES = tuple(
    service
    for engine in all_engines()
    if "compose" in engine.runtimes
    for service in engine.services
)
CLIENTS = "tools"  # profile of programs that users run when they need them
# Answers that our health checks and scripts expect.
ANSWERS = (
    '"tasks":[{"id":0,"state":"RUNNING"}]'
    ' "mysql.shop.users-value" "mysql.shop.items-value" "mysql.shop.purchases-value"'
)
_folder = tempfile.TemporaryDirectory(prefix="racetrack-docker-")


@cache
def plugin() -> Mapping[str, str]:
    """Return environment variables with which `docker compose` works. Skip the test if there is no
    `docker` program."""
    if shutil.which("docker") is None:
        pytest.skip("there is no `docker` on PATH, and the compose plugin is a plugin of it")
    return {**os.environ, **docker_engine.compose_plugin(Path(_folder.name))}


def described(*files: str, profile: str = "*", **variables: str) -> dict[str, Any]:
    """Return the output of `docker compose config` for some files and variables."""
    # `docker compose` reads the settings beside a file only if that file is in `include`.
    settings = [REPO / ".env", *plugins.env_files()] if set(files) - set(PUBLISHED) else []
    done = subprocess.run(
        [
            "docker",
            "compose",
            *(argument for file in settings for argument in ("--env-file", str(file))),
            *(argument for file in files for argument in ("--file", str(REPO / file))),
            f"--profile={profile}",
            "config",
            "--format=json",
        ],
        env={**plugin(), **variables},
        cwd=REPO,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr, "a variable is not set, or a key is not known"
    record: dict[str, Any] = json.loads(done.stdout)
    return record


def service(name: str, *files: str, **variables: str) -> dict[str, Any]:
    """Return a service as described in the published files, or in the given ones."""
    found: dict[str, Any] = described(*(files or PUBLISHED), **variables)["services"][name]
    return found


def dockerfiles() -> list[Path]:
    """Return the Dockerfiles of all images that are built on published ones."""
    return [*REPO.glob("*/Dockerfile"), *REPO.glob("racetrack/engines/**/Dockerfile")]


def defaults_in(dockerfile: str) -> dict[str, str]:
    """Return the arguments to which a Dockerfile gives a value."""
    return dict(re.findall(r"^ARG (\w+)=(\S+)$", dockerfile, re.MULTILINE))


def dockerfile_of(service: Mapping[str, Any]) -> Path:
    """Return the Dockerfile of a service that is built here."""
    build: Mapping[str, str] = service["build"]
    return Path(build["context"]) / build.get("dockerfile", "Dockerfile")


def image_of(service: Mapping[str, Any]) -> Image:
    """Return the facts on the service's published image, or on its published base image."""
    if "build" not in service:
        return IMAGES[service["image"].rpartition(":")[0]]
    *_, base = re.findall(r"^FROM ([^\s:]+)", dockerfile_of(service).read_text(), re.MULTILINE)
    return IMAGES[base]


class Only:
    """A PATH with only the programs of an image: real shells, and stubs that always succeed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "bin"
        self._folder.mkdir()

    def run(self, image: Image, *command: str, **variables: str) -> None:
        """Run a command. Fail if it uses a program that the image does not have."""
        for name in image.programs.value:
            stub = self._folder / Path(name).name
            # Shells are real, so that scripts run. Every other program prints the answers that
            # health checks expect from `curl`.
            if name in ("sh", "bash"):
                stub.symlink_to(f"/bin/{name}")
            else:
                stub.write_text(f"#!/bin/sh\necho '{ANSWERS}'\n")
                stub.chmod(0o755)
        done = subprocess.run(
            [str(self._folder / command[0]), *command[1:]],
            env={"PATH": str(self._folder), **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert "not found" not in done.stderr, done.stderr
