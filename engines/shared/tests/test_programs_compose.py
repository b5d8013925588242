"""Engines whose program writes to Redis, in a container: their services, and the images that they
are built into."""

import re
import shlex

import pytest

from engines.shared.temurin import TEMURIN
from engines.shared.tests.programs import ENGINES, dockerfile, recipe_of, service_of
from racetrack.install import java
from racetrack.settings import load
from racetrack.stack.compose.project import environment
from racetrack.stack.native import jvm
from tests.compose_files import dockerfile_of, image_of, service

every = pytest.mark.parametrize("engine", ENGINES)


def text(engine: str) -> str:
    """Its Dockerfile, each instruction on one line."""
    return dockerfile(engine).read_text().replace("\\\n", " ")


@every
@pytest.mark.parametrize("knobs", [{}, {"FLUSH_MS": "7", "GUARANTEE": "at_most_once"}])
def test_it_is_told_the_same_as_natively(engine: str, knobs: dict[str, str]) -> None:
    settings = load({f"{engine.upper()}_{name}": value for name, value in knobs.items()})
    ours = service(engine, **environment(settings))["environment"]
    native = service_of(engine).told(settings)
    assert {name: ours[name] for name in native} == native
    assert set(knobs.values()) <= set(native.values())


@every
def test_its_image_is_built_here_on_the_published_one(engine: str) -> None:
    described = service(engine)
    assert "build" in described
    assert image_of(described) is TEMURIN
    assert dockerfile_of(described) == dockerfile(engine)


@every
def test_it_is_compiled_as_natively(engine: str) -> None:
    (compiled,) = re.findall(r"^RUN java -jar (.*)$", text(engine), re.MULTILINE)
    words = shlex.split(compiled)
    assert tuple(words[1 : 1 + len(java.FLAGS)]) == java.FLAGS


@every
def test_what_it_is_compiled_from_gets_to_the_builder(engine: str) -> None:
    """And nothing else does, as the file of what is left out has it."""
    recipe = recipe_of(engine)
    copied = re.findall(r"^COPY (?!--from)(\S+)", text(engine), re.MULTILINE)
    context = dockerfile(engine).parents[2]
    assert [context / path for path in copied] == [
        recipe.MAVEN.pom,
        recipe.PROGRAM / "src",
        recipe.SINK / "src",
    ]
    assert recipe.SOURCES == (recipe.PROGRAM / "src" / "main" / "java", recipe.SINK / "src")
    ignored = dockerfile(engine).with_name("Dockerfile.dockerignore").read_text()
    assert re.findall(r"^!(\S+)$", ignored, re.MULTILINE) == copied


@every
def test_it_says_as_much_as_natively(engine: str) -> None:
    assert all(f'"{option}"' in text(engine) for option in jvm.only_warnings())
    assert f'"{service_of(engine).main}"' in text(engine)


@every
def test_what_it_keeps_and_its_readiness_are_in_memory(engine: str) -> None:
    described = service(engine)
    (mount,) = described["tmpfs"]
    folder = mount.partition(":")[0]
    ready = re.search(r"READY_FILE=(\S+)", text(engine))
    assert ready
    assert ready[1].startswith(f"{folder}/")
    assert described["healthcheck"]["test"][-1] == ready[1]
    assert f"java.io.tmpdir={folder}" in text(engine)
    assert f"WORKDIR {folder}" in text(engine)
