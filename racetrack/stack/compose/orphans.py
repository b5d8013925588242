"""Orphan cleanup: ends at once what a killed run left in containers.

It uses the `docker` command, not a client library: the watchdog has this loaded while engines are
measured.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from racetrack.errors import RacetrackError
from racetrack.stack import processes
from racetrack.stack.compose.names import PROJECT, SERVICE, shown

COMMAND = "docker compose"
# For each kind: list (id first) and remove. Containers come first, since they use the others.
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
    """Return the folder for what a stack keeps outside of containers."""
    return Path(tempfile.gettempdir()) / f"racetrack-{os.getuid()}-{stack_name}.up"


def mark(stack_name: str) -> Mapping[str, str]:
    """Return the environment variables by which a `docker compose` of a stack is found again."""
    return processes.mark_command(stack_name, COMMAND)


def end_commands(stack_name: str) -> list[str]:
    """Kill every command of the harness and return their names: an orphaned `docker compose` keeps
    creating containers, an orphaned `top` keeps sampling. Native services of this name are left
    alone."""
    return sorted({member.service for member in processes.kill_commands(stack_name)})


def clear_at_once(stack_name: str) -> str | None:
    """Kill the harness's commands, and remove the project's containers with networks and data;
    return what there was, None if nothing.

    Raises:
        RacetrackError: something can't be removed, or Docker does not answer.
    """
    commands = end_commands(stack_name)
    services: dict[str, str] = {}  # by container id
    give_up = time.monotonic() + GONE_WITHIN_S
    while (complaints := _remove_all(stack_name, services)) is not None:
        if time.monotonic() > give_up:
            raise RacetrackError(
                f"Docker does not remove all of the project {stack_name}: {complaints}."
                " See what is left:"
                f" docker ps --all --filter label={PROJECT}={stack_name}"
            )
        time.sleep(LOOK_EVERY_S)
    processes.remove(work_root(stack_name))
    names = ", ".join(sorted(map(shown, services.values())))
    count = f"{len(services)} container{'s' if len(services) > 1 else ''}"
    what = [f"{count} ({names})"] if services else []
    return " and ".join(what + ([f"`{'`, `'.join(commands)}`"] if commands else [])) or None


def _remove_all(stack_name: str, services: dict[str, str]) -> str | None:
    """Remove everything that exists now and add to `services` what ran; return None if there was
    nothing, else Docker's complaints, such as things that are being removed already."""
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
    """Return a command's output; if it may fail, its complaints."""
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
