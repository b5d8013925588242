"""What else the machine does while a run is measured: `noise.csv`, one row per second."""

import itertools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from racetrack.clock import now_ms
from racetrack.host import ProcessTree, stat_fields
from racetrack.probes.core_speed import CoresSpeed
from racetrack.probes.thread import Probe
from racetrack.probes.usage import TICKS_PER_S, Meter, cpu_s_of, harness_cpu_s, ticks_in
from racetrack.results.folder import RunFolder
from racetrack.stack.contract import Accounting

EVERY_S, LOOK_EVERY_S = 1.0, 5.0
# A core's speed changes within a second; two of them are looked at twice in each row.
LOOKS_AT_CORES = 4
STAT, PRESSURE = Path("/proc/stat"), Path("/proc/pressure")
PROCESSES, KTHREADD = Path("/proc"), 2  # the parent of the kernel's threads
FREQUENCIES = "cpu[0-9]*/cpufreq/scaling_cur_freq"
RESOURCES = ("cpu", "memory", "io")
COLUMNS = (
    *("at_ms", "machine_s", "busy_s", "steal_s", "programs_s", "services_s", "harness_s"),
    *("load_1_min", "mhz", *(f"waited_for_{name}_s" for name in RESOURCES), "core_mib_per_s"),
)


def machine_s(stat: str, up_s: float) -> tuple[float, float, float]:
    """Of all cores together, seconds so far: that have passed, in which they were busy, and that
    the hypervisor gave to others; from what `/proc/stat` says when the machine has been up so long.

    Busy is what was not idle: the kernel times idleness, but only samples who else runs.
    """
    lines = [line.split() for line in stat.splitlines() if line.startswith("cpu")]
    _, _, _, idle, waiting, _, _, steal = (int(of) / TICKS_PER_S for of in lines[0][1:9])
    passed_s = (len(lines) - 1) * up_s
    return passed_s, passed_s - idle - waiting - steal, steal


def waited_s(resource: str) -> float | None:
    """Seconds in which some process waited for `cpu`, `memory` or `io`, since the machine started;
    None where the kernel does not account for it."""
    try:
        some = (PRESSURE / resource).read_text().splitlines()[0]
    except OSError:
        return None
    return int(some.rpartition("=")[2]) / 1e6


def mhz(cpus: Path = Path("/sys/devices/system/cpu")) -> float | None:
    """The mean frequency of the cores now; None where it is hidden, as in most virtual machines."""
    found = [int(path.read_text()) / 1000 for path in cpus.glob(FREQUENCIES)]
    return sum(found) / len(found) if found else None


class ProgramsMeter:
    """CPU time of all programs, and of their children that have ended; the kernel's threads are
    none. Those are most of what there is to look at, so they are looked for every LOOK_EVERY_S."""

    def __init__(self, processes: Path = PROCESSES) -> None:
        self._processes, self._threads = processes, set[str]()
        self._looked_s = -LOOK_EVERY_S

    def cpu_s(self) -> float | None:
        """Seconds so far. None where not all can be seen: in a container, or if `/proc` hides those
        of other users."""
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
    """CPU time of this process and of all its children but those that are services."""

    def __init__(self, services: Callable[[], Mapping[str, Sequence[int]]]) -> None:
        self._services, self._ever_services = services, set[int]()
        self._children: list[int] = []
        self._looked_s = -LOOK_EVERY_S

    def cpu_s(self) -> float:
        """Seconds so far. Children that have ended are in this process's own account."""
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
    """CPU time of all services of a stack, and of what runs them (`helpers`). Where they have an
    account of their own it is that, which holds processes that have come and gone."""

    def __init__(
        self,
        meter: Meter,
        accounts: Mapping[str, Accounting],
        helpers: Callable[[], Sequence[int]],
    ) -> None:
        self._meter, self._accounts, self._helpers = meter, accounts, helpers
        self._last: dict[str, float] = {}
        self._before: dict[str, float] = {}  # of accounts that began anew
        self._helping: Sequence[int] = ()
        self._looked_s = -LOOK_EVERY_S

    def cpu_s(self) -> float:
        """Seconds so far."""
        if time.monotonic() - self._looked_s >= LOOK_EVERY_S:
            self._helping, self._looked_s = self._helpers(), time.monotonic()
        others = self._meter.cpu_s(but=self._accounts)
        return others + sum(map(self._accounted_s, self._accounts)) + cpu_s_of(self._helping)

    def _accounted_s(self, name: str) -> float:
        last = self._last.get(name, 0.0)
        try:
            now = self._accounts[name].cpu_s()
        except OSError:
            now = last  # a service that is down has no account; whoever watches it says so
        if now < last:
            self._before[name] = self._before.get(name, 0.0) + last
        self._last[name] = now
        return self._before.get(name, 0.0) + now


class NoiseProbe(Probe):
    """Keeps `noise.csv`: a row per second, of `COLUMNS`. `services` is None where the engine's
    processes are not known: then nobody can tell what is foreign."""

    name = "What else the machine does"

    def __init__(
        self, services: ServicesMeter | None, harness: HarnessMeter, folder: RunFolder
    ) -> None:
        super().__init__()
        self._services, self._harness, self._programs = services, harness, ProgramsMeter()
        self._cores = CoresSpeed()
        self._csv = folder.open_for_lines("noise.csv")

    def run(self) -> None:
        """Sample on a grid, so that lateness does not add up."""
        due_s = time.monotonic()
        with self._csv:
            self._csv.write(",".join(COLUMNS) + "\n")
            for looks in itertools.count(1):
                if self.stopping.wait(max(0.0, due_s - time.monotonic())):
                    return
                self._cores.look()
                if looks % LOOKS_AT_CORES == 1:
                    self._csv.write(",".join(self._row()) + "\n")
                due_s += EVERY_S / LOOKS_AT_CORES

    def _row(self) -> list[str]:
        at_ms = now_ms()
        seconds = machine_s(STAT.read_text(), time.clock_gettime(time.CLOCK_BOOTTIME))
        programs_s = self._programs.cpu_s()
        services_s = self._services.cpu_s() if self._services else None
        others = (programs_s, services_s, self._harness.cpu_s(), os.getloadavg()[0], mhz())
        waited = map(waited_s, RESOURCES)
        numbers = (*seconds, *others, *waited, self._cores.mean_mib_per_s())
        return [str(at_ms), *("" if number is None else f"{number:.3f}" for number in numbers)]
