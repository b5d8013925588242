"""The engines by name: a module here with an `ENGINE` is one."""

import importlib
import pkgutil

from racetrack.engines.contract import Engine
from racetrack.errors import UsageError

# What engines share.
_NOT_ENGINES = {"contract", "follow", "pgwire", "told"}


def engine_names() -> list[str]:
    """Every engine that can be asked for, in alphabetical order."""
    return [m.name for m in pkgutil.iter_modules(__path__) if m.name not in _NOT_ENGINES]


def find_engine(name: str) -> Engine:
    """The engine of that name.

    Raises:
        UsageError: there is none; the message lists those there are.
    """
    if name not in engine_names():
        raise UsageError(f"There is no engine {name!r}. Engines: {', '.join(engine_names())}.")
    engine: Engine = importlib.import_module(f"racetrack.engines.{name}").ENGINE
    return engine
