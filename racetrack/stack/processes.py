"""Processes of a stack: finds them by a mark in their environment, sends signals, and ends them.

The mark is a set of environment variables. The services of a native stack have it, and in every
runtime the commands that the harness starts, such as `top`. All descendants inherit the mark, even
if the process that started them is gone. So the processes of a killed run are found without a list
that could be outdated.
"""

import contextlib
import errno
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from racetrack.clock import attempts, wait_until
from racetrack.errors import RacetrackError

STACK_MARK = "RACETRACK_STACK"
SERVICE_MARK = "RACETRACK_SERVICE"
COMMAND_MARK = "RACETRACK_COMMAND"
GRACE_S, KILL_ROUNDS, LOOK_EVERY_S = 8.0, 3, 0.05
REPLACED_WITHIN_S, REPLACED_LOOK_EVERY_S = 0.1, 0.001
GRACE_AT_ONCE_S = REMOVED_WITHIN_S = 2.0
SHM = Path("/dev/shm")  # noqa: S108  # the folder below it is private
ROOM_BYTES = 1 << 30
TAIL_LINES = 12


@dataclass(frozen=True)
class Member:
    """A live process that carries a stack's mark."""

    process: psutil.Process
    service: str  # name of the service or the command
    is_command: bool = False


def mark(stack_name: str, service: str) -> dict[str, str]:
    """Return the environment variables that make a process and its descendants part of a stack."""
    return {STACK_MARK: _owner(stack_name), SERVICE_MARK: service}


def mark_command(stack_name: str, command: str) -> dict[str, str]:
    """Return the mark of a command that the harness starts and that must not outlive it."""
    return {**mark(stack_name, command), COMMAND_MARK: "yes"}


def work_root(stack_name: str) -> Path:
    """Return the folder for a stack's data, whether it exists or not.

    It is on tmpfs if there is enough space.
    """
    candidates = [folder / _owner(stack_name) for folder in (SHM, Path(tempfile.gettempdir()))]
    there = [candidate for candidate in candidates if candidate.exists()]
    return there[0] if there else candidates[0 if _is_roomy(SHM) else 1]


def members(stack_name: str) -> list[Member]:
    """Return all live processes of a stack, oldest first.

    They are the processes with the stack's mark, and their descendants. Descendants are included
    because some programs overwrite their environment, and with it the mark: for example, a database
    that shows its tasks in process titles.
    """
    found: dict[int, Member] = {}
    for process in sorted(psutil.process_iter(), key=lambda p: (p.create_time(), p.pid)):
        with contextlib.suppress(psutil.AccessDenied, psutil.NoSuchProcess):
            environment = _environment(process)
            if environment.get(STACK_MARK) == _owner(stack_name):
                found[process.pid] = Member(
                    process, environment.get(SERVICE_MARK, "?"), COMMAND_MARK in environment
                )
            elif parent := found.get(process.ppid()):
                found[process.pid] = Member(process, parent.service, parent.is_command)
    return list(found.values())


def end(stack_name: str, grace_s: float = GRACE_S) -> list[Member]:
    """Send SIGTERM to the stack's main processes, and SIGKILL to all processes that are still alive
    after `grace_s` seconds. Return the processes that were alive at the call.

    Only main processes get SIGTERM, because each ends its own children in the right order.

    Raises:
        RacetrackError: a process survived SIGKILL.
    """
    doomed = members(stack_name)
    inner = {member.process.pid for member in doomed}
    heads = [member.process for member in doomed if _parent_pid(member.process) not in inner]
    _signal_all(heads, signal.SIGTERM)
    # A paused process handles signals only after it continues.
    _signal_all([member.process for member in doomed], signal.SIGCONT)
    _wait_until_gone(heads, grace_s)
    for _ in range(KILL_ROUNDS):
        stubborn = [member.process for member in members(stack_name)]
        _signal_all(stubborn, signal.SIGKILL)
        if _wait_until_gone(stubborn, GRACE_S):
            return doomed
    raise RacetrackError(f"These processes can't be ended, even by SIGKILL: {stubborn}.")


def kill(stack_name: str, service: str) -> None:
    """Send SIGKILL to all processes of one service until none is left.

    Raises:
        RacetrackError: a process survived SIGKILL.
    """
    _kill_all(stack_name, lambda member: member.service == service)


def kill_commands(stack_name: str) -> list[Member]:
    """Send SIGKILL to the harness's commands (`mark_command`) until none is left; return them.

    Raises:
        RacetrackError: a process survived SIGKILL.
    """
    return _kill_all(stack_name, lambda member: member.is_command)


def signal_service(stack_name: str, service: str, number: signal.Signals) -> None:
    """Send a signal to all processes of one service."""
    _signal_all([m.process for m in members(stack_name) if m.service == service], number)


def clear_at_once(stack_name: str) -> str | None:
    """Do the same as `clear`, but within 5 s: processes get less time to end."""
    return clear(stack_name, GRACE_AT_ONCE_S)


def clear(stack_name: str, grace_s: float = GRACE_S) -> str | None:
    """End the stack's processes and remove its data.

    Return a description of what was removed; None if there was nothing.
    """
    return removed(stack_name, end(stack_name, grace_s))


def removed(stack_name: str, ended: Collection[Member]) -> str | None:
    """Remove the data of a stack whose processes have ended; return as `clear` does."""
    root = work_root(stack_name)
    had_data = remove(root)
    names = ", ".join(sorted({member.service for member in ended}))
    what = [f"{len(ended)} processes ({names})"] if ended else []
    return " and ".join(what + ([f"the data in {root}"] if had_data else [])) or None


def remove(
    folder: Path,
    rmtree: Callable[[Path], None] = shutil.rmtree,
    within_s: float = REMOVED_WITHIN_S,
) -> bool:
    """Remove a folder that another process may be removing too; return whether it existed.

    Raises:
        OSError: the folder can't be removed, or a process keeps writing into it.
    """
    was_there = folder.exists()
    give_up = time.monotonic() + within_s
    while folder.exists():
        try:
            rmtree(folder)
        except OSError as error:
            # Another process removes files from the folder (ENOENT) or still writes (ENOTEMPTY).
            passes = error.errno in (errno.ENOENT, errno.ENOTEMPTY)
            if not passes or time.monotonic() > give_up:
                raise
    return was_there


def _kill_all(stack_name: str, is_meant: Callable[[Member], bool]) -> list[Member]:
    killed: list[Member] = []
    for _ in range(KILL_ROUNDS):  # a process may have started another before its end
        victims = [member for member in members(stack_name) if is_meant(member)]
        if not victims:
            return killed
        killed += victims
        _signal_all([member.process for member in victims], signal.SIGKILL)
        _wait_until_gone([member.process for member in victims], GRACE_S)
    raise RacetrackError(f"These processes can't be ended, even by SIGKILL: {victims}.")


def _is_roomy(folder: Path) -> bool:
    """Return whether a folder is writable, has enough space for a run, and may contain libraries
    that Java loads."""
    if not os.access(folder, os.W_OK):
        return False
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize >= ROOM_BYTES and not room.f_flag & os.ST_NOEXEC


def _wait_until_gone(processes: Collection[psutil.Process], within_s: float) -> bool:
    """Wait until the processes have ended, without reaping them: zombies count as ended."""
    return wait_until(lambda: not any(map(lives, processes)), within_s, LOOK_EVERY_S)


def lives(process: psutil.Process) -> bool:
    """Return whether a process still runs; a zombie does not.

    The kernel calls a process a zombie as soon as its first thread has ended, while a JVM's other
    threads still do.
    """
    try:
        if not process.is_running():
            return False
        return process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1
    except psutil.NoSuchProcess:
        return False


def _environment(process: psutil.Process) -> dict[str, str]:
    """Return a process's environment. The kernel shows an empty one while the process replaces its
    program (exec), so wait until that is done. A kernel thread or a zombie has no memory, and no
    environment."""
    environment: dict[str, str] = {}
    for _ in attempts(REPLACED_WITHIN_S, REPLACED_LOOK_EVERY_S):
        environment = process.environ()
        if environment or not process.memory_info().vms:
            break
    return environment


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


def log_tail(log: Path) -> str:
    """Return the last lines of a log, indented."""
    lines = log.read_text(errors="replace").splitlines()[-TAIL_LINES:] if log.exists() else []
    return "\n".join(f"    {line}" for line in lines) or "    (it is empty)"
