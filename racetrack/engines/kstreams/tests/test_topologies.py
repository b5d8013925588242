"""The topologies themselves, in Java, without Kafka: see `java/`."""

from pathlib import Path

import pytest

from racetrack.engines.kstreams.recipe import RECIPE
from racetrack.engines.shared.tests import java_tests


@pytest.fixture(scope="module")
def class_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    classes = tmp_path_factory.mktemp("classes")
    return java_tests.compiled("kstreams", [RECIPE.tests / "src"], classes)


@pytest.mark.slow
@pytest.mark.parametrize("tested", sorted(path.stem for path in RECIPE.tests.rglob("*Test.java")))
def test_a_topology(tested: str, class_path: str, tmp_path: Path) -> None:
    java_tests.run([f"racetrack.kstreams.{tested}"], class_path, tmp_path)
