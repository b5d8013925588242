"""The queries themselves, in Java, without Kafka: see `java/`."""

from pathlib import Path

import pytest

from racetrack import install
from racetrack.engines.shared.tests import java_tests
from racetrack.engines.spark.recipe import RECIPE
from racetrack.engines.spark.services import sparkmaster

# One JVM for all: Spark takes its time to start.
TESTS = sorted(path.stem for path in RECIPE.tests.rglob("*Test.java"))


@pytest.fixture(scope="module")
def class_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    classes = tmp_path_factory.mktemp("classes")
    return java_tests.compiled("spark", [RECIPE.tests / "src"], classes)


@pytest.mark.slow
def test_the_queries(class_path: str, tmp_path: Path) -> None:
    assert TESTS
    part = install.ensure(["spark"], install.read_versions(), print)["spark"]
    java_tests.run(
        [f"racetrack.spark.{tested}" for tested in TESTS],
        class_path,
        tmp_path,
        options=["-XX:TieredStopAtLevel=1", "-Xmx1g", *sparkmaster.java_options(part)],
    )
