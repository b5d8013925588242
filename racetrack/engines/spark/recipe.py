"""The part `spark`: Spark with all that it brings, and the program that keeps the views."""

from collections.abc import Mapping
from pathlib import Path

from racetrack.install import java
from racetrack.install.recipe import Installs, MavenPart, Recipe

HERE = Path(__file__).parent
PROGRAM, TESTS = HERE / "program", HERE / "tests" / "java"
NAMES = ("SPARK_VERSION",)
MAVEN = MavenPart("spark", PROGRAM / "pom.xml", HERE / "maven.sha256", NAMES)
FOR_TESTS = MavenPart("spark-tests", TESTS / "pom.xml", TESTS / "maven.sha256", NAMES)
SHARED = HERE.parent / "shared"
SOURCES = (
    PROGRAM / "src" / "main" / "java",
    SHARED / "java_program" / "src",
    SHARED / "upsert" / "src",
)
# What Java is started with.
OPTIONS, LOG4J = "java.options", "log4j2.properties"


def spark(versions: Mapping[str, str]) -> Recipe:
    """Spark, the program, and what Java is started with."""
    return java.program(
        MAVEN,
        SOURCES,
        versions,
        why="Apache Spark, an engine under test (Maven Central)",
        download_mb=292,
        beside=[PROGRAM / name for name in (OPTIONS, LOG4J)],
    )


def for_tests(versions: Mapping[str, str]) -> Recipe:
    """JUnit."""
    return java.jars(
        FOR_TESTS,
        versions,
        why="what tests Spark's queries without Kafka (Maven Central)",
        download_mb=3,
    )


INSTALLS = Installs(
    parts={"spark": spark},
    on_request={"spark-tests": for_tests},
    versions=NAMES,
    maven=(MAVEN, FOR_TESTS),
)
