"""The engines that are Java programs of ours, for their tests."""

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from racetrack import plugins
from racetrack.config import load
from racetrack.engines import all_engines, engine_names
from racetrack.engines.shared.java_program.service import Program
from racetrack.engines.shared.redis_sink.engine import WritesToRedis
from racetrack.stack.service import find_service
from tests.service_facts import another_value


def _service(engine: str) -> object:
    """The one that is called like it; None if it has no such service here."""
    return find_service(engine) if plugins.service_module(engine) else None


ENGINES = [name for name in engine_names() if isinstance(_service(name), Program)]
WRITE_TO_REDIS = [engine.name for engine in all_engines() if isinstance(engine, WritesToRedis)]


def recipe_of(engine: str) -> ModuleType:
    """What it installs."""
    return plugins.of_engine(engine, "recipe")


def service_of(engine: str) -> Program:
    """What runs it, which is called like it."""
    service = find_service(engine)
    assert isinstance(service, Program)
    return service


def told_otherwise(engine: str) -> Mapping[str, str]:
    """What it is told in every runtime, each with another value."""
    own = f"{engine.upper()}_"
    return {
        name: another_value(name)
        for name in service_of(engine).told(load())
        if name.startswith(own)
    }


def dockerfile(engine: str) -> Path:
    """The one of its program."""
    path: Path = recipe_of(engine).PROGRAM / "Dockerfile"
    return path
