"""Heaps of JVMs: their content over time, measured without collections, and their live objects."""

import os
import re
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from racetrack.clock import now_ms, wait_until
from racetrack.metrics import LIVE_HEAP
from racetrack.probes.base import Probe
from racetrack.results.folder import RunFolder
from racetrack.units import BYTES_PER_GIB

PROC = Path("/proc")
LISTENS_WITHIN_S, ANSWERS_WITHIN_S, LOOK_EVERY_S = 5.0, 60.0, 0.05
# The JVM first runs a full collection, so unreachable objects are not counted.
REQUEST = b"1\0jcmd\0GC.class_histogram\0\0\0"
# The JVM answers at once, without a collection. The answer has a line for each generation, with its
# content and its first and last address. Between the two addresses there may be another, the end of
# the part in use.
HEAP_REQUEST, HEAP_WITHIN_S = b"1\0jcmd\0GC.heap_info\0\0\0", 5.0
_GENERATION = re.compile(
    rb"^ \S.*\btotal\b.*\bused (\d+)K \[0x([0-9a-f]+), (?:0x[0-9a-f]+, )?0x([0-9a-f]+)\)",
    re.MULTILINE,
)
_TOTAL = re.compile(rb"^Total\s+\d+\s+(\d+)\s*$", re.MULTILINE)
# Live heaps early in a run with several windows; those at its end are in LIVE_HEAP_CSV.
EARLY_HEAP_CSV = "live_heap_early.csv"
LIVE_HEAP_CSV, LIVE_HEAP_COLUMNS = (
    "live_heap.csv",
    f"at_ms,service,pid,{LIVE_HEAP.key},took_ms,why_not\n",
)


class NoLiveHeap(Exception):
    """The live heap of a JVM is unknown. The message contains the reason."""


def write_live_heaps(
    processes: Mapping[str, Sequence[int]],
    folder: RunFolder,
    check: Callable[[], None],
    listens_within_s: float = LISTENS_WITHIN_S,
    *,
    is_last: bool = True,
) -> list[str]:
    """Query the live heap of each JVM of these services and write `live_heap.csv`, or
    `live_heap_early.csv` if it is not the last query of the run, with the columns
    `at_ms,service,pid,live_heap_gib,took_ms,why_not`. Return one message to the user for each JVM
    whose live heap is unknown; its `live_heap_gib` is empty. `check` is called before each query
    and may raise.

    HotSpot's attach protocol is implemented here because `jcmd`, which uses it too, is missing
    where no JDK is installed. A process counts as a JVM if it has mapped libjvm.so."""
    unknown = []
    with folder.open_for_lines(LIVE_HEAP_CSV if is_last else EARLY_HEAP_CSV) as lines:
        lines.write(LIVE_HEAP_COLUMNS)
        for service, pids in processes.items():
            for pid in filter(is_jvm, pids):
                check()
                at_ms, began = now_ms(), time.monotonic()
                gib = why = ""
                try:
                    live = live_bytes(pid, listens_within_s=listens_within_s, is_last=is_last)
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


def live_bytes(
    pid: int,
    proc: Path = PROC,
    listens_within_s: float = LISTENS_WITHIN_S,
    *,
    is_last: bool = True,
) -> int:
    """Run a full garbage collection and return the bytes then in the heap. It pauses the JVM: 0.5
    to 3.5 s for a live heap of 0.2 to 0.3 GiB (docs/measured.md). If it is not the last query of
    this JVM, its socket is kept.

    Raises:
        NoLiveHeap: the JVM can't be queried, or did not answer in time.
    """
    answer = _ask(proc / str(pid), REQUEST, listens_within_s, ANSWERS_WITHIN_S, is_last=is_last)
    totals = _TOTAL.findall(answer)
    if not totals:
        raise NoLiveHeap(f"its answer has no total: {answer[:80]!r}")
    return int(totals[-1])


@dataclass(frozen=True)
class Heap:
    """Heap of a JVM in bytes: its content, including garbage, and its largest size."""

    used: int
    limit: int


def heap_of(pid: int, proc: Path = PROC) -> Heap:
    """Return the heap of a JVM, without a collection.

    Raises:
        NoLiveHeap: the JVM can't be queried, or did not answer in time.
    """
    answer = _ask(proc / str(pid), HEAP_REQUEST, HEAP_WITHIN_S, HEAP_WITHIN_S, is_last=False)
    generations = _GENERATION.findall(answer)
    if not generations:
        raise NoLiveHeap(f"its answer has no generation: {answer[:80]!r}")
    return Heap(
        used=sum(1024 * int(used) for used, _, _ in generations),
        limit=sum(int(end, 16) - int(begin, 16) for _, begin, end in generations),
    )


def _ask(
    process: Path,
    request: bytes,
    listens_within_s: float,
    answers_within_s: float,
    *,
    is_last: bool,
) -> bytes:
    """Query the JVM through a socket in its /tmp, which the JVM creates on request.

    The socket is removed afterwards, since a killed JVM would leave it behind. A running JVM that
    handles SIGQUIT creates a new one when needed. A JVM that does not handle it, such as
    Deephaven's, has only the socket of its start, which is kept if more queries follow (`is_last`
    is False).
    """
    try:
        inside = _status(process, "NSpid").split()[-1]
        listening = process / "root/tmp" / f".java_pid{inside}"
        removes = is_last or _handles_sigquit(process)
        try:
            try:
                return _request(listening, request, answers_within_s)
            except (FileNotFoundError, ConnectionRefusedError):  # the JVM does not listen yet
                listening.unlink(missing_ok=True)
                _wake(process, listening, listens_within_s)
                return _request(listening, request, answers_within_s)
        finally:
            if removes:
                listening.unlink(missing_ok=True)
    except OSError as error:
        raise NoLiveHeap(str(error)) from error


def _request(listening: Path, request: bytes, within_s: float) -> bytes:
    with socket.socket(socket.AF_UNIX) as wire:
        wire.settimeout(within_s)
        wire.connect(str(listening))
        wire.sendall(request)
        return b"".join(iter(lambda: wire.recv(1 << 16), b""))


def _wake(process: Path, listening: Path, within_s: float) -> None:
    """Make the JVM open its socket by sending SIGQUIT. First check that the process handles
    SIGQUIT; otherwise the signal would kill it."""
    if not _handles_sigquit(process):
        raise NoLiveHeap("it does not handle SIGQUIT, which opens its attach socket")
    trigger = listening.with_name(listening.name.replace("java", "attach"))
    trigger.touch()
    try:
        os.kill(int(process.name), signal.SIGQUIT)
        if not wait_until(listening.exists, within_s, LOOK_EVERY_S):
            raise NoLiveHeap(f"it did not listen within {within_s:.0f} s")
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


EVERY_S = 10.0
# Between collections, garbage may fill a heap up to this share of its limit. Content beyond it
# counts as live.
NEARLY_FULL = 0.9


class HeapProbe(Probe):
    """Writes `heap.csv`: `at_ms,service,used_gib,limit_gib,why_not`, a row per service every
    EVERY_S. The content includes garbage. If a heap can't be read, there is one row with the reason
    until it can be read again. `floors` maps each service to the bytes left by the last collection,
    and `unknown` maps it to the reason why its heap could not be read."""

    name = "The heaps"

    def __init__(
        self,
        processes: Callable[[], Mapping[str, Sequence[int]]],
        folder: RunFolder,
        read: Callable[[int], Heap] = heap_of,
        is_jvm: Callable[[int], bool] = is_jvm,
    ) -> None:
        super().__init__()
        self._processes, self._read, self._is_jvm = processes, read, is_jvm
        self._csv = folder.open_for_lines("heap.csv")
        self._before: dict[str, Heap] = {}
        self.floors: dict[str, Heap] = {}
        self.unknown: dict[str, str] = {}

    def run(self) -> None:
        """Read all heaps again and again."""
        with self._csv:
            self._csv.write("at_ms,service,used_gib,limit_gib,why_not\n")
            for _ in self.ticks(EVERY_S):
                for service, pids in self._processes().items():
                    self.take(service, pids)

    def take(self, service: str, pids: Sequence[int]) -> None:
        """Read the heaps of a service's JVMs. A JVM that does not answer may be paused, killed or
        busy, so try again later."""
        try:
            heaps = [self._read(pid) for pid in pids if self._is_jvm(pid)]
        except NoLiveHeap as reason:
            self._write_reason(service, str(reason).replace('"', "'"))
            return
        self.unknown.pop(service, None)
        if not heaps:
            return
        now = Heap(sum(heap.used for heap in heaps), sum(heap.limit for heap in heaps))
        used_gib, limit_gib = now.used / BYTES_PER_GIB, now.limit / BYTES_PER_GIB
        self._csv.write(f"{now_ms()},{service},{used_gib:.6f},{limit_gib:.6f},\n")
        before = self._before.get(service)
        self._before[service] = now
        if before and (now.used < before.used or now.used > NEARLY_FULL * now.limit):
            self.floors[service] = now

    def _write_reason(self, service: str, why: str) -> None:
        """Write the reason why a heap can't be read, unless that has been written since the last
        reading."""
        if service not in self.unknown:
            self._csv.write(f'{now_ms()},{service},,,"{why}"\n')
        self.unknown[service] = why
