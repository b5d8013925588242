"""Plug-ins of engines and workloads: `racetrack/engines/<engine>/<part>.py` and
`racetrack/workloads/<workload>/<part>.py`. Standard library only.

No other module names an engine or a workload. A part, such as settings or services, is imported by
its name, without the rest of the folder.
"""

import importlib
from functools import cache
from pathlib import Path
from types import ModuleType

REPO = Path(__file__).resolve().parent.parent
NO_ENV_FILE = (
    f"{REPO / '.env'} is missing. It has the default of every setting: `git checkout .env`."
)
ENGINES = REPO / "racetrack" / "engines"
PUBLISHED_2022 = REPO / "racetrack" / "results" / "reference_2022.json"
WORKLOADS = REPO / "racetrack" / "workloads"
SCRIPTS = REPO / "scripts"
ENGINE = "engine"  # the part that makes a folder an engine


@cache
def engine_names() -> tuple[str, ...]:
    """Return the names of all engines, in alphabetical order."""
    return tuple(sorted(file.parent.name for file in ENGINES.glob(f"*/{ENGINE}.py")))


def of_engine(engine: str, part: str) -> ModuleType:
    """Import `racetrack/engines/<engine>/<part>.py`."""
    return importlib.import_module(f"racetrack.engines.{engine}.{part}")


def of_all(part: str) -> dict[str, ModuleType]:
    """Return engine → its module of that name, for engines that have one."""
    return {
        engine: of_engine(engine, part)
        for engine in engine_names()
        if (ENGINES / engine / f"{part}.py").exists()
    }


def files(name: str) -> list[Path]:
    """Return the file of that name of each engine that has one."""
    return [file for engine in engine_names() if (file := ENGINES / engine / name).exists()]


def workload_names() -> tuple[str, ...]:
    """Return the names of all workloads, in alphabetical order."""
    return tuple(importlib.import_module("racetrack.workloads").names())


def default_workload() -> str:
    """Return the name of the default workload."""
    return str(importlib.import_module("racetrack.workloads").DEFAULT)


def of_workload(workload: str, part: str) -> ModuleType:
    """Import `racetrack/workloads/<workload>/<part>.py`.

    Raises:
        KeyError: there is no such workload; the message lists all.
    """
    found: ModuleType = importlib.import_module("racetrack.workloads").side(workload, part)
    return found


def of_all_workloads(part: str) -> dict[str, ModuleType]:
    """Return workload → its module of that name, for workloads that have one."""
    return {
        file.parent.name: of_workload(file.parent.name, part)
        for file in sorted(WORKLOADS.glob(f"*/{part}.py"))
    }


def env_files() -> list[Path]:
    """Return the `.env` files of engines."""
    return files(".env")


def service_module(service: str) -> ModuleType | None:
    """Import `racetrack/engines/<engine>/services/<service>.py` of the engine that has it."""
    for engine in engine_names():
        if (ENGINES / engine / "services" / f"{service}.py").exists():
            return of_engine(engine, f"services.{service}")
    return None
