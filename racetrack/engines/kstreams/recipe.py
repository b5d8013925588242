"""The part `kstreams`: Kafka Streams with what it needs, and the program that keeps the views."""

from collections.abc import Mapping
from pathlib import Path

from racetrack.install import java
from racetrack.install.recipe import Installs, MavenPart, Recipe

HERE = Path(__file__).parent
PROGRAM, TESTS = HERE / "program", HERE / "tests" / "java"
NAMES = ("KSTREAMS_VERSION",)
MAVEN = MavenPart("kstreams", PROGRAM / "pom.xml", HERE / "maven.sha256", NAMES)
FOR_TESTS = MavenPart("kstreams-tests", TESTS / "pom.xml", TESTS / "maven.sha256", NAMES)
SHARED = HERE.parent / "shared"
SOURCES = (
    PROGRAM / "src" / "main" / "java",
    SHARED / "java_program" / "src",
    SHARED / "upsert" / "src",
)


def kstreams(versions: Mapping[str, str]) -> Recipe:
    """Kafka Streams, and the program."""
    return java.program(
        MAVEN,
        SOURCES,
        versions,
        why="Kafka Streams, an engine under test (Maven Central)",
        download_mb=102,
    )


def for_tests(versions: Mapping[str, str]) -> Recipe:
    """What runs a topology without Kafka, and JUnit."""
    return java.jars(
        FOR_TESTS,
        versions,
        why="what tests Kafka Streams' topologies without Kafka (Maven Central)",
        download_mb=4,
    )


INSTALLS = Installs(
    parts={"kstreams": kstreams},
    on_request={"kstreams-tests": for_tests},
    versions=NAMES,
    maven=(MAVEN, FOR_TESTS),
)
