"""Asks a JVM how much of its heap is live: what a full collection leaves, added up by class.

It speaks the attach protocol of HotSpot itself, as `jcmd` does, which runtimes without a JDK lack.
A process is a JVM if it has mapped libjvm.so, whatever its program is called.
"""

import re
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from os import kill
from pathlib import Path

from racetrack.clock import now_ms
from racetrack.probes.usage import BYTES_PER_GIB
from racetrack.results.folder import RunFolder

PROC = Path("/proc")
LISTENS_WITHIN_S, ANSWERS_WITHIN_S, LOOK_EVERY_S = 5.0, 60.0, 0.05
# It collects first; objects that nothing holds any more are not in it.
REQUEST = b"1\0jcmd\0GC.class_histogram\0\0\0"
_TOTAL = re.compile(rb"^Total\s+\d+\s+(\d+)\s*$", re.MULTILINE)
FILE, TITLES = "live_heap.csv", "at_ms,service,pid,live_heap_gib,took_ms,why_not\n"


class NotTold(Exception):
    """The JVM did not say; the message says why."""


def write(
    processes: Mapping[str, Sequence[int]], folder: RunFolder, check: Callable[[], None]
) -> list[str]:
    """Ask each JVM of these services, one after the other, and leave `live_heap.csv`:
    `at_ms,service,pid,live_heap_gib,took_ms,why_not`, without a figure where one did not say.
    Returns, for a person, why those did not. `check` is called before each, and may raise."""
    silent = []
    with folder.open_for_lines(FILE) as lines:
        lines.write(TITLES)
        for service, pids in processes.items():
            for pid in filter(is_jvm, pids):
                check()
                at_ms, began = now_ms(), time.monotonic()
                gib = why = ""
                try:
                    gib = f"{live_bytes(pid) / BYTES_PER_GIB:.6f}"
                except NotTold as reason:
                    why = f'"{str(reason).replace(chr(34), chr(39))}"'
                    silent.append(f"The live heap of {service} (pid {pid}) is not known: {reason}.")
                took_ms = 1000 * (time.monotonic() - began)
                lines.write(f"{at_ms},{service},{pid},{gib},{took_ms:.1f},{why}\n")
    return silent


def is_jvm(pid: int, proc: Path = PROC) -> bool:
    """Whether a Java virtual machine lives in this process; not if it can't be looked at."""
    try:
        return "/libjvm.so" in (proc / str(pid) / "maps").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False


def live_bytes(pid: int, proc: Path = PROC) -> int:
    """What a full collection leaves on the heap, in bytes. The JVM stands still meanwhile; that and
    the answer took 0.5 to 3.5 s for 0.2 to 0.3 GiB (docs/measured.md).

    Raises:
        NotTold: it can't be asked, or did not answer in time.
    """
    try:
        answer = _ask(proc / str(pid), pid)
    except OSError as error:
        raise NotTold(str(error)) from error
    totals = _TOTAL.findall(answer)
    if not totals:
        raise NotTold(f"its answer has no total: {answer[:80]!r}")
    return int(totals[-1])


def _ask(process: Path, pid: int) -> bytes:
    """The JVM listens at a socket in its /tmp, once it has been asked to."""
    inside = _status(process, "NSpid").split()[-1]
    folder = process / "root/tmp"
    listens, trigger = folder / f".java_pid{inside}", folder / f".attach_pid{inside}"
    try:
        try:
            return _request(listens)
        except (FileNotFoundError, ConnectionRefusedError):  # it does not listen yet
            listens.unlink(missing_ok=True)
            _wake(process, pid, listens, trigger)
            return _request(listens)
    finally:
        # It makes it anew for whoever asks next; but if it were killed, it would leave it behind.
        listens.unlink(missing_ok=True)


def _request(listens: Path) -> bytes:
    with socket.socket(socket.AF_UNIX) as wire:
        wire.settimeout(ANSWERS_WITHIN_S)
        wire.connect(str(listens))
        wire.sendall(REQUEST)
        return b"".join(iter(lambda: wire.recv(1 << 16), b""))


def _wake(process: Path, pid: int, listens: Path, trigger: Path) -> None:
    """SIGQUIT, which ends a process that does not expect it: so only if it does."""
    caught = int(_status(process, "SigCgt"), 16)
    if not caught >> (signal.SIGQUIT - 1) & 1:
        raise NotTold("it does not take the signal by which it is asked to listen")
    trigger.touch()
    try:
        kill(pid, signal.SIGQUIT)
        give_up = time.monotonic() + LISTENS_WITHIN_S
        while not listens.exists():
            if time.monotonic() > give_up:
                raise NotTold(f"it did not listen within {LISTENS_WITHIN_S:.0f} s")
            time.sleep(LOOK_EVERY_S)
    finally:
        trigger.unlink(missing_ok=True)


def _status(process: Path, key: str) -> str:
    for line in (process / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == key:
            return value.strip()
    raise NotTold(f"the kernel tells no {key} of it")
