"""Tests that run the engines' own Java tests (in `tests/java/` of each engine) against the
installed program, without Kafka. Tests of programs that write to Redis use a real Redis."""

import os
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from racetrack import install
from racetrack.engines.shared.java_program.recipe import PROGRAM
from racetrack.engines.shared.tests.programs import ENGINES, recipe_of, service_of
from racetrack.install.central import COMPILER, FLAGS
from racetrack.stack import jvm
from racetrack.workloads.contract import find_workload
from tests.json_messages import VALID, Row
from tests.redis_server import Server, running_redis


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_program(engine: str, redis: Server, tmp_path: Path) -> None:
    """Use one JVM for all classes, because Spark is slow to start."""
    recipe, classes, messages = recipe_of(engine), tmp_path / "classes", tmp_path / "messages"
    messages.write_text("".join(map(_as_line, VALID)))
    shared = (source.parent / "tests" for source in (PROGRAM, *recipe.shared))
    folders = [recipe.tests / "src", *(folder for folder in shared if folder.is_dir())]
    tested = [file.relative_to(folder) for folder in folders for file in folder.rglob("*Test.java")]

    parts = install.ensure([engine, f"{engine}-tests"], install.read_versions(), print)
    program = parts[engine]
    jars = jvm.class_path(program / "lib", parts[f"{engine}-tests"] / "lib")
    class_path = f"{program / 'classes'}:{jars}"
    (compiler,) = (program / "compiler").glob(COMPILER)
    java("-jar", compiler, *FLAGS, "-cp", class_path, "-d", classes, *folders)
    java(
        f"-Djava.io.tmpdir={tmp_path}",
        *service_of(engine).options(program),
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
        "-XX:TieredStopAtLevel=1",
        "-Xmx1g",
        "-cp",
        f"{classes}:{class_path}",
        "org.junit.platform.console.ConsoleLauncher",
        "execute",
        *(f"--select-class={'.'.join(file.with_suffix('').parts)}" for file in tested),
        "--disable-banner",
        "--details=tree",
        "--disable-ansi-colors",
        "--fail-if-no-tests",
        REDIS_PORT=str(redis.port),
        JSON_MESSAGES=str(messages),
    )


def _as_line(row: Row) -> str:
    """Return a message as pageview and as ad event, its text, each in Base64, its due time
    and user id."""
    topics = (find_workload(name).topic for name in ("shop", "ads"))
    values = (*(row.of(topic) for topic in topics), row.text.encode())
    return " ".join(
        (*(b64encode(value).decode() for value in values), f"{row.due_ms} {row.user_id}\n")
    )


def java(*arguments: str | Path, **variables: str) -> None:
    """Run Java with these arguments and environment variables; if it fails, show its output."""
    done = subprocess.run(
        [str(jvm.java()), *map(str, arguments)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
