"""Engines, found by name. Each engine is a folder here with a module `engine.py`;
docs/adding-an-engine.md describes the folder's contents."""

from typing import TYPE_CHECKING

from racetrack import plugins
from racetrack.errors import UsageError

if TYPE_CHECKING:
    from racetrack.engines.contract import CalibrationEngine, Engine


def engine_names() -> list[str]:
    """Return the names of all engines, in alphabetical order."""
    return list(plugins.engine_names())


def find_engine(name: str) -> "Engine":
    """Return the engine with this name. A name such as `dh+pg` means a group: several engines that
    read the same input at the same time.

    Raises:
        UsageError: there is no such engine; the message lists all engines. Or the engines of a
            group can't read the same input.
    """
    if plugins.JOIN in name:
        from racetrack.engines.group import EngineGroup

        return EngineGroup([find_engine(member) for member in name.split(plugins.JOIN)])
    if name not in engine_names():
        raise UsageError(f"There is no engine {name!r}. Engines: {', '.join(engine_names())}.")
    engine: Engine = plugins.of_engine(name, plugins.ENGINE).ENGINE
    return engine


def all_engines() -> "list[Engine]":
    """Return all engines, in the order of the README."""
    engines = [find_engine(name) for name in engine_names()]
    return sorted(engines, key=lambda engine: (engine.order, engine.name))


def calibration_engine() -> "CalibrationEngine":
    """Return the calibration engine, whose defects are known, to check the harness itself."""
    from racetrack.engines.contract import CalibrationEngine

    return next(engine for engine in all_engines() if isinstance(engine, CalibrationEngine))


def example_engine() -> "Engine":
    """Return the engine used in examples: one from the experiment of 2022 that every runtime can
    start."""
    published = [engine for engine in all_engines() if engine.is_published]
    return next(engine for engine in published if "native" in engine.runtimes)
