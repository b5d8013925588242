"""Imports modules of engines and workloads by name, so that no other module has to name one.

The modules are `racetrack/engines/<engine>/<part>.py` and
`racetrack/workloads/<workload>/<part>.py`: a part is one module of such a folder, for example
`settings` or `services`. Importing one does not import the others. Standard library only.
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
WORKLOADS = REPO / "racetrack" / "workloads"
SCRIPTS = REPO / "scripts"
ENGINE = "engine"  # a folder with this module is an engine
JOIN = "+"  # between the names of the engines of a group, which read the same input


@cache
def engine_names() -> tuple[str, ...]:
    """Return the names of all engines, in alphabetical order."""
    return tuple(sorted(file.parent.name for file in ENGINES.glob(f"*/{ENGINE}.py")))


def of_engine(engine: str, part: str) -> ModuleType:
    """Import `racetrack/engines/<engine>/<part>.py`."""
    return importlib.import_module(f"racetrack.engines.{engine}.{part}")


def of_all(part: str) -> dict[str, ModuleType]:
    """Import this part of every engine that has it; return engine name → module."""
    return {
        engine: of_engine(engine, part)
        for engine in engine_names()
        if (ENGINES / engine / f"{part}.py").exists()
    }


def files(name: str) -> list[Path]:
    """Return the path of the file `name` in the folder of each engine that has one."""
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
        KeyError: there is no such workload; the message lists all workloads.
    """
    side: ModuleType = importlib.import_module("racetrack.workloads").side(workload, part)
    return side


def of_all_workloads(part: str) -> dict[str, ModuleType]:
    """Import this part of every workload that has it; return workload name → module."""
    return {
        file.parent.name: of_workload(file.parent.name, part)
        for file in sorted(WORKLOADS.glob(f"*/{part}.py"))
    }


def env_files() -> list[Path]:
    """Return the `.env` files of engines and workloads."""
    return [*files(".env"), *sorted(WORKLOADS.glob("*/.env"))]


def service_module(service: str) -> ModuleType | None:
    """Import `services/<service>.py` of the engine that has it; return None if no engine does."""
    for engine in engine_names():
        if (ENGINES / engine / "services" / f"{service}.py").exists():
            return of_engine(engine, f"services.{service}")
    return None
