"""How fast this machine was when it was calibrated, kept for the runs that follow."""

import platform
from typing import Literal

from racetrack import machine
from racetrack.clock import utc_now
from racetrack.errors import UsageError
from racetrack.install import cache
from racetrack.json_file import write_json
from racetrack.record_part import Part, Utc
from racetrack.runfolder import read_record

FILE = "calibrated.json"


class Calibrated(Part):
    """What the file holds. Only the same program on the same machine does the same work."""

    schema_version: Literal[1] = 1
    at: Utc
    machine: str
    python: str
    mib_per_s: float


def keep(mib_per_s: float) -> None:
    """Write down how fast the machine is now."""
    found = Calibrated(at=utc_now(), machine=_here(), python=_python(), mib_per_s=mib_per_s)
    cache.root().mkdir(parents=True, exist_ok=True)
    write_json(cache.root() / FILE, found.model_dump(mode="json"))


def calibrated() -> float | None:
    """How fast it was, MiB/s; None if it was not calibrated as it is now."""
    try:
        found = read_record(cache.root() / FILE, Calibrated)
    except (FileNotFoundError, UsageError):
        return None
    same = (found.machine, found.python) == (_here(), _python())
    return found.mib_per_s if same else None


def _here() -> str:
    return str(machine.describe())


def _python() -> str:
    return platform.python_version()
