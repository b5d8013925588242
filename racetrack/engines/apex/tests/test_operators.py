"""Apex' operators in Java, on a real Redis: see `java/`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from racetrack.engines.apex.recipe import RECIPE
from racetrack.engines.shared.tests import java_tests
from tests.redis_server import Server, running_redis


@pytest.fixture(scope="module")
def class_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    classes = tmp_path_factory.mktemp("classes")
    return java_tests.compiled("apex", [RECIPE.tests / "src"], classes)


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize("tested", sorted(path.stem for path in RECIPE.tests.rglob("*Test.java")))
def test_an_operator(tested: str, class_path: str, redis: Server, tmp_path: Path) -> None:
    variables = {"REDIS_PORT": str(redis.port)}
    java_tests.run([f"racetrack.apex.{tested}"], class_path, tmp_path, variables=variables)
