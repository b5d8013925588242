"""Orphan cleanup: removes the containers that a killed run left behind.

It uses the `docker` command instead of a client library, because the watchdog keeps this module
loaded while engines are measured.
"""

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from racetrack.clock import attempts
from racetrack.errors import RacetrackError
from racetrack.stack import processes
from racetrack.stack.compose.names import PROJECT, SERVICE
from racetrack.stack.containers import shown

COMMAND = "docker compose"
# Pairs of Docker commands for containers, networks and volumes: the first command lists them (id
# first), the second removes them. Containers come first, because they use networks and volumes.
KINDS = (
    (
        ("ps", "--all", "--no-trunc", "--format", f'{{{{.ID}}}} {{{{.Label "{SERVICE}"}}}}'),
        ("rm", "--force", "--volumes"),
    ),
    (("network", "ls", "--format", "{{.ID}}"), ("network", "rm")),
    (("volume", "ls", "--format", "{{.Name}}"), ("volume", "rm", "--force")),
)
ANSWER_WITHIN_S = GONE_WITHIN_S = 30.0
LOOK_EVERY_S = 0.1


def work_root(stack_name: str) -> Path:
    """Return the folder for the files that a stack has outside of containers."""
    return Path(tempfile.gettempdir()) / f"racetrack-{os.getuid()}-{stack_name}.up"


def mark(stack_name: str) -> Mapping[str, str]:
    """Return environment variables that mark a `docker compose` process as part of a stack."""
    return processes.mark_command(stack_name, COMMAND)


def end_commands(stack_name: str) -> list[str]:
    """Kill the commands that the harness started for a stack; return their names.

    An orphaned `docker compose` keeps creating containers, and an orphaned `top` keeps sampling.
    Native services of a stack with this name keep running.
    """
    return sorted({member.service for member in processes.kill_commands(stack_name)})


def clear_at_once(stack_name: str) -> str | None:
    """Kill the harness's commands, and remove the project's containers, networks and data.

    Return a description of what was removed; None if there was nothing.

    Raises:
        RacetrackError: something can't be removed, or Docker does not answer.
    """
    commands = end_commands(stack_name)
    services: dict[str, str] = {}  # by container id
    for _ in attempts(GONE_WITHIN_S, LOOK_EVERY_S):
        if (complaints := _remove_all(stack_name, services)) is None:
            break
    else:
        raise RacetrackError(
            f"Docker does not remove all of the project {stack_name}: {complaints}."
            f" See what is left: docker ps --all --filter label={PROJECT}={stack_name}"
        )
    processes.remove(work_root(stack_name))
    names = ", ".join(sorted(map(shown, services.values())))
    count = f"{len(services)} container{'s' if len(services) > 1 else ''}"
    what = [f"{count} ({names})"] if services else []
    return " and ".join(what + ([f"`{'`, `'.join(commands)}`"] if commands else [])) or None


def _remove_all(stack_name: str, services: dict[str, str]) -> str | None:
    """Remove all containers, networks and volumes of the project; add containers to `services`.

    Return None if there were none, otherwise Docker's error messages, which may be empty.
    """
    complaints = None
    for look, remove in KINDS:
        found = _docker(*look, "--filter", f"label={PROJECT}={stack_name}").splitlines()
        if not found:
            continue
        parts = [line.partition(" ") for line in found]
        services.update({name: service for name, _, service in parts if service})
        complaints = (complaints or "") + _docker(
            *remove, *(name for name, *_ in parts), may_fail=True
        )
    return complaints


def _docker(*arguments: str, may_fail: bool = False) -> str:
    """Return a command's output, or with `may_fail` its error messages."""
    try:
        done = subprocess.run(
            ["docker", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=ANSWER_WITHIN_S,
        )
    except subprocess.TimeoutExpired as error:
        raise RacetrackError(f"The Docker engine does not answer: {error}") from None
    if done.returncode and not may_fail:
        raise RacetrackError(f"The Docker engine failed: {done.stderr.strip()}")
    return done.stderr.strip() if may_fail else done.stdout
