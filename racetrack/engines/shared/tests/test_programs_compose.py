"""Engines that are Java programs of ours, in a container: their services, and the images that they
are built into."""

import re
import shlex
from pathlib import Path

import pytest

from racetrack.config import load
from racetrack.engines.shared.tests.programs import (
    ENGINES,
    dockerfile,
    other_settings,
    recipe_of,
    service_of,
)
from racetrack.install import java
from racetrack.stack.compose.project import environment
from tests.compose_files import dockerfile_of, image_of, service
from tests.image_facts import IMAGES

every = pytest.mark.parametrize("engine", ENGINES)


def text(engine: str) -> str:
    """Its Dockerfile, each instruction on one line."""
    return dockerfile(engine).read_text().replace("\\\n", " ")


def files_beside(engine: str) -> list[Path]:
    """Those of its program that the options name that Java is started with."""
    named = " ".join(service_of(engine).options(Path("/program")))
    return [dockerfile(engine).with_name(name) for name in re.findall(r"/program/(\S+)", named)]


@every
@pytest.mark.parametrize("is_set_otherwise", [False, True])
def test_it_is_told_the_same_as_natively(engine: str, is_set_otherwise: bool) -> None:
    overrides = other_settings(engine) if is_set_otherwise else {}
    assert bool(overrides) == is_set_otherwise
    settings = load(overrides)
    ours = service(engine, **environment(settings))["environment"]
    native = service_of(engine).environment(settings)
    assert {name: ours[name] for name in native} == native
    assert {name: native[name] for name in overrides} == overrides


@every
def test_its_image_is_built_here_on_the_published_one(engine: str) -> None:
    described = service(engine)
    assert "build" in described
    assert image_of(described) is IMAGES["eclipse-temurin"]
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
    copies = re.findall(r"^COPY (?!--from)(.+) \S+$", text(engine), re.MULTILINE)
    copied = " ".join(copies).split()
    context = dockerfile(engine).parents[2]
    own, *shared = recipe.sources
    assert own == recipe.program / "src" / "main" / "java"
    assert [context / path for path in copied] == [
        recipe.maven.pom,
        recipe.program / "src",
        *shared,
        *files_beside(engine),
    ]
    ignored = dockerfile(engine).with_name("Dockerfile.dockerignore").read_text()
    assert re.findall(r"^!(\S+)$", ignored, re.MULTILINE) == copied


@every
def test_it_is_started_as_natively(engine: str) -> None:
    for option in service_of(engine).options(Path("/program")):
        assert f'"{option}"' in text(engine)
    assert f'"{service_of(engine).main}"' in text(engine)


@every
def test_what_it_keeps_and_its_readiness_are_in_memory(engine: str) -> None:
    described = service(engine)
    (mount,) = described["tmpfs"]
    folder = mount.partition(":")[0]
    ready = re.search(r"\bREADY_FILE=(\S+)", text(engine))
    assert ready
    assert ready[1].startswith(f"{folder}/")
    assert described["healthcheck"]["test"][-1] == ready[1]
    if service_of(engine).keeps_state:
        assert f" STATE_FOLDER={folder}/" in text(engine)
    else:
        assert f"java.io.tmpdir={folder}" in text(engine)
        assert f"WORKDIR {folder}" in text(engine)
