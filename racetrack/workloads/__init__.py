"""The workloads: each folder in here is one, named like it. docs/adding-a-workload.md says what one
has to bring. PyPy reads this file too.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

DEFAULT = "shop"


def names() -> list[str]:
    """What there is, by name."""
    return sorted(file.parent.name for file in Path(__file__).parent.glob("*/__init__.py"))


def side(name: str, module: str) -> ModuleType:
    """One side of a workload: its module `load`, for the generator, or `harness`.

    KeyError: there is no such workload; its text says which there are.
    """
    if name not in names():
        raise KeyError(f"there is no workload {name!r}, but: {', '.join(names())}")
    return importlib.import_module(f"racetrack.workloads.{name}.{module}")
