"""Memory of services: proportional set size, files on tmpfs, and live heap of their JVMs."""

import contextlib
import os
import re
import signal
import socket
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import kill
from pathlib import Path

from racetrack.clock import now_ms
from racetrack.probes.usage import BYTES_PER_GIB
from racetrack.results.folder import RunFolder

PROC = Path("/proc")
MEMORY_CSV, MEMORY_COLUMNS = "memory.csv", "at_ms,service,pss_gib,tmpfs_gib,took_ms\n"
BLOCK_BYTES = 512  # of st_blocks, whatever the file system
_MAPPING = re.compile(r"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ ([0-9a-f]+):([0-9a-f]+) (\d+)")

File = tuple[int, int]  # device and inode


@dataclass(frozen=True)
class ServiceMemory:
    """Memory of a service in bytes; None where the kernel denies access.

    `pss`: proportional set size of all processes, which counts shared pages once. `tmpfs`: files on
    tmpfs, without the pages that the processes have mapped, since `pss` includes those.
    """

    pss: int | None
    tmpfs: int | None


def memory_of(pids: Sequence[int], folders: Sequence[Path], proc: Path = PROC) -> ServiceMemory:
    """Return the memory of a service with these processes and folders on tmpfs; a process that has
    just ended has none."""
    try:
        pss = sum(_pss(proc / str(pid)) for pid in pids)
    except PermissionError:
        return ServiceMemory(None, None)
    try:
        files = _files(folders)
    except PermissionError:
        return ServiceMemory(pss, None)
    mapped = sum(_mapped(proc / str(pid), files) for pid in pids) if files else 0
    return ServiceMemory(pss, max(0, sum(files.values()) - mapped))


class MemoryFile:
    """`memory.csv`: `at_ms,service,pss_gib,tmpfs_gib,took_ms`, a row per service and sample, with
    empty fields for unknown values. `took_ms` is the time to read the figures."""

    def __init__(self, folder: RunFolder, folders_of: Callable[[str], Sequence[Path]]) -> None:
        self._folders_of = folders_of
        self._csv = folder.open_for_lines(MEMORY_CSV)
        self._csv.write(MEMORY_COLUMNS)

    def __enter__(self) -> "MemoryFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._csv.close()

    def sample(self, processes: Mapping[str, Sequence[int]]) -> None:
        """Write the memory of these services now. The kernel walks the page tables, 10 to 45 ms per
        GiB, so this is not to be called while CPU is measured."""
        for name, pids in processes.items():
            at_ms, began = now_ms(), time.monotonic()
            held = memory_of(pids, self._folders_of(name))
            took_ms = 1000 * (time.monotonic() - began)
            gib = [_gib(held.pss), _gib(held.tmpfs)]
            self._csv.write(f"{at_ms},{name},{','.join(gib)},{took_ms:.1f}\n")


def _gib(held: int | None) -> str:
    return "" if held is None else f"{held / BYTES_PER_GIB:.6f}"


def _pss(process: Path) -> int:
    return sum(
        1024 * int(line.split()[1])
        for line in _lines(process / "smaps_rollup")
        if line.startswith("Pss:")
    )


def _lines(file: Path) -> Iterator[str]:
    """Yield the lines of a file of `/proc`; nothing if the process has ended."""
    try:
        yield from file.read_text(errors="replace").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return


def _files(folders: Sequence[Path]) -> dict[File, int]:
    """Return the size in memory of each file, bytes; a file with several names counts once."""
    found: dict[File, int] = {}
    for folder in folders:
        for below, _, names in os.walk(folder, onerror=_raise_denied):
            for name in names:
                with contextlib.suppress(FileNotFoundError):  # removed in between
                    at = Path(below, name).lstat()
                    found[at.st_dev, at.st_ino] = at.st_blocks * BLOCK_BYTES
    return found


def _raise_denied(error: OSError) -> None:
    """Ignore a folder that was removed meanwhile, but not one that can't be read."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _mapped(process: Path, files: Collection[File]) -> int:
    """Return the part of a process's PSS that belongs to these files. Reading each mapping is
    expensive, so first check whether there is one of them."""
    if not any(_file_of(line) in files for line in _lines(process / "maps")):
        return 0
    counts, found = False, 0
    for line in _lines(process / "smaps"):
        if file := _file_of(line):
            counts = file in files
        elif counts and line.startswith("Pss:"):
            found += 1024 * int(line.split()[1])
    return found


def _file_of(line: str) -> File | None:
    """Return the file in the first line of a mapping; None for other lines."""
    if not (found := _MAPPING.match(line)):
        return None
    major, minor, inode = found.groups()
    return os.makedev(int(major, 16), int(minor, 16)), int(inode)


PROC = Path("/proc")
LISTENS_WITHIN_S, ANSWERS_WITHIN_S, LOOK_EVERY_S = 5.0, 60.0, 0.05
# The JVM runs a full collection first, so unreachable objects are not counted.
REQUEST = b"1\0jcmd\0GC.class_histogram\0\0\0"
_TOTAL = re.compile(rb"^Total\s+\d+\s+(\d+)\s*$", re.MULTILINE)
LIVE_HEAP_CSV, LIVE_HEAP_COLUMNS = (
    "live_heap.csv",
    "at_ms,service,pid,live_heap_gib,took_ms,why_not\n",
)


class NoLiveHeap(Exception):
    """The live heap of a JVM is unknown; the message has the reason."""


def write_live_heaps(
    processes: Mapping[str, Sequence[int]], folder: RunFolder, check: Callable[[], None]
) -> list[str]:
    """Query each JVM of these services in turn and write `live_heap.csv`:
    `at_ms,service,pid,live_heap_gib,took_ms,why_not`, with an empty figure where it is unknown.
    Return a line for the user about each of those. `check` is called before each query and may
    raise.

    This uses HotSpot's attach protocol directly, as `jcmd` does, because runtimes without a JDK
    have no `jcmd`. A process counts as a JVM if it has mapped libjvm.so."""
    unknown = []
    with folder.open_for_lines(LIVE_HEAP_CSV) as lines:
        lines.write(LIVE_HEAP_COLUMNS)
        for service, pids in processes.items():
            for pid in filter(is_jvm, pids):
                check()
                at_ms, began = now_ms(), time.monotonic()
                gib = why = ""
                try:
                    gib = f"{live_bytes(pid) / BYTES_PER_GIB:.6f}"
                except NoLiveHeap as reason:
                    why = f'"{str(reason).replace(chr(34), chr(39))}"'
                    unknown.append(f"The live heap of {service} (pid {pid}) is unknown: {reason}.")
                took_ms = 1000 * (time.monotonic() - began)
                lines.write(f"{at_ms},{service},{pid},{gib},{took_ms:.1f},{why}\n")
    return unknown


def is_jvm(pid: int, proc: Path = PROC) -> bool:
    """Return whether a process is a JVM; False if it can't be inspected."""
    try:
        return "/libjvm.so" in (proc / str(pid) / "maps").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False


def live_bytes(pid: int, proc: Path = PROC) -> int:
    """Return the heap's size after a full collection, bytes. The JVM is paused meanwhile, 0.5 to
    3.5 s for 0.2 to 0.3 GiB (docs/measured.md).

    Raises:
        NoLiveHeap: the JVM can't be queried, or did not answer in time.
    """
    try:
        answer = _ask(proc / str(pid), pid)
    except OSError as error:
        raise NoLiveHeap(str(error)) from error
    totals = _TOTAL.findall(answer)
    if not totals:
        raise NoLiveHeap(f"its answer has no total: {answer[:80]!r}")
    return int(totals[-1])


def _ask(process: Path, pid: int) -> bytes:
    """Query the JVM by a socket in its /tmp, which it opens on request."""
    inside = _status(process, "NSpid").split()[-1]
    folder = process / "root/tmp"
    listening, trigger = folder / f".java_pid{inside}", folder / f".attach_pid{inside}"
    try:
        try:
            return _request(listening)
        except (FileNotFoundError, ConnectionRefusedError):  # it does not listen yet
            listening.unlink(missing_ok=True)
            _wake(process, pid, listening, trigger)
            return _request(listening)
    finally:
        # The JVM creates it again on the next request; a killed JVM would leave it behind.
        listening.unlink(missing_ok=True)


def _request(listening: Path) -> bytes:
    with socket.socket(socket.AF_UNIX) as wire:
        wire.settimeout(ANSWERS_WITHIN_S)
        wire.connect(str(listening))
        wire.sendall(REQUEST)
        return b"".join(iter(lambda: wire.recv(1 << 16), b""))


def _wake(process: Path, pid: int, listening: Path, trigger: Path) -> None:
    """Make the JVM open its socket, by SIGQUIT. It would kill a process that does not handle it, so
    check that first."""
    caught = int(_status(process, "SigCgt"), 16)
    if not caught >> (signal.SIGQUIT - 1) & 1:
        raise NoLiveHeap("it does not handle SIGQUIT, which opens its attach socket")
    trigger.touch()
    try:
        kill(pid, signal.SIGQUIT)
        give_up = time.monotonic() + LISTENS_WITHIN_S
        while not listening.exists():
            if time.monotonic() > give_up:
                raise NoLiveHeap(f"it did not listen within {LISTENS_WITHIN_S:.0f} s")
            time.sleep(LOOK_EVERY_S)
    finally:
        trigger.unlink(missing_ok=True)


def _status(process: Path, key: str) -> str:
    for line in (process / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == key:
            return value.strip()
    raise NoLiveHeap(f"the kernel reports no {key} for it")
