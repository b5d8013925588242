"""The topologies themselves, in Java, without Kafka: see `java/`."""

import subprocess
from pathlib import Path

import pytest

from engines.kstreams import recipe
from racetrack import install
from racetrack.stack.native import jvm

JUNIT = "junit-platform-console-standalone-*.jar"


@pytest.fixture(scope="module")
def class_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the tests run with, they themselves first."""
    parts = install.ensure(["kstreams", "kstreams-tests"], install.read_versions(), print)
    classes = tmp_path_factory.mktemp("classes")
    program = parts["kstreams"]
    jars = jvm.class_path(program / "lib", parts["kstreams-tests"] / "lib")
    (compiler,) = (program / "compiler").glob(recipe.COMPILER)
    java(
        *("-jar", compiler, *recipe.FLAGS, "-cp", f"{program / 'classes'}:{jars}"),
        *("-d", classes, recipe.TESTS / "src"),
    )
    return f"{classes}:{program / 'classes'}:{jars}"


def java(*arguments: str | Path) -> None:
    done = subprocess.run(
        [str(jvm.java()), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("tested", sorted(path.stem for path in recipe.TESTS.rglob("*Test.java")))
def test_a_topology(tested: str, class_path: str, tmp_path: Path) -> None:
    java(
        *(f"-Djava.io.tmpdir={tmp_path}", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"),
        *("-cp", class_path, "org.junit.platform.console.ConsoleLauncher", "execute"),
        *("--select-class", f"racetrack.kstreams.{tested}", "--disable-banner"),
        *("--details", "tree", "--disable-ansi-colors", "--fail-if-no-tests"),
    )
