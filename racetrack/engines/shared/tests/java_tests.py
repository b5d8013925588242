"""Runs an engine's tests that are in Java, against the program that is installed."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from racetrack import install
from racetrack.install.central import COMPILER, FLAGS
from racetrack.stack import jvm


def compiled(engine: str, sources: Sequence[Path], classes: Path) -> str:
    """Compile the tests into `classes`; the class path that they run with, they themselves
    first."""
    parts = install.ensure([engine, f"{engine}-tests"], install.read_versions(), print)
    program = parts[engine]
    jars = jvm.class_path(program / "lib", parts[f"{engine}-tests"] / "lib")
    (compiler,) = (program / "compiler").glob(COMPILER)
    _java(
        "-jar",
        compiler,
        *FLAGS,
        "-cp",
        f"{program / 'classes'}:{jars}",
        "-d",
        classes,
        *sources,
    )
    return f"{classes}:{program / 'classes'}:{jars}"


def run(
    tested: Sequence[str],
    class_path: str,
    work: Path,
    *,
    options: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> None:
    """Run classes of tests, given by their full names, in one JVM with these options and variables
    of the environment."""
    _java(
        f"-Djava.io.tmpdir={work}",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
        *options,
        "-cp",
        class_path,
        "org.junit.platform.console.ConsoleLauncher",
        "execute",
        *(f"--select-class={name}" for name in tested),
        "--disable-banner",
        "--details=tree",
        "--disable-ansi-colors",
        "--fail-if-no-tests",
        variables=variables,
    )


def _java(*arguments: str | Path, variables: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(
        [str(jvm.java()), *map(str, arguments)],
        env={**os.environ, **(variables or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
