"""The queries themselves, in Java, without Kafka: see `java/`."""

import subprocess
from pathlib import Path

import pytest

from engines.spark import recipe
from engines.spark.services import spark
from racetrack import install
from racetrack.stack.native import jvm

# One JVM for all: Spark takes its time to start.
TESTS = sorted(path.stem for path in recipe.TESTS.rglob("*Test.java"))


@pytest.fixture(scope="module")
def with_spark(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Java's arguments for whatever uses the tests' classes, and Spark's."""
    parts = install.ensure(["spark", "spark-tests"], install.read_versions(), print)
    classes = tmp_path_factory.mktemp("classes")
    program = parts["spark"]
    jars = jvm.class_path(program / "lib", parts["spark-tests"] / "lib")
    (compiler,) = (program / "compiler").glob(recipe.COMPILER)
    java(
        *("-jar", compiler, *recipe.FLAGS, "-cp", f"{program / 'classes'}:{jars}"),
        *("-d", classes, recipe.TESTS / "src"),
    )
    return [*spark.options(program), "-cp", f"{classes}:{program / 'classes'}:{jars}"]


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
def test_the_queries(with_spark: list[str], tmp_path: Path) -> None:
    assert TESTS
    java(
        *("-XX:TieredStopAtLevel=1", "-Xmx1g", f"-Djava.io.tmpdir={tmp_path}", *with_spark),
        *("org.junit.platform.console.ConsoleLauncher", "execute"),
        *(f"--select-class=racetrack.spark.{tested}" for tested in TESTS),
        *("--disable-banner", "--details", "tree", "--disable-ansi-colors", "--fail-if-no-tests"),
    )
