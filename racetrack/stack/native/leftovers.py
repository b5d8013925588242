"""Finds and ends the processes of a native stack by a mark in their environment.

The mark is inherited by every descendant and survives the death of whoever started them, so that
what a killed run left behind is found without any list that could be out of date.
"""

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

STACK_MARK = "RACETRACK_STACK"
SERVICE_MARK = "RACETRACK_SERVICE"
GRACE_S = 8.0


@dataclass(frozen=True)
class Member:
    """A live process that carries a stack's mark."""

    process: psutil.Process
    service: str


def mark(stack_name: str, service: str) -> dict[str, str]:
    """The environment that makes a process, and all it starts, part of a stack."""
    return {STACK_MARK: _owner(stack_name), SERVICE_MARK: service}


def work_root(stack_name: str) -> Path:
    """Where a stack keeps its data: on tmpfs where there is one, by a name that finds it again."""
    shm = Path("/dev/shm")  # noqa: S108  # the folder below it is private
    root = shm if os.access(shm, os.W_OK) else Path(tempfile.gettempdir())
    return root / _owner(stack_name)


def members(stack_name: str) -> list[Member]:
    """All live processes of a stack, oldest first."""
    found: list[Member] = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.AccessDenied, psutil.NoSuchProcess):
            environment = process.environ()
            if environment.get(STACK_MARK) == _owner(stack_name):
                found.append(Member(process, environment.get(SERVICE_MARK, "?")))
    return sorted(found, key=lambda member: (member.process.create_time(), member.process.pid))


def end(stack_name: str, grace_s: float = GRACE_S) -> list[Member]:
    """SIGTERM to the stack's main processes, SIGKILL to all that is alive after `grace_s`.

    Only main processes are asked, because each knows best in which order to end its own children.
    Returns all that were alive at the call.
    """
    doomed = members(stack_name)
    inner = {member.process.pid for member in doomed}
    heads = [member.process for member in doomed if _parent_pid(member.process) not in inner]
    _signal_all(heads, signal.SIGTERM)
    psutil.wait_procs(heads, timeout=grace_s)
    while stubborn := [member.process for member in members(stack_name)]:
        _signal_all(stubborn, signal.SIGKILL)
        psutil.wait_procs(stubborn, timeout=grace_s)
    return doomed


def clear(stack_name: str) -> str | None:
    """End the stack's processes and remove its data; says what there was, None if nothing."""
    ended = end(stack_name)
    root = work_root(stack_name)
    had_data = root.exists()
    if had_data:
        shutil.rmtree(root)
    names = ", ".join(sorted({member.service for member in ended}))
    what = [f"{len(ended)} processes ({names})"] if ended else []
    return " and ".join(what + ([f"the data in {root}"] if had_data else [])) or None


def _owner(stack_name: str) -> str:
    return f"racetrack-{os.getuid()}-{stack_name}"


def _parent_pid(process: psutil.Process) -> int | None:
    try:
        return process.ppid()
    except psutil.NoSuchProcess:
        return None


def _signal_all(targets: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in targets:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)
