"""What machine this is, for `run.json`."""

import os
import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from racetrack.results.run import Machine

CPUINFO = Path("/proc/cpuinfo")
# Of x86, and of ARM.
CPU_NUMBERS = ("cpu family", "model", "CPU implementer", "CPU part")


def runs_native() -> bool:
    """Whether the native runtime can run here: its programs are built for Linux."""
    return platform.system() == "Linux"


@cache
def usable_cores() -> frozenset[int]:
    """The cores that this program might use when it was started, whatever it keeps to since."""
    return frozenset(os.sched_getaffinity(0))


def describe() -> "Machine":
    """CPU model, cores, memory, kernel and distribution of this machine."""
    from racetrack.results.run import Machine  # the commands that need none of it are quicker

    cpu = _fields(CPUINFO)
    return Machine(
        cpu_model=cpu.get("model name") or platform.processor(),
        cpu_numbers=cpu_numbers(cpu),
        cores=len(usable_cores()),
        memory_gib=round(psutil.virtual_memory().total / 2**30, 2),
        kernel=platform.release(),
        os=platform.freedesktop_os_release().get("PRETTY_NAME", platform.system()),
    )


def cpu_numbers(cpu: Mapping[str, str]) -> str:
    """What tells processors of one name apart: a cloud calls all of a maker's the same, and one may
    do half as much again as another (docs/noise.md)."""
    return ", ".join(f"{name.split()[-1]} {cpu[name]}" for name in CPU_NUMBERS if cpu.get(name))


def _fields(cpuinfo: Path) -> dict[str, str]:
    """What it says of the first processor."""
    first = cpuinfo.read_text().partition("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}
