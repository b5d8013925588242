"""Spark in a container: its service, and the image that it is built into."""

import re
import shlex
from pathlib import Path

import pytest

from engines.shared.temurin import TEMURIN
from engines.spark import recipe
from engines.spark.services import spark
from racetrack.settings import load
from racetrack.stack.compose.project import environment
from tests.compose_files import dockerfile_of, image_of, service

DOCKERFILE = (recipe.PROGRAM / "Dockerfile").read_text().replace("\\\n", " ")


@pytest.mark.parametrize("knobs", [{}, {"SPARK_TRIGGER_MS": "7", "SPARK_STATE_STORE": "rocksdb"}])
def test_it_is_told_the_same_as_natively(knobs: dict[str, str]) -> None:
    settings = load(knobs)
    ours = service("spark", **environment(settings))["environment"]
    native = spark.told(settings)
    assert {name: ours[name] for name in native} == native


def test_its_image_is_built_here_on_the_published_one() -> None:
    described = service("spark")
    assert "build" in described
    assert image_of(described) is TEMURIN
    assert dockerfile_of(described) == recipe.PROGRAM / "Dockerfile"


def test_it_is_compiled_as_natively() -> None:
    (compiled,) = re.findall(r"^RUN java -jar (.*)$", DOCKERFILE, re.MULTILINE)
    words = shlex.split(compiled)
    assert tuple(words[1 : 1 + len(recipe.FLAGS)]) == recipe.FLAGS


def test_it_is_started_as_natively() -> None:
    for option in spark.options(Path("/program")):
        assert f'"{option}"' in DOCKERFILE
    for name in (recipe.OPTIONS, recipe.LOG4J):
        assert f"!{name}\n" in (recipe.PROGRAM / ".dockerignore").read_text()
    assert spark.MAIN in DOCKERFILE


def test_what_it_keeps_and_its_readiness_are_in_memory() -> None:
    described = service("spark")
    (mount,) = described["tmpfs"]
    folder = mount.partition(":")[0]
    ready = re.search(r"SPARK_READY_FILE=(\S+)", DOCKERFILE)
    assert ready
    assert ready[1].startswith(f"{folder}/")
    assert described["healthcheck"]["test"][-1] == ready[1]
    assert f"SPARK_STATE_FOLDER={folder}/" in DOCKERFILE
