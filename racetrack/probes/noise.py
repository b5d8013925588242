"""Noise of the machine during a run: CPU time of other programs, and the speed of a core."""

import hashlib
import itertools
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from racetrack.clock import now_ms
from racetrack.host import ProcessTree, stat_fields
from racetrack.probes.base import Probe
from racetrack.probes.usage import TICKS_PER_S, Meter, cpu_s_of, harness_cpu_s, ticks_in
from racetrack.results.folder import RunFolder
from racetrack.stack.contract import Accounting

MIB = 1024**2
# It fits into the L1 cache, so the engine's use of larger caches and memory has no effect. The
# first try finds that cache cold.
BLOCK = bytes(range(256)) * 64
TRIES = 7


def core_mib_per_s() -> float:
    """Return MiB of BLAKE2b per second of this thread's CPU time, the median of some tries, which
    take about 0.1 ms together.

    A hypervisor may run two machines on the two threads of one core, which does not count as steal
    time. BLAKE2b keeps many execution units busy, so it shows that; SHA-256 by a processor's own
    instructions does not (docs/noise.md)."""
    return len(BLOCK) / MIB / statistics.median(_try_s() for _ in range(TRIES))


def _try_s() -> float:
    began_ns = time.thread_time_ns()
    hashlib.blake2b(BLOCK).digest()
    return (time.thread_time_ns() - began_ns) / 1e9


class CoresSpeed:
    """Speed of the cores, sampled one core after the other, since each may be shared or not."""

    def __init__(self) -> None:
        self._cores = itertools.cycle(sorted(os.sched_getaffinity(0)))
        self._samples: list[float] = []

    def sample(self) -> None:
        """Measure the next core; this thread is pinned to it meanwhile."""
        anywhere = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {next(self._cores)})
        try:
            self._samples.append(core_mib_per_s())
        finally:
            os.sched_setaffinity(0, anywhere)

    def mean_mib_per_s(self) -> float:
        """Return the mean of the samples since the last call.

        Raises:
            statistics.StatisticsError: there is none.
        """
        samples, self._samples = self._samples, []
        return statistics.fmean(samples)


EVERY_S, LOOK_EVERY_S = 1.0, 5.0
CORE_SAMPLES = 2  # per row
STAT, PRESSURE = Path("/proc/stat"), Path("/proc/pressure")
PROCESSES, KTHREADD = Path("/proc"), 2  # the parent of the kernel's threads
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
    "core_mib_per_s",
)


def machine_s(stat: str, up_s: float) -> tuple[float, float, float]:
    """Return elapsed, busy and steal time so far, in seconds over all cores, from the text of
    `/proc/stat` and the machine's uptime.

    Busy is all time that was not idle: the kernel times idleness, but only samples other states.
    """
    lines = [line.split() for line in stat.splitlines() if line.startswith("cpu")]
    _, _, _, idle, waiting, _, _, steal = (int(of) / TICKS_PER_S for of in lines[0][1:9])
    passed_s = (len(lines) - 1) * up_s
    return passed_s, passed_s - idle - waiting - steal, steal


def waited_s(resource: str) -> float | None:
    """Return the seconds in which some process waited for `cpu`, `memory` or `io` since the machine
    started; None where the kernel has no pressure stall information."""
    try:
        some = (PRESSURE / resource).read_text().splitlines()[0]
    except OSError:
        return None
    return int(some.rpartition("=")[2]) / 1e6


def mhz(cpus: Path = Path("/sys/devices/system/cpu")) -> float | None:
    """Return the mean frequency of the cores now; None where it is hidden, as in most virtual
    machines."""
    found = [int(path.read_text()) / 1000 for path in cpus.glob(FREQUENCIES)]
    return sum(found) / len(found) if found else None


class ProgramsMeter:
    """CPU time of all programs and their ended children, without kernel threads. Those are the most
    of all processes, so they are listed only every LOOK_EVERY_S."""

    def __init__(self, processes: Path = PROCESSES) -> None:
        self._processes, self._threads = processes, set[str]()
        self._looked_s = -LOOK_EVERY_S

    def cpu_s(self) -> float | None:
        """Return seconds so far; None where not all processes are visible: in a container, or if
        `/proc` hides those of other users."""
        try:
            if (self._processes / str(KTHREADD) / "comm").read_text() != "kthreadd\n":
                return None
        except (FileNotFoundError, PermissionError):
            return None
        if time.monotonic() - self._looked_s >= LOOK_EVERY_S:
            self._threads, self._looked_s = {str(KTHREADD)}, time.monotonic()
        names = os.listdir(self._processes)  # noqa: PTH208  # a Path for each is half of the time
        there = (name for name in names if name.isdigit() and name not in self._threads)
        return sum(map(self._ticks, there)) / TICKS_PER_S

    def _ticks(self, name: str) -> int:
        fields = stat_fields(f"{self._processes}/{name}/stat")
        if fields and int(fields[1]) == KTHREADD:
            self._threads.add(name)
            return 0
        return ticks_in(fields)


class HarnessMeter:
    """CPU time of this process and of its children except services."""

    def __init__(self, services: Callable[[], Mapping[str, Sequence[int]]]) -> None:
        self._services, self._ever_services = services, set[int]()
        self._children: list[int] = []
        self._looked_s = -LOOK_EVERY_S

    def cpu_s(self) -> float:
        """Return seconds so far, including those of children that have ended."""
        if time.monotonic() - self._looked_s >= LOOK_EVERY_S:
            self._look()
        return harness_cpu_s() + cpu_s_of(self._children)

    def _look(self) -> None:
        for pids in self._services().values():
            self._ever_services.update(pids)
        self._looked_s = time.monotonic()
        tree = ProcessTree.now()
        mine = [child for child in tree.children(os.getpid()) if child not in self._ever_services]
        self._children = [each for child in mine for each in tree.with_descendants(child)]


class ServicesMeter:
    """CPU time of all services of a stack and of the processes that run them (`helpers`). Where the
    kernel accounts for a service, that figure counts, since it includes ended processes."""

    def __init__(
        self,
        meter: Meter,
        accounts: Mapping[str, Accounting],
        helpers: Callable[[], Sequence[int]],
    ) -> None:
        self._meter, self._accounts, self._helpers = meter, accounts, helpers
        self._last: dict[str, float] = {}
        self._before: dict[str, float] = {}  # of accounts that were reset
        self._helping: Sequence[int] = ()
        self._looked_s = -LOOK_EVERY_S

    def cpu_s(self) -> float:
        """Return seconds so far."""
        if time.monotonic() - self._looked_s >= LOOK_EVERY_S:
            self._helping, self._looked_s = self._helpers(), time.monotonic()
        others = self._meter.cpu_s(excluding=self._accounts)
        return others + sum(map(self._accounted_s, self._accounts)) + cpu_s_of(self._helping)

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


class NoiseProbe(Probe):
    """Writes `noise.csv`: a row of `COLUMNS` per second. `services` is None where the engine's
    processes are unknown, so that other programs can't be told apart from them."""

    name = "The noise of the machine"

    def __init__(
        self, services: ServicesMeter | None, harness: HarnessMeter, folder: RunFolder
    ) -> None:
        super().__init__()
        self._services, self._harness, self._programs = services, harness, ProgramsMeter()
        self._cores = CoresSpeed()
        self._csv = folder.open_for_lines("noise.csv")

    def run(self) -> None:
        """Sample at fixed times, so that delays do not add up."""
        due_s = time.monotonic()
        with self._csv:
            self._csv.write(",".join(COLUMNS) + "\n")
            for samples in itertools.count(1):
                if self.stopping.wait(max(0.0, due_s - time.monotonic())):
                    return
                self._cores.sample()
                if samples % CORE_SAMPLES == 1:
                    self._csv.write(",".join(self._row()) + "\n")
                due_s += EVERY_S / CORE_SAMPLES

    def _row(self) -> list[str]:
        at_ms = now_ms()
        seconds = machine_s(STAT.read_text(), time.clock_gettime(time.CLOCK_BOOTTIME))
        programs_s = self._programs.cpu_s()
        services_s = self._services.cpu_s() if self._services else None
        others = (programs_s, services_s, self._harness.cpu_s(), os.getloadavg()[0], mhz())
        waited = map(waited_s, RESOURCES)
        numbers = (*seconds, *others, *waited, self._cores.mean_mib_per_s())
        return [str(at_ms), *("" if number is None else f"{number:.3f}" for number in numbers)]
