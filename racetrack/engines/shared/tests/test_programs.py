"""Tests of engines that are Java programs of this repository, without running the program:
readiness, configuration, natively and in containers, and the images that contain them."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from racetrack import config as settings
from racetrack.engines import find_engine
from racetrack.engines.shared import java_program
from racetrack.engines.shared.tests.programs import (
    ENGINES,
    NEXMARK,
    RUN_NEXMARK,
    recipe_of,
    service_of,
)
from racetrack.errors import UsageError
from racetrack.install import central
from racetrack.run.checks import require_raced_on
from racetrack.stack.compose.project import environment
from racetrack.stack.service import Context, NotReady
from tests.compose_files import service

every = pytest.mark.parametrize("engine", ENGINES)
DOCKERFILE = Path(java_program.__file__).with_name("Dockerfile")


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


@pytest.mark.slow
@pytest.mark.parametrize("engine", RUN_NEXMARK)
def test_its_program_gets_the_settings_of_a_workload(engine: str) -> None:
    own = settings.load(NEXMARK)
    assert service_of(engine).environment(own).items() >= NEXMARK.items()
    read = {name: value for name, value in NEXMARK.items() if f'"{name}"' in java_of(engine)}
    assert {"WORKLOAD", "NEXMARK_QUERIES"} <= read.keys()
    assert service(engine, **environment(own))["environment"].items() >= read.items()


@pytest.mark.parametrize("engine", RUN_NEXMARK)
def test_a_query_without_a_program_is_refused(engine: str) -> None:
    lacking = settings.load({"WORKLOAD": "nexmark", "NEXMARK_QUERIES": "q0,q9"})
    with pytest.raises(UsageError, match=r"NEXMARK_QUERIES: .* for q9 .*q0, q1, q2, q3, "):
        require_raced_on(find_engine(engine), lacking)


# ---- In containers -------------------------------------------------------------------------------


def text(engine: str) -> str:
    """Return the Dockerfile with one line per instruction, and with this engine's arguments filled
    in."""
    args: Mapping[str, str] = service(engine)["build"]["args"]
    return re.sub(
        r"\$\{(\w+)\}",
        lambda found: args.get(found[1], found[0]),
        DOCKERFILE.read_text().replace("\\\n", " "),
    )


@pytest.mark.slow
@every
def test_it_gets_the_same_as_natively(engine: str) -> None:
    own = settings.load()
    contained = service(engine, **environment(own))["environment"]
    assert service_of(engine).environment(own).items() <= contained.items()


@pytest.mark.slow
@every
def test_it_is_compiled_as_natively(engine: str) -> None:
    (compiled,) = re.findall(r"^RUN java -jar (.*)$", text(engine), re.MULTILINE)
    words = shlex.split(compiled)
    assert tuple(words[1 : 1 + len(central.FLAGS)]) == central.FLAGS


@pytest.mark.slow
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
        options = described["environment"].get("JAVA_TOOL_OPTIONS", "")
        assert f"-Djava.io.tmpdir={folder}" in options.split()
