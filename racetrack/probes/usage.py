"""CPU time and memory of services and of the harness itself, from the kernel's own accounting."""

import contextlib
import os
import resource
import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import psutil

from racetrack.clock import now_ms
from racetrack.host import stat_fields
from racetrack.probes.thread import Probe
from racetrack.results.folder import RunFolder
from racetrack.results.run import CpuTime

BYTES_PER_GIB = 1024**3
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
COLUMNS, EVERY_S = "at_ms,service,cpu_s,cpu_user_s,rss_gib", 1.0
LOOK_FOR_NEW_PROCESSES_EVERY_S = 5.0


@dataclass(frozen=True)
class Usage:
    """What the processes of a service have used: CPU seconds so far, in user mode and in the
    kernel, and GiB of memory now."""

    user_s: float
    system_s: float
    rss_gib: float

    @property
    def cpu_s(self) -> float:
        """CPU seconds in both modes."""
        return self.user_s + self.system_s


def usage_of(pids: Sequence[int]) -> Usage:
    """All processes of a service added up. One that ended counts through its parent, as a child
    that was waited for."""
    user_s, system_s, rss = 0.0, 0.0, 0
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            times = process.cpu_times()
            user_s += times.user + times.children_user
            system_s += times.system + times.children_system
            rss += process.memory_info().rss
    return Usage(user_s, system_s, rss / BYTES_PER_GIB)


def cpu_s_of(pids: Iterable[int]) -> float:
    """CPU seconds alone, as in `usage_of`, from one file a process: it is asked every second."""
    return sum(ticks_in(stat_fields(f"/proc/{pid}/stat")) for pid in pids) / TICKS_PER_S


def ticks_in(fields: Sequence[bytes]) -> int:
    """CPU time in all modes, with that of children that were waited for, as `/proc/<pid>/stat` says
    it: in TICKS_PER_S."""
    return sum(map(int, fields[11:15]))


def harness_cpu_s() -> float:
    """CPU seconds that this process and its children (top) have used so far."""
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in own)


class Meter:
    """What services have used since they were first started, over the deaths of their processes."""

    def __init__(self, processes: Callable[[], Mapping[str, Sequence[int]]]) -> None:
        self._processes = processes
        self._pids: Mapping[str, Sequence[int]] = {}
        self._looked_s = -LOOK_FOR_NEW_PROCESSES_EVERY_S
        self._dead: dict[str, Usage] = {}
        self._lock = threading.Lock()

    def read(self) -> dict[str, Usage]:
        """The account now, by service; one without a process has no memory and uses no more CPU."""
        with self._lock:
            self._look()
            return {name: self._with_dead(name, usage_of(of)) for name, of in self._pids.items()}

    def cpu_s(self, but: Container[str] = ()) -> float:
        """CPU seconds of all services together, but for these."""
        with self._lock:
            self._look()
            live = [pid for name, of in self._pids.items() if name not in but for pid in of]
            dead = [used.cpu_s for name, used in self._dead.items() if name not in but]
            return cpu_s_of(live) + sum(dead)

    def pids(self) -> Mapping[str, Sequence[int]]:
        """The processes that it counts now, by service."""
        with self._lock:
            self._look()
            return dict(self._pids)

    @contextlib.contextmanager
    def ending(self, services: Sequence[str]) -> Iterator[None]:
        """Kill processes of these services in here. What they have used up to now stays in the
        account; what they use between this and their death, some milliseconds, is not."""
        with self._lock:
            self._pids = self._processes()
            for name in services:
                if name in self._pids:
                    used = self._with_dead(name, usage_of(self._pids[name]))
                    self._dead[name] = Usage(used.user_s, used.system_s, 0.0)
            yield
            self._looked_s = -LOOK_FOR_NEW_PROCESSES_EVERY_S

    def look_anew(self) -> None:
        """Others run now than before."""
        with self._lock:
            self._looked_s = -LOOK_FOR_NEW_PROCESSES_EVERY_S

    def _look(self) -> None:
        if time.monotonic() - self._looked_s >= LOOK_FOR_NEW_PROCESSES_EVERY_S:
            self._pids, self._looked_s = self._processes(), time.monotonic()

    def _with_dead(self, name: str, now: Usage) -> Usage:
        dead = self._dead.get(name, Usage(0.0, 0.0, 0.0))
        return Usage(now.user_s + dead.user_s, now.system_s + dead.system_s, now.rss_gib)


def cpu_times(meter: Meter) -> dict[str, CpuTime]:
    """Return the CPU time that each service of a meter has used so far."""
    return {name: CpuTime(user=of.user_s, system=of.system_s) for name, of in meter.read().items()}


class UsageProbe(Probe):
    """Keeps `usage.csv`: a row of `COLUMNS` per service, every second or every `every_s` seconds if
    that is shorter. All figures of CPU and memory are taken from it."""

    name = "CPU and memory"

    def __init__(self, meter: Meter, every_s: float, folder: RunFolder) -> None:
        super().__init__()
        self._meter, self._every_s = meter, min(every_s, EVERY_S)
        self._csv = folder.open_for_lines("usage.csv")

    def run(self) -> None:
        """Sample on a grid, so that lateness does not add up."""
        due_s = time.monotonic()
        with self._csv:
            self._csv.write(COLUMNS + "\n")
            while not self.stopping.wait(max(0.0, due_s - time.monotonic())):
                self._write()
                due_s += self._every_s

    def _write(self) -> None:
        at_ms = now_ms()
        for name, usage in self._meter.read().items():
            seconds = f"{usage.cpu_s:.2f},{usage.user_s:.2f}"
            self._csv.write(f"{at_ms},{name},{seconds},{usage.rss_gib:.6f}\n")
