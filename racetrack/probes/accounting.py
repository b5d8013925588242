"""CPU time of services and of the harness itself, from the kernel's own accounting."""

import contextlib
import resource
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class CpuTimes:
    """CPU seconds used so far, by service, in all its processes."""

    by_service: Mapping[str, float]
    harness_s: float

    def since(self, earlier: "CpuTimes") -> "CpuTimes":
        """What was used between two readings; services of the earlier one."""
        used = {name: self.by_service[name] - before for name, before in earlier.by_service.items()}
        return CpuTimes(used, self.harness_s - earlier.harness_s)


def read(processes: Mapping[str, Sequence[int]]) -> CpuTimes:
    """Read the accounts of the given processes (service → pids) and of this one."""
    by_service = {name: _cpu_s(pids) for name, pids in processes.items()}
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return CpuTimes(by_service, sum(usage.ru_utime + usage.ru_stime for usage in own))


def _cpu_s(pids: Iterable[int]) -> float:
    total = 0.0
    for pid in pids:
        # One that ended in between counts through its parent, as a child that was waited for.
        with contextlib.suppress(psutil.NoSuchProcess):
            times = psutil.Process(pid).cpu_times()
            total += times.user + times.system
            total += times.children_user + times.children_system
    return total
