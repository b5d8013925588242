"""The engines by name: a folder here with an `engine.py` is one. docs/adding-an-engine.md says what
the folder holds."""

from typing import TYPE_CHECKING

from racetrack import plugins
from racetrack.errors import UsageError

if TYPE_CHECKING:
    from racetrack.engines.contract import CalibrationEngine, Engine


def engine_names() -> list[str]:
    """Every engine that can be asked for, in alphabetical order."""
    return list(plugins.engine_names())


def find_engine(name: str) -> "Engine":
    """Return the engine of that name.

    Raises:
        UsageError: there is none; the message lists those there are.
    """
    if name not in engine_names():
        raise UsageError(f"There is no engine {name!r}. Engines: {', '.join(engine_names())}.")
    engine: Engine = plugins.of_engine(name, plugins.ENGINE).ENGINE
    return engine


def all_engines() -> "list[Engine]":
    """Return every engine, in the order of the README."""
    found = [find_engine(name) for name in engine_names()]
    return sorted(found, key=lambda engine: (engine.order, engine.name))


def calibration_engine() -> "CalibrationEngine":
    """Return the engine whose defects are known, which measures the harness itself."""
    from racetrack.engines.contract import CalibrationEngine

    return next(engine for engine in all_engines() if isinstance(engine, CalibrationEngine))


def example_engine() -> "Engine":
    """Return the engine for examples: of the published experiment, and started by every runtime."""
    published = [engine for engine in all_engines() if engine.is_published]
    return next(engine for engine in published if "native" in engine.runtimes)
