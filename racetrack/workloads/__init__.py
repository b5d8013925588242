"""Workloads, one per folder (docs/adding-a-workload.md). The load generator imports this module
too, so it must run on PyPy."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

DEFAULT = "shop"


def names() -> list[str]:
    """Return the names of all workloads."""
    return sorted(file.parent.name for file in Path(__file__).parent.glob("*/__init__.py"))


def side(name: str, module: str) -> ModuleType:
    """Import one of a workload's two modules: `load` (for the load generator) or `harness`.

    Raises KeyError, with the names of all workloads, if there is no workload with this name."""
    if name not in names():
        raise KeyError(f"there is no workload {name!r}, but: {', '.join(names())}")
    return importlib.import_module(f"racetrack.workloads.{name}.{module}")
