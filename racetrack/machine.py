"""What machine this is, for `run.json`."""

import os
import platform
from pathlib import Path

import psutil

from racetrack.run_record import Machine


def runs_native() -> bool:
    """Whether the native runtime can run here: its programs are built for Linux."""
    return platform.system() == "Linux"


def describe() -> Machine:
    """CPU model, cores, memory, kernel and distribution of this machine."""
    return Machine(
        cpu_model=_field(Path("/proc/cpuinfo"), "model name", ":") or platform.processor(),
        cores=len(os.sched_getaffinity(0)),
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
