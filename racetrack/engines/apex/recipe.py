"""The part `apex`: Apache Apex with what it needs, and the program that runs its application."""

from collections.abc import Mapping
from pathlib import Path

from racetrack.install import java
from racetrack.install.recipe import Installs, MavenPart, Recipe

HERE = Path(__file__).parent
PROGRAM, TESTS = HERE / "program", HERE / "tests" / "java"
NAMES = ("APEX_VERSION",)
MAVEN = MavenPart("apex", PROGRAM / "pom.xml", HERE / "maven.sha256", NAMES)
FOR_TESTS = MavenPart("apex-tests", TESTS / "pom.xml", TESTS / "maven.sha256", NAMES)
SHARED = HERE.parent / "shared"
SINK = SHARED / "published_sink"
SOURCES = (
    PROGRAM / "src" / "main" / "java",
    SHARED / "java_program" / "src",
    SINK / "src",
)


def apex(versions: Mapping[str, str]) -> Recipe:
    """Apex, and the program."""
    return java.program(
        MAVEN,
        SOURCES,
        versions,
        why="Apache Apex, an engine under test (Maven Central)",
        download_mb=60,
    )


def for_tests(versions: Mapping[str, str]) -> Recipe:
    """JUnit."""
    return java.jars(
        FOR_TESTS, versions, why="what tests Apex' operators (Maven Central)", download_mb=3
    )


INSTALLS = Installs(
    parts={"apex": apex},
    on_request={"apex-tests": for_tests},
    versions=NAMES,
    maven=(MAVEN, FOR_TESTS),
)
