"""Tests of engines that are Java programs of this repository, without running the program:
readiness and configuration."""

import re
from pathlib import Path

import pytest

from racetrack import config as settings
from racetrack.engines.shared.tests.programs import (
    ENGINES,
    recipe_of,
    service_of,
)
from racetrack.stack.service import Context, NotReady

every = pytest.mark.parametrize("engine", ENGINES)


def java_of(engine: str) -> str:
    files = (file for source in recipe_of(engine).sources for file in source.rglob("*.java"))
    return "".join(file.read_text() for file in files)


@every
def test_it_is_ready_when_its_own_program_reports_it(engine: str, tmp_path: Path) -> None:
    program = service_of(engine)
    context = Context(settings.load(), tmp_path, {engine: tmp_path})
    ready = Path(program.launch(context).env["READY_FILE"])
    with pytest.raises(NotReady):
        program.check(context)
    ready.touch()
    program.check(context)
    program.launch(context)
    with pytest.raises(NotReady):
        program.check(context)


@every
def test_its_program_gets_all_that_it_asks_for(engine: str, tmp_path: Path) -> None:
    required = set(re.findall(r'env\.(?:text|number|properties)\("(\w+)"\)', java_of(engine)))
    assert required
    context = Context(settings.load(), tmp_path, {engine: tmp_path})
    assert service_of(engine).launch(context).env.keys() == required
