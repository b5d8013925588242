"""The part `storm`: Apache Storm with what it needs, and the program that runs its topology."""

from collections.abc import Mapping
from pathlib import Path

from racetrack.install import java
from racetrack.install.recipe import Installs, MavenPart, Recipe

HERE = Path(__file__).parent
PROGRAM, TESTS = HERE / "program", HERE / "tests" / "java"
NAMES = ("STORM_VERSION",)
MAVEN = MavenPart("storm", PROGRAM / "pom.xml", HERE / "maven.sha256", NAMES)
FOR_TESTS = MavenPart("storm-tests", TESTS / "pom.xml", TESTS / "maven.sha256", NAMES)
SHARED = HERE.parent / "shared"
SINK = SHARED / "published_sink"
SOURCES = (
    PROGRAM / "src" / "main" / "java",
    SHARED / "java_program" / "src",
    SINK / "src",
)


def storm(versions: Mapping[str, str]) -> Recipe:
    """Storm, and the program."""
    return java.program(
        MAVEN,
        SOURCES,
        versions,
        why="Apache Storm, an engine under test (Maven Central)",
        download_mb=167,
    )


def for_tests(versions: Mapping[str, str]) -> Recipe:
    """JUnit."""
    return java.jars(
        FOR_TESTS,
        versions,
        why="what tests Storm's stages, and what writes to Redis (Maven Central)",
        download_mb=3,
    )


INSTALLS = Installs(
    parts={"storm": storm},
    on_request={"storm-tests": for_tests},
    versions=NAMES,
    maven=(MAVEN, FOR_TESTS),
)
