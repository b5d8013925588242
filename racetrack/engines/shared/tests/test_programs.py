"""Tests of engines that are Java programs of this repository, without running the program:
readiness, configuration, and the hints for users of a program that writes to Redis."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from racetrack import config as settings
from racetrack import install
from racetrack.engines import find_engine
from racetrack.engines.shared.tests.programs import (
    ENGINES,
    NEXMARK,
    RUN_NEXMARK,
    recipe_of,
    service_of,
)
from racetrack.errors import UsageError
from racetrack.run.checks import require_raced_on
from racetrack.stack.service import Context, NotReady

every = pytest.mark.parametrize("engine", ENGINES)


def stack() -> Any:
    return SimpleNamespace(
        settings=settings.load({"WORKLOAD": "ads"}),
        endpoints=SimpleNamespace(redis="127.0.0.1:56379"),
    )


@every
def test_it_is_ready_when_its_own_program_reports_it(engine: str, tmp_path: Path) -> None:
    service = service_of(engine)
    context = Context(settings.load(), tmp_path, {engine: tmp_path})
    ready = Path(service.launch(context).env["READY_FILE"])
    with pytest.raises(NotReady):
        service.check(context)
    ready.touch()
    service.check(context)
    service.launch(context)
    with pytest.raises(NotReady):
        service.check(context)


@every
def test_its_program_gets_all_that_it_asks_for(engine: str, tmp_path: Path) -> None:
    files = [file for source in recipe_of(engine).sources for file in source.rglob("*.java")]
    text = "".join(file.read_text() for file in files)
    required = set(re.findall(r'env\.(?:text|number|properties)\("(\w+)"\)', text))
    assert required
    context = Context(settings.load(), tmp_path, {engine: tmp_path})
    assert service_of(engine).launch(context).env.keys() == required


@pytest.mark.parametrize("engine", RUN_NEXMARK)
def test_its_program_gets_the_settings_of_a_workload(engine: str) -> None:
    assert service_of(engine).environment(settings.load(NEXMARK)).items() >= NEXMARK.items()


@pytest.mark.parametrize("engine", RUN_NEXMARK)
def test_a_query_without_a_program_is_refused(engine: str) -> None:
    lacking = settings.load({"WORKLOAD": "nexmark", "NEXMARK_QUERIES": "q0,q9"})
    with pytest.raises(UsageError, match=r"NEXMARK_QUERIES: .* for q9 .*q0, q1, q2, q3, "):
        require_raced_on(find_engine(engine), lacking)


@every
def test_the_versions_that_are_locked_are_those_of_the_settings(engine: str) -> None:
    recipe = recipe_of(engine)
    version = install.read_versions(environ={})[recipe.version]
    for part in recipe.installs.maven:
        assert part.hashes.read_text().startswith(f"# {recipe.version}={version}\n")
