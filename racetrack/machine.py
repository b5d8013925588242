"""What machine this is, for `run.json`."""

import os
import platform
from functools import cache
from pathlib import Path

import psutil

from racetrack.run_record import Machine


def runs_native() -> bool:
    """Whether the native runtime can run here: its programs are built for Linux."""
    return platform.system() == "Linux"


@cache
def usable_cores() -> frozenset[int]:
    """The cores that this program might use when it was started, whatever it keeps to since."""
    return frozenset(os.sched_getaffinity(0))


def describe() -> Machine:
    """CPU model, cores, memory, kernel and distribution of this machine."""
    return Machine(
        cpu_model=_field(Path("/proc/cpuinfo"), "model name", ":") or platform.processor(),
        cores=len(usable_cores()),
        memory_gib=round(psutil.virtual_memory().total / 2**30, 2),
        kernel=platform.release(),
        os=platform.freedesktop_os_release().get("PRETTY_NAME", platform.system()),
    )


def _field(path: Path, name: str, separator: str) -> str | None:
    for line in path.read_text().splitlines():
        key, _, value = line.partition(separator)
        if key.strip() == name:
            return value.strip()
    return None
