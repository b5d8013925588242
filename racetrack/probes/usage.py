"""CPU time and memory of services and of the harness itself, from the kernel's own accounting."""

import contextlib
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import psutil

from racetrack.probes.thread import Probe
from racetrack.runfolder import RunFolder

BYTES_PER_GIB = 1024**3
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


def harness_cpu_s() -> float:
    """CPU seconds that this process and its children (top) have used so far."""
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in own)


@dataclass(frozen=True)
class CpuAccount:
    """CPU seconds used so far: by service, in user mode and in the kernel, and by the harness."""

    by_service: Mapping[str, Mapping[str, float]]
    harness_s: float

    @classmethod
    def read(cls, processes: Mapping[str, Sequence[int]]) -> "CpuAccount":
        """The account now of the given processes (service → pids)."""
        usages = {name: usage_of(pids) for name, pids in processes.items()}
        services = {n: {"user": u.user_s, "system": u.system_s} for n, u in usages.items()}
        return cls(services, harness_cpu_s())

    def since(self, earlier: "CpuAccount") -> "CpuAccount":
        """What was used between two readings."""
        used = {
            name: {mode: self.by_service[name][mode] - before for mode, before in modes.items()}
            for name, modes in earlier.by_service.items()
        }
        return CpuAccount(used, self.harness_s - earlier.harness_s)


class UsageProbe(Probe):
    """Keeps `usage.csv`: `at_ms,service,cpu_s,rss_gib`, a row per service every `every_s` seconds.
    `top` shows more than a GiB in steps of a tenth; the kernel does not round."""

    name = "CPU and memory"

    def __init__(
        self,
        processes: Callable[[], Mapping[str, Sequence[int]]],
        every_s: float,
        folder: RunFolder,
    ) -> None:
        super().__init__()
        self._processes, self._every_s = processes, every_s
        self._csv = folder.open_for_lines("usage.csv")

    def run(self) -> None:
        """Sample on a grid, so that lateness does not add up."""
        due_s = looked_s = time.monotonic()
        with self._csv:
            self._csv.write("at_ms,service,cpu_s,rss_gib\n")
            pids = self._processes()
            while not self.stopping.wait(max(0.0, due_s - time.monotonic())):
                if time.monotonic() - looked_s > LOOK_FOR_NEW_PROCESSES_EVERY_S:
                    pids, looked_s = self._processes(), time.monotonic()
                self._write(pids)
                due_s += self._every_s

    def _write(self, processes: Mapping[str, Sequence[int]]) -> None:
        at_ms = time.time_ns() // 1_000_000
        for name, pids in processes.items():
            usage = usage_of(pids)
            self._csv.write(f"{at_ms},{name},{usage.cpu_s:.2f},{usage.rss_gib:.6f}\n")
