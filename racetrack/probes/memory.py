"""Memory of services: proportional set size, files on tmpfs, and the live heap of JVMs."""

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

from racetrack.clock import now_ms, wait_until
from racetrack.probes.usage import BYTES_PER_GIB
from racetrack.results.folder import RunFolder
from racetrack.stack.contract import NodeAgent, sum_known

PROC = Path("/proc")
MEMORY_CSV, MEMORY_COLUMNS = "memory.csv", "at_ms,service,pss_gib,tmpfs_gib,took_ms\n"
BLOCK_BYTES = 512  # unit of st_blocks on every file system
_MAPPING = re.compile(r"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ ([0-9a-f]+):([0-9a-f]+) (\d+)")

File = tuple[int, int]  # device and inode


@dataclass(frozen=True)
class ServiceMemory:
    """Memory of a service in bytes; None where the kernel denies access.

    `pss`: proportional set size, summed over the processes; shared pages count once. `tmpfs`: files
    on tmpfs, except pages that the processes have mapped, since `pss` includes these.
    """

    pss: int | None
    tmpfs: int | None


def memory_of(pids: Sequence[int], folders: Sequence[Path], proc: Path = PROC) -> ServiceMemory:
    """Return the memory of a service, given its processes and its folders on tmpfs. A process that
    has just ended counts as zero."""
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
    """`memory.csv`: `at_ms,service,pss_gib,tmpfs_gib,took_ms`, a row per service and sample.
    Unknown values are empty fields; `took_ms` is how long the measurement took."""

    def __init__(
        self,
        folder: RunFolder,
        folders_of: Callable[[str], Sequence[Path]],
        agents: Sequence[NodeAgent] = (),
    ) -> None:
        self._folders_of, self._agents = folders_of, agents
        self._csv = folder.open_for_lines(MEMORY_CSV)
        self._csv.write(MEMORY_COLUMNS)

    def __enter__(self) -> "MemoryFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._csv.close()

    def sample(self, processes: Mapping[str, Sequence[int]]) -> None:
        """Measure and write the memory of these services and of those on nodes with agents. Don't
        call this while CPU is measured: the kernel walks the page tables, which takes 10 to 45 ms
        of CPU per GiB."""
        for name, pids in processes.items():
            at_ms, began = now_ms(), time.monotonic()
            self._write(at_ms, name, memory_of(pids, self._folders_of(name)), began)
        at_ms, began = now_ms(), time.monotonic()
        for name, used in _memory_on_nodes(self._agents).items():
            self._write(at_ms, name, used, began)

    def _write(self, at_ms: int, service: str, used: ServiceMemory, began: float) -> None:
        took_ms = 1000 * (time.monotonic() - began)
        gib = [_gib(used.pss), _gib(used.tmpfs)]
        self._csv.write(f"{at_ms},{service},{','.join(gib)},{took_ms:.1f}\n")


def _memory_on_nodes(agents: Sequence[NodeAgent]) -> dict[str, ServiceMemory]:
    """Return the memory of each service, summed over the nodes; none if one can't be reached."""
    found: dict[str, ServiceMemory] = {}
    try:
        for agent in agents:
            for name, (pss, tmpfs) in agent.memory().items():
                so_far = found.get(name, ServiceMemory(0, 0))
                found[name] = ServiceMemory(
                    sum_known(so_far.pss, pss), sum_known(so_far.tmpfs, tmpfs)
                )
    except OSError:
        return {}
    return found


def _gib(used: int | None) -> str:
    return "" if used is None else f"{used / BYTES_PER_GIB:.6f}"


def _pss(process: Path) -> int:
    return sum(
        1024 * int(line.split()[1])
        for line in _lines(process / "smaps_rollup")
        if line.startswith("Pss:")
    )


def _lines(file: Path) -> Iterator[str]:
    """Yield the lines of a file of a process in `/proc`; nothing if the process has ended."""
    try:
        yield from file.read_text(errors="replace").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return


def _files(folders: Sequence[Path]) -> dict[File, int]:
    """Return the allocated bytes of each file in these folders; hard links count once."""
    found: dict[File, int] = {}
    for folder in folders:
        for below, _, names in os.walk(folder, onerror=_raise_denied):
            for name in names:
                with contextlib.suppress(FileNotFoundError):  # the file has just been removed
                    at = Path(below, name).lstat()
                    found[at.st_dev, at.st_ino] = at.st_blocks * BLOCK_BYTES
    return found


def _raise_denied(error: OSError) -> None:
    """Raise the error unless it reports that a folder has just been removed."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _mapped(process: Path, files: Collection[File]) -> int:
    """Return the part of a process's PSS that belongs to these files, in bytes. Reading `smaps` is
    expensive, so first check in `maps` whether any of the files is mapped at all."""
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
    """Return the file in the header line of a mapping in `maps` or `smaps`; None for other
    lines."""
    if not (found := _MAPPING.match(line)):
        return None
    major, minor, inode = found.groups()
    return os.makedev(int(major, 16), int(minor, 16)), int(inode)


PROC = Path("/proc")
LISTENS_WITHIN_S, ANSWERS_WITHIN_S, LOOK_EVERY_S = 5.0, 60.0, 0.05
# The JVM runs a full collection first, so unreachable objects are not counted.
REQUEST = b"1\0jcmd\0GC.class_histogram\0\0\0"
# It answers at once, without a collection. Each generation has a line with the content and the
# first and last address; between these may be the end of the part that is in use.
HEAP_REQUEST, HEAP_WITHIN_S = b"1\0jcmd\0GC.heap_info\0\0\0", 5.0
_GENERATION = re.compile(
    rb"^ \S.*\btotal\b.*\bused (\d+)K \[0x([0-9a-f]+), (?:0x[0-9a-f]+, )?0x([0-9a-f]+)\)",
    re.MULTILINE,
)
_TOTAL = re.compile(rb"^Total\s+\d+\s+(\d+)\s*$", re.MULTILINE)
LIVE_HEAP_CSV, LIVE_HEAP_COLUMNS = (
    "live_heap.csv",
    "at_ms,service,pid,live_heap_gib,took_ms,why_not\n",
)


class NoLiveHeap(Exception):
    """The live heap of a JVM is unknown. The message contains the reason."""


def write_live_heaps(
    processes: Mapping[str, Sequence[int]],
    folder: RunFolder,
    check: Callable[[], None],
    listens_within_s: float = LISTENS_WITHIN_S,
) -> list[str]:
    """Query the live heap of each JVM of these services and write `live_heap.csv`, with the columns
    `at_ms,service,pid,live_heap_gib,took_ms,why_not`. Return one message to the user for each JVM
    whose live heap is unknown; its `live_heap_gib` is empty. `check` is called before each query
    and may raise.

    HotSpot's attach protocol is implemented here because `jcmd`, which uses it too, is missing
    where no JDK is installed. A process counts as a JVM if it has mapped libjvm.so."""
    unknown = []
    with folder.open_for_lines(LIVE_HEAP_CSV) as lines:
        lines.write(LIVE_HEAP_COLUMNS)
        for service, pids in processes.items():
            for pid in filter(is_jvm, pids):
                check()
                at_ms, began = now_ms(), time.monotonic()
                gib = why = ""
                try:
                    live = live_bytes(pid, listens_within_s=listens_within_s)
                    gib = f"{live / BYTES_PER_GIB:.6f}"
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


def live_bytes(pid: int, proc: Path = PROC, listens_within_s: float = LISTENS_WITHIN_S) -> int:
    """Run a full garbage collection and return the bytes then in the heap. It pauses the JVM: 0.5
    to 3.5 s for a live heap of 0.2 to 0.3 GiB (docs/measured.md).

    Raises:
        NoLiveHeap: the JVM can't be queried, or did not answer in time.
    """
    answer = _ask(proc / str(pid), pid, REQUEST, listens_within_s, ANSWERS_WITHIN_S, is_last=True)
    totals = _TOTAL.findall(answer)
    if not totals:
        raise NoLiveHeap(f"its answer has no total: {answer[:80]!r}")
    return int(totals[-1])


@dataclass(frozen=True)
class Heap:
    """Heap of a JVM in bytes: its content, with garbage, and its largest size."""

    used: int
    limit: int


def heap_of(pid: int, proc: Path = PROC) -> Heap:
    """Return the heap of a JVM, without a collection.

    Raises:
        NoLiveHeap: the JVM can't be queried, or did not answer in time.
    """
    answer = _ask(proc / str(pid), pid, HEAP_REQUEST, HEAP_WITHIN_S, HEAP_WITHIN_S, is_last=False)
    generations = _GENERATION.findall(answer)
    if not generations:
        raise NoLiveHeap(f"its answer has no generation: {answer[:80]!r}")
    return Heap(
        used=sum(1024 * int(used) for used, _, _ in generations),
        limit=sum(int(end, 16) - int(begin, 16) for _, begin, end in generations),
    )


def _ask(
    process: Path,
    pid: int,
    request: bytes,
    listens_within_s: float,
    answers_within_s: float,
    *,
    is_last: bool,
) -> bytes:
    """Query the JVM. Its socket is removed, unless more queries follow (`is_last`) and the JVM
    could not open another."""
    try:
        removes = is_last or _handles_sigquit(process)
        return _query(process, pid, request, listens_within_s, answers_within_s, removes=removes)
    except OSError as error:
        raise NoLiveHeap(str(error)) from error


def _query(
    process: Path,
    pid: int,
    request: bytes,
    listens_within_s: float,
    answers_within_s: float,
    *,
    removes: bool,
) -> bytes:
    """Query the JVM through a socket in its /tmp, which the JVM creates on request."""
    inside = _status(process, "NSpid").split()[-1]
    folder = process / "root/tmp"
    listening, trigger = folder / f".java_pid{inside}", folder / f".attach_pid{inside}"
    try:
        try:
            return _request(listening, request, answers_within_s)
        except (FileNotFoundError, ConnectionRefusedError):  # the JVM does not listen yet
            listening.unlink(missing_ok=True)
            _wake(process, pid, listening, trigger, listens_within_s)
            return _request(listening, request, answers_within_s)
    finally:
        # A killed JVM would leave its socket behind. A running JVM that handles SIGQUIT creates a
        # new one when needed. One that does not, such as Deephaven's, has only that of its start.
        if removes:
            listening.unlink(missing_ok=True)


def _request(listening: Path, request: bytes, within_s: float) -> bytes:
    with socket.socket(socket.AF_UNIX) as wire:
        wire.settimeout(within_s)
        wire.connect(str(listening))
        wire.sendall(request)
        return b"".join(iter(lambda: wire.recv(1 << 16), b""))


def _wake(process: Path, pid: int, listening: Path, trigger: Path, listens_within_s: float) -> None:
    """Make the JVM open its socket by sending SIGQUIT. First check that the process handles
    SIGQUIT; otherwise the signal would kill it."""
    if not _handles_sigquit(process):
        raise NoLiveHeap("it does not handle SIGQUIT, which opens its attach socket")
    trigger.touch()
    try:
        kill(pid, signal.SIGQUIT)
        if not wait_until(listening.exists, listens_within_s, LOOK_EVERY_S):
            raise NoLiveHeap(f"it did not listen within {listens_within_s:.0f} s")
    finally:
        trigger.unlink(missing_ok=True)


def _handles_sigquit(process: Path) -> bool:
    return bool(int(_status(process, "SigCgt"), 16) >> (signal.SIGQUIT - 1) & 1)


def _status(process: Path, key: str) -> str:
    for line in (process / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == key:
            return value.strip()
    raise NoLiveHeap(f"the kernel reports no {key} for it")
