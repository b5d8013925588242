"""Ends at once all that a run in containers has left.

By way of the `docker` command: the watchdog has this loaded while engines are measured, and so
needs no library that speaks to the Docker engine.
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
# How each kind of thing is listed, its id first, and removed; what the others use comes first.
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
    """Where a stack keeps what is in no container."""
    return Path(tempfile.gettempdir()) / f"racetrack-{os.getuid()}-{stack_name}.up"


def mark(stack_name: str) -> Mapping[str, str]:
    """The environment by which a `docker compose` that is at work on a stack is found again."""
    return processes.mark_command(stack_name, COMMAND)


def end_commands(stack_name: str) -> list[str]:
    """Kill every command of the harness: an orphaned `docker compose` goes on creating containers,
    an orphaned `top` goes on taking samples. Native services of this name are none of them. Says
    which there were."""
    return sorted({member.service for member in processes.kill_commands(stack_name)})


def clear_at_once(stack_name: str) -> str | None:
    """Kill the harness's commands and the project's containers, and remove these with networks and
    data; says what there was, None if nothing.

    Raises:
        RacetrackError: something can't be removed, or Docker does not answer.
    """
    commands = end_commands(stack_name)
    services: dict[str, str] = {}  # by container id
    give_up = time.monotonic() + GONE_WITHIN_S
    while (said := _remove_all(stack_name, services)) is not None:
        if time.monotonic() > give_up:
            raise RacetrackError(
                f"Docker does not remove all of the project {stack_name}: {said}. See what is left:"
                f" docker ps --all --filter label={PROJECT}={stack_name}"
            )
        time.sleep(LOOK_EVERY_S)
    processes.remove(work_root(stack_name))
    names = ", ".join(sorted(map(shown, services.values())))
    count = f"{len(services)} container{'s' if len(services) > 1 else ''}"
    what = [f"{count} ({names})"] if services else []
    return " and ".join(what + ([f"`{'`, `'.join(commands)}`"] if commands else [])) or None


def _remove_all(stack_name: str, services: dict[str, str]) -> str | None:
    """Have everything removed that is there now, and add to `services` what ran; None if there was
    nothing, else what Docker complained of, such as what somebody else is removing already."""
    said = None
    for look, remove in KINDS:
        found = _docker(*look, "--filter", f"label={PROJECT}={stack_name}").splitlines()
        if not found:
            continue
        parts = [line.partition(" ") for line in found]
        services.update({name: service for name, _, service in parts if service})
        said = (said or "") + _docker(*remove, *(name for name, *_ in parts), may_fail=True)
    return said


def _docker(*arguments: str, may_fail: bool = False) -> str:
    """What a command prints; if it may fail, its complaint."""
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
        raise RacetrackError(f"The Docker engine does not do as asked: {done.stderr.strip()}")
    return done.stderr.strip() if may_fail else done.stdout
