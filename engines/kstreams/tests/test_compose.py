"""Kafka Streams in a container: its service, and the image that it is built into."""

import re
import shlex

import pytest

from engines.kstreams import recipe
from engines.kstreams.services import kstreams
from engines.shared.temurin import TEMURIN
from racetrack.install import java
from racetrack.settings import load
from racetrack.stack.compose.project import environment
from racetrack.stack.native import jvm
from tests.compose_files import dockerfile_of, image_of, service

DOCKERFILE = (recipe.PROGRAM / "Dockerfile").read_text().replace("\\\n", " ")


@pytest.mark.parametrize("knobs", [{}, {"KSTREAMS_COMMIT_MS": "7", "KSTREAMS_STORE": "in_memory"}])
def test_it_is_told_the_same_as_natively(knobs: dict[str, str]) -> None:
    settings = load(knobs)
    ours = service("kstreams", **environment(settings))["environment"]
    native = kstreams.told(settings)
    assert {name: ours[name] for name in native} == native


def test_its_image_is_built_here_on_the_published_one() -> None:
    described = service("kstreams")
    assert "build" in described
    assert image_of(described) is TEMURIN
    assert dockerfile_of(described) == recipe.PROGRAM / "Dockerfile"


def test_it_is_compiled_as_natively() -> None:
    (compiled,) = re.findall(r"^RUN java -jar (.*)$", DOCKERFILE, re.MULTILINE)
    words = shlex.split(compiled)
    assert tuple(words[1 : 1 + len(java.FLAGS)]) == java.FLAGS


def test_it_says_as_much_as_natively() -> None:
    assert all(f'"{option}"' in DOCKERFILE for option in jvm.only_warnings())
    assert kstreams.MAIN in DOCKERFILE


def test_what_it_keeps_and_its_readiness_are_in_memory() -> None:
    described = service("kstreams")
    (mount,) = described["tmpfs"]
    folder = mount.partition(":")[0]
    ready = re.search(r"KSTREAMS_READY_FILE=(\S+)", DOCKERFILE)
    assert ready
    assert ready[1].startswith(f"{folder}/")
    assert described["healthcheck"]["test"][-1] == ready[1]
    assert f"KSTREAMS_STATE_FOLDER={folder}/" in DOCKERFILE
