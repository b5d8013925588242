"""Tests of engines that are Java programs of this repository, in containers: their services, and
the images that contain them."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from racetrack.config import load
from racetrack.engines.shared import java_program
from racetrack.engines.shared.tests.programs import (
    ENGINES,
    NEXMARK,
    RUN_NEXMARK,
    other_settings,
    recipe_of,
    service_of,
)
from racetrack.install import central
from racetrack.stack.compose.project import environment
from tests.compose_files import service

pytestmark = pytest.mark.slow

every = pytest.mark.parametrize("engine", ENGINES)


DOCKERFILE = Path(java_program.__file__).with_name("Dockerfile")


def text(engine: str) -> str:
    """Return the Dockerfile with one line per instruction, and with this engine's arguments filled
    in."""
    args: Mapping[str, str] = service(engine)["build"]["args"]
    return re.sub(
        r"\$\{(\w+)\}",
        lambda found: args.get(found[1], found[0]),
        DOCKERFILE.read_text().replace("\\\n", " "),
    )


def copied(engine: str) -> list[Path]:
    """Return the files and folders that the Dockerfile copies from the repository, in order."""
    context = Path(service(engine)["build"]["context"])
    sources = re.findall(r"^COPY (?!--from)(.+) \S+$", text(engine), re.MULTILINE)
    return [path for pattern in " ".join(sources).split() for path in context.glob(pattern)]


@every
@pytest.mark.parametrize("is_set_otherwise", [False, True])
def test_it_gets_the_same_as_natively(engine: str, is_set_otherwise: bool) -> None:
    overrides = other_settings(engine) if is_set_otherwise else {}
    assert bool(overrides) == is_set_otherwise
    settings = load(overrides)
    ours = service(engine, **environment(settings))["environment"]
    native = service_of(engine).environment(settings)
    assert {name: ours[name] for name in native} == native
    assert {name: native[name] for name in overrides} == overrides


@pytest.mark.parametrize("engine", RUN_NEXMARK)
def test_it_gets_the_settings_of_a_workload(engine: str) -> None:
    files = (file for source in recipe_of(engine).sources for file in source.rglob("*.java"))
    text = "".join(file.read_text() for file in files)
    read = {name: value for name, value in NEXMARK.items() if f'"{name}"' in text}
    assert {"WORKLOAD", "NEXMARK_QUERIES"} <= read.keys()
    ours = service(engine, **environment(load(NEXMARK)))["environment"]
    assert ours.items() >= read.items()


@every
def test_it_is_compiled_as_natively(engine: str) -> None:
    (compiled,) = re.findall(r"^RUN java -jar (.*)$", text(engine), re.MULTILINE)
    words = shlex.split(compiled)
    assert tuple(words[1 : 1 + len(central.FLAGS)]) == central.FLAGS


@every
def test_what_it_is_compiled_from_gets_to_the_builder(engine: str) -> None:
    recipe = recipe_of(engine)
    own, *shared = recipe.sources
    assert own == recipe.program / "src" / "main" / "java"
    beside = [recipe.program / name for name in recipe.beside]
    needed = [recipe.maven.pom, recipe.program / "src", *shared, recipe.maven.pom, *beside]
    assert copied(engine) == needed
    context = Path(service(engine)["build"]["context"])
    ignored = DOCKERFILE.with_name("Dockerfile.dockerignore").read_text()
    kept = re.findall(r"^!(\S+)$", ignored, re.MULTILINE)
    assert set(needed) <= {path for pattern in kept for path in context.glob(pattern)}


@every
def test_what_it_keeps_and_its_readiness_are_in_memory(engine: str) -> None:
    described = service(engine)
    (mount,) = described["tmpfs"]
    folder = mount.partition(":")[0]
    ready = re.search(r"\bREADY_FILE=(\S+)", text(engine))
    assert ready
    assert ready[1].startswith(f"{folder}/")
    assert described["healthcheck"]["test"][-1] == ready[1]
    assert f"WORKDIR {folder}" in text(engine)
    if service_of(engine).keeps_state:
        assert f" STATE_FOLDER={folder}/" in text(engine)
    else:
        assert f"-Djava.io.tmpdir={folder}" in options_in(engine, "JAVA_TOOL_OPTIONS")


def options_in(engine: str, variable: str) -> list[str]:
    return str(service(engine)["environment"].get(variable, "")).split()
