"""The engines that are Java programs of this repository, and their parts that tests need."""

from racetrack import plugins
from racetrack.engines import all_engines, engine_names, find_engine
from racetrack.engines.shared.java_program.recipe import ProgramRecipe
from racetrack.engines.shared.java_program.service import JavaProgram
from racetrack.engines.shared.redis_sink.engine import WritesToRedis
from racetrack.stack.service import find_service


def _service(engine: str) -> object:
    """Return the engine's service; None if it has none."""
    return find_service(engine) if plugins.service_module(engine) else None


ENGINES = [name for name in engine_names() if isinstance(_service(name), JavaProgram)]
RUN_NEXMARK = [name for name in ENGINES if "nexmark" in find_engine(name).scripts]
WRITE_TO_REDIS = [engine.name for engine in all_engines() if isinstance(engine, WritesToRedis)]


def recipe_of(engine: str) -> ProgramRecipe:
    recipe = plugins.of_engine(engine, "recipe").RECIPE
    assert isinstance(recipe, ProgramRecipe)
    return recipe


def service_of(engine: str) -> JavaProgram:
    service = find_service(engine)
    assert isinstance(service, JavaProgram)
    return service
