"""Storm's stages, and what writes to Redis, in Java on a real Redis: see `java/`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from racetrack.engines.shared.java_program.recipe import REDIS_SINK
from racetrack.engines.shared.tests import java_tests
from racetrack.engines.storm.recipe import RECIPE
from tests.redis_server import Server, running_redis

SOURCES = (RECIPE.tests / "src", REDIS_SINK.parent / "tests")


@pytest.fixture(scope="module")
def class_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return java_tests.compiled("storm", SOURCES, tmp_path_factory.mktemp("classes"))


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


def in_java() -> list[str]:
    """The full names of all classes of tests."""
    found = [file.relative_to(folder) for folder in SOURCES for file in folder.rglob("*Test.java")]
    return sorted(".".join(file.with_suffix("").parts) for file in found)


@pytest.mark.slow
@pytest.mark.parametrize("name", in_java())
def test_stage(name: str, class_path: str, redis: Server, tmp_path: Path) -> None:
    java_tests.run([name], class_path, tmp_path, variables={"REDIS_PORT": str(redis.port)})
