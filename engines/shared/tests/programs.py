"""The engines that are Java programs of ours and write to Redis, for their tests."""

from pathlib import Path
from types import ModuleType

from engines import all_engines
from engines.shared.published_sink.program import Program
from engines.shared.redis_sink.engine import WritesToRedis
from racetrack import plugins
from racetrack.stack.native.service import find_service

ENGINES = [engine.name for engine in all_engines() if isinstance(engine, WritesToRedis)]


def recipe_of(engine: str) -> ModuleType:
    """What it installs."""
    return plugins.of_engine(engine, "recipe")


def service_of(engine: str) -> Program:
    """What runs it, which is called like it."""
    service = find_service(engine)
    assert isinstance(service, Program)
    return service


def dockerfile(engine: str) -> Path:
    """The one of its program."""
    path: Path = recipe_of(engine).PROGRAM / "Dockerfile"
    return path
