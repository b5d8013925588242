"""Hardware and processes of this machine."""

import math
import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from racetrack import cgroups
from racetrack.units import parse_cores

if TYPE_CHECKING:
    from racetrack.results.run import CpuQuota, Machine

CPUINFO = Path("/proc/cpuinfo")
PROCESSES = Path("/proc")
CPUS = Path("/sys/devices/system/cpu")
# Variable in which bootstrap.sh explains why native services can't be installed.
NOT_NATIVE = "RACETRACK_NOT_NATIVE"
# Fields of /proc/cpuinfo: the first two on x86, the others on ARM.
CPU_NUMBERS = ("cpu family", "model", "CPU implementer", "CPU part")


def runs_native() -> bool:
    """Return whether the native runtime can run here: its programs are built for Linux."""
    return platform.system() == "Linux"


def why_not_native() -> str:
    """Return why the native runtime is not supported here; "" if it is. Elsewhere than on Debian
    and Ubuntu it may work, but was never tried."""
    if not runs_native():
        return "processes need Linux"
    if shutil.which("apt-get") is None:
        return "this is neither Debian nor Ubuntu"
    return os.environ.get(NOT_NATIVE, "")


@cache
def usable_cores() -> frozenset[int]:
    """Return the cores that this process could use at the first call, before any pinning."""
    return frozenset(os.sched_getaffinity(0))


def threads_of_core(number: int, cpus: Path = CPUS) -> set[int]:
    """Return the hardware threads of a core, given one of them; only that one if the others are
    unknown."""
    try:
        text = (cpus / f"cpu{number}/topology/thread_siblings_list").read_text().strip()
    except OSError:
        text = ""
    return parse_cores(text) or {number}


def separable_cores(cpus: Path = CPUS, proc: Path = PROCESSES) -> tuple[int, ...]:
    """Return the cores to divide among programs: the usable ones, but no more than CPU quotas
    allow. Hardware threads of one core are neighbours, so that they are not divided."""
    quotas = cgroups.cpu_quotas({"": [os.getpid()]}, proc).values()
    allowed = min((cores for cores, _ in quotas), default=math.inf)

    cores = sorted(usable_cores(), key=lambda number: (min(threads_of_core(number, cpus)), number))
    return tuple(cores if math.isinf(allowed) else cores[: max(1, int(allowed))])


def describe(cpuinfo: Path = CPUINFO) -> "Machine":
    """Return CPU model, cores, memory, kernel and distribution of this machine."""
    from racetrack.results.run import Machine  # slow; most commands do not need it

    cpu = _fields(cpuinfo)
    return Machine(
        cpu_model=cpu.get("model name") or platform.processor(),
        cpu_numbers=cpu_numbers(cpu),
        cores=len(usable_cores()),
        cpu_quotas=cpu_quotas({}),
        memory_gib=round(memory()[1] / 2**30, 2),
        kernel=platform.release(),
        os=platform.freedesktop_os_release().get("PRETTY_NAME", platform.system()),
    )


def cpu_quotas(
    services: Mapping[str, Sequence[int]], proc: Path = PROCESSES
) -> "tuple[CpuQuota, ...]":
    """Return the CPU quotas of the control groups of these services' processes and of this process,
    except those that allow all cores. Of several quotas of a process, the smallest counts."""
    from racetrack.results.run import CpuQuota

    processes = {"harness": [os.getpid()], **services}
    groups = cgroups.cpu_quotas(processes, proc)
    limited = sorted((cores, group) for group, (cores, _) in groups.items())
    limits, rest = [], {name for name, pids in processes.items() if pids}
    every = len(rest)
    for cores, group in limited:
        names = rest.intersection(groups[group][1])
        rest -= names
        if names and cores < len(usable_cores()):
            listed = () if len(names) == every else tuple(sorted(names))
            limits.append(CpuQuota(cores=round(cores, 3), group=str(group), services=listed))
    return tuple(limits)


def memory(proc: Path = PROCESSES) -> tuple[int, int]:
    """Return the used and the total bytes of memory: of the machine, or of a control group of this
    process with a smaller limit."""
    machine, limits = psutil.virtual_memory(), cgroups.memory_limits(os.getpid(), proc)
    limited = [(limit, cgroups.memory_used(group)) for group, limit in limits.items()]
    total, used = min([(machine.total, machine.total - machine.available), *limited])
    return used, total


def cpu_numbers(cpu: Mapping[str, str]) -> str:
    """Return the family and model numbers of a CPU.

    They distinguish processors to which a cloud gives the same name although one may be 1.5 times
    as fast as the other (docs/noise.md).
    """
    return ", ".join(f"{name.split()[-1]} {cpu[name]}" for name in CPU_NUMBERS if cpu.get(name))


def _fields(cpuinfo: Path) -> dict[str, str]:
    """Return the fields of the first processor in /proc/cpuinfo: name → value."""
    first = cpuinfo.read_text().partition("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


class ProcessTree:
    """Snapshot of all processes and their parents.

    psutil reads all of `/proc` at each request for a process's children; this class reads it once.
    """

    def __init__(self, parents: Mapping[int, int]) -> None:
        self._parents = parents
        self._children: dict[int, list[int]] = {}
        for pid, parent in sorted(parents.items()):
            self._children.setdefault(parent, []).append(pid)

    @classmethod
    def now(cls, processes: Path = PROCESSES) -> "ProcessTree":
        """Return a snapshot of the current processes, without those that end while it is read."""
        names = os.listdir(processes)  # noqa: PTH208  # Path objects would double the time
        stats = {int(n): stat_fields(f"{processes}/{n}/stat") for n in names if n.isdigit()}
        return cls({pid: int(fields[1]) for pid, fields in stats.items() if fields})

    def children(self, pid: int) -> Sequence[int]:
        """Return the direct children of a process."""
        return self._children.get(pid, [])

    def with_descendants(self, pid: int) -> list[int]:
        """Return the process and all its descendants; nothing if it has ended."""
        pids = [pid] if pid in self._parents else []
        for parent in pids:
            pids += self.children(parent)
        return pids


def stat_fields(stat: str) -> list[bytes]:
    """Return the fields of `/proc/<pid>/stat` from the state on; nothing if the process has ended.

    Called for every process every second: reading text with Path would take 1.5 times as long.
    """
    try:
        with open(stat, "rb") as file:  # noqa: PTH123
            return file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
