"""Noise of the machine during a run: CPU time of other programs, time for which CPU quotas stopped
the run, and the speed of cores and memory."""

import hashlib
import itertools
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from racetrack import cgroups
from racetrack.clock import now_ms
from racetrack.host import ProcessTree, stat_fields, usable_cores
from racetrack.metrics import CORE_SPEED, MEMORY_READ
from racetrack.probes.base import Probe
from racetrack.probes.usage import TICKS_PER_S, Listed, Meter, cpu_s_of, harness_cpu_s, ticks_in
from racetrack.results.folder import RunFolder
from racetrack.stack.contract import Accounting

MIB = 1024**2
# Small enough for the L1 cache, so that the engine's use of larger caches and memory has no effect.
BLOCK = bytes(range(256)) * 64
TRIES = 7  # their median ignores the first try, which runs with a cold cache
# More than the cache that a core of a usual server has for itself.
MEMORY_BYTES = 64 * MIB
# Few enough that NumPy keeps Python's lock: otherwise waiting for it again would count.
READS, READ_TRIES = 400, 7


def core_mib_per_s() -> float:
    """Measure the speed of the current core: MiB hashed with BLAKE2b per second of this thread's
    CPU time. Takes about 0.1 ms.

    A hypervisor may run two virtual machines on the two hardware threads of one core. That slows
    both down but does not count as steal time. BLAKE2b uses many execution units and so reveals it;
    SHA-256, which has instructions of its own, does not (docs/noise.md)."""
    return len(BLOCK) / MIB / statistics.median(_try_s() for _ in range(TRIES))


def _try_s() -> float:
    began_ns = time.thread_time_ns()
    hashlib.blake2b(BLOCK).digest()
    return (time.thread_time_ns() - began_ns) / 1e9


class Memory:
    """Memory that is read at random places. Programs of other virtual machines, which the kernel
    does not show, slow that down: they take memory and the caches that cores share."""

    def __init__(self) -> None:
        """Allocate MEMORY_BYTES."""
        self._random = np.random.default_rng(0)
        self._numbers = np.ones(MEMORY_BYTES // np.dtype(np.int64).itemsize, dtype=np.int64)

    def read_ns(self) -> float:
        """Measure this thread's CPU time for one read: the shortest of a few tries, so that other
        threads of the harness do not count. Takes 0.1 ms. The reads do not depend on each other, so
        the processor makes several at once."""
        return min(self._try_ns() for _ in range(READ_TRIES))

    def _try_ns(self) -> float:
        places = self._random.integers(0, len(self._numbers), READS)
        began_ns = time.thread_time_ns()
        self._numbers[places]
        return (time.thread_time_ns() - began_ns) / READS


class MachineSpeed:
    """Speed of cores and memory, sampled on one core at a time. Cores can differ: other virtual
    machines may use some of them."""

    def __init__(self) -> None:
        """Create the sampler."""
        self._memory = Memory()
        # With the engine's cores, which the harness does not use for anything else.
        self._cores = itertools.cycle(sorted(usable_cores()))
        self._samples: list[tuple[float, float]] = []

    def sample(self) -> None:
        """Measure on the next core, to which this thread is pinned during the measurement."""
        anywhere = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {next(self._cores)})
        try:
            self._samples.append((core_mib_per_s(), self._memory.read_ns()))
        finally:
            os.sched_setaffinity(0, anywhere)

    def means(self) -> tuple[float, float]:
        """Return the mean speed of a core, in MiB/s, and the mean time of a read from memory, in
        nanoseconds, of the samples since the last call.

        Raises:
            ValueError: there was no sample.
        """
        (speeds, reads_ns), self._samples = zip(*self._samples, strict=True), []
        return statistics.fmean(speeds), statistics.fmean(reads_ns)


EVERY_S = 1.0
CORE_SAMPLES = 2  # per row
STAT, PRESSURE = Path("/proc/stat"), Path("/proc/pressure")
PROCESSES, KTHREADD = Path("/proc"), 2  # process 2, the parent of all kernel threads
FREQUENCIES = "cpu[0-9]*/cpufreq/scaling_cur_freq"
RESOURCES = ("cpu", "memory", "io")
COLUMNS = (
    "at_ms",
    "machine_s",
    "busy_s",
    "steal_s",
    "programs_s",
    "services_s",
    "harness_s",
    "load_1_min",
    "mhz",
    *(f"waited_for_{name}_s" for name in RESOURCES),
    CORE_SPEED.key,
    "throttled_s",
    MEMORY_READ.key,
)


def machine_s(stat: str, up_s: float) -> tuple[float, float, float]:
    """Return elapsed, busy and steal time since boot, in seconds summed over all cores, from the
    text of `/proc/stat` and the machine's uptime.

    Busy time is computed as elapsed minus idle, I/O wait and steal time: the kernel measures idle
    time exactly but only samples user and system time.
    """
    lines = [line.split() for line in stat.splitlines() if line.startswith("cpu")]
    _, _, _, idle, waiting, _, _, steal = (int(ticks) / TICKS_PER_S for ticks in lines[0][1:9])
    passed_s = (len(lines) - 1) * up_s
    return passed_s, passed_s - idle - waiting - steal, steal


def waited_s(resource: str) -> float | None:
    """Return the seconds since boot during which at least one process waited for `cpu`, `memory` or
    `io`; None if the kernel has no pressure stall information."""
    try:
        some = (PRESSURE / resource).read_text().splitlines()[0]
    except OSError:
        return None
    return int(some.rpartition("=")[2]) / 1e6


def mhz(cpus: Path = Path("/sys/devices/system/cpu")) -> float | None:
    """Return the current mean frequency of the cores; None if it is hidden, as in most virtual
    machines."""
    speeds_mhz = [int(path.read_text()) / 1000 for path in cpus.glob(FREQUENCIES)]
    return sum(speeds_mhz) / len(speeds_mhz) if speeds_mhz else None


class ProgramsMeter:
    """CPU time of all programs and their ended children, without kernel threads. Most entries of
    `/proc` are kernel threads, so their ids are remembered for a while and skipped."""

    def __init__(self, processes: Path = PROCESSES) -> None:
        self._processes, self._threads = processes, Listed(lambda: {str(KTHREADD)})

    def cpu_s(self) -> float | None:
        """Return the CPU seconds so far; None if not all processes are visible, as in a container
        or where `/proc` hides the processes of other users."""
        try:
            if (self._processes / str(KTHREADD) / "comm").read_text() != "kthreadd\n":
                return None
        except (FileNotFoundError, PermissionError):
            return None
        threads = self._threads()
        names = os.listdir(self._processes)  # noqa: PTH208  # creating Paths takes as long again
        there = (name for name in names if name.isdigit() and name not in threads)
        return sum(self._ticks(name, threads) for name in there) / TICKS_PER_S

    def _ticks(self, name: str, threads: set[str]) -> int:
        fields = stat_fields(f"{self._processes}/{name}/stat")
        if fields and int(fields[1]) == KTHREADD:
            threads.add(name)
            return 0
        return ticks_in(fields)


class HarnessMeter:
    """CPU time of this process and its descendants, except services."""

    def __init__(self, services: Callable[[], Mapping[str, Sequence[int]]]) -> None:
        self._services, self._ever_services = services, set[int]()
        self._children = Listed(self._list_children)

    def cpu_s(self) -> float:
        """Return the CPU seconds so far, including those of children that have ended."""
        return harness_cpu_s() + cpu_s_of(self._children())

    def _list_children(self) -> list[int]:
        for pids in self._services().values():
            self._ever_services.update(pids)
        tree = ProcessTree.now()
        mine = [child for child in tree.children(os.getpid()) if child not in self._ever_services]
        return [process for child in mine for process in tree.with_descendants(child)]


class ServicesMeter:
    """CPU time of all services of a stack and of the processes that run them (`helpers`). Services
    with a control group are measured by its accounting, which includes ended processes."""

    def __init__(
        self,
        meter: Meter,
        accounts: Mapping[str, Accounting],
        helpers: Callable[[], Sequence[int]],
    ) -> None:
        self._meter, self._accounts, self._helpers = meter, accounts, Listed(helpers)
        self._last: dict[str, float] = {}
        self._before: dict[str, float] = {}  # CPU seconds before a count began again at 0

    def cpu_s(self) -> float:
        """Return the CPU seconds so far."""
        others = self._meter.cpu_s(excluding=self._accounts)
        return others + sum(map(self._accounted_s, self._accounts)) + cpu_s_of(self._helpers())

    def _accounted_s(self, name: str) -> float:
        last = self._last.get(name, 0.0)
        try:
            now = self._accounts[name].cpu_s()
        except OSError:
            now = last  # the service is down; `check_services` reports that
        if now < last:
            self._before[name] = self._before.get(name, 0.0) + last
        self._last[name] = now
        return self._before.get(name, 0.0) + now


class ThrottledMeter:
    """Time for which CPU quotas of control groups stopped services or this process."""

    def __init__(
        self, services: Callable[[], Mapping[str, Sequence[int]]], proc: Path = PROCESSES
    ) -> None:
        self._groups = Listed(
            lambda: list(cgroups.cpu_quotas({"harness": [os.getpid()], **services()}, proc))
        )
        self._last: dict[Path, float] = {}
        self._total_s = 0.0

    def throttled_s(self) -> float:
        """Return the seconds since the first call, summed over cores and groups."""
        for group in self._groups():
            with suppress(OSError):  # its container has ended
                now_s = cgroups.throttled_s(group)
                self._total_s += max(0.0, now_s - self._last.get(group, now_s))
                self._last[group] = now_s
        return self._total_s


class NoiseProbe(Probe):
    """Writes `noise.csv`: a row of `COLUMNS` per second. `services` is None if the engine's
    processes are unknown; then the engine can't be distinguished from other programs."""

    name = "The noise of the machine"

    def __init__(
        self,
        services: ServicesMeter | None,
        harness: HarnessMeter,
        throttled: ThrottledMeter,
        folder: RunFolder,
    ) -> None:
        super().__init__()
        self._throttled = throttled
        self._services, self._harness, self._programs = services, harness, ProgramsMeter()
        self._speed = MachineSpeed()
        self._csv = folder.open_for_lines("noise.csv")
        self.newest: Mapping[str, str] = {}  # the newest row, by column

    def run(self) -> None:
        """Sample until stopped."""
        with self._csv:
            self._csv.write(",".join(COLUMNS) + "\n")
            for number, _ in enumerate(self.ticks(EVERY_S / CORE_SAMPLES)):
                self._speed.sample()
                if number % CORE_SAMPLES == 0:
                    row = self._row()
                    self._csv.write(",".join(row) + "\n")
                    self.newest = dict(zip(COLUMNS, row, strict=True))

    def _row(self) -> list[str]:
        at_ms = now_ms()
        seconds = machine_s(STAT.read_text(), time.clock_gettime(time.CLOCK_BOOTTIME))
        programs_s = self._programs.cpu_s()
        services_s = self._services.cpu_s() if self._services else None
        others = (programs_s, services_s, self._harness.cpu_s(), os.getloadavg()[0], mhz())
        waited = map(waited_s, RESOURCES)
        mib_per_s, read_ns = self._speed.means()
        numbers = (*seconds, *others, *waited, mib_per_s, self._throttled.throttled_s(), read_ns)
        return [str(at_ms), *("" if number is None else f"{number:.3f}" for number in numbers)]
