"""The part `spark`: Spark with all that it brings, from Maven Central, and the program that is
compiled against it. The compiler is Eclipse's, a jar from there too: a Java that only runs programs
is enough."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from racetrack.install import central
from racetrack.install.recipe import Installs, MavenPart, Recipe, Site

HERE = Path(__file__).parent
PROGRAM, TESTS = HERE / "program", HERE / "tests" / "java"
NAMES = ("SPARK_VERSION",)
MAVEN = MavenPart("spark", PROGRAM / "pom.xml", HERE / "maven.sha256", NAMES)
FOR_TESTS = MavenPart("spark-tests", TESTS / "pom.xml", TESTS / "maven.sha256", NAMES)
SOURCES = PROGRAM / "src" / "main" / "java"
COMPILER = "ecj-*.jar"
# What Java is started with.
OPTIONS, LOG4J = "java.options", "log4j2.properties"
# What the program says of itself: no time of day and no path of this machine goes into a class.
FLAGS = ("-17", "-encoding", "UTF-8", "-proc:none", "-parameters", "-g:source,lines", "-nowarn")


def spark(versions: Mapping[str, str]) -> Recipe:
    """`lib/*.jar`: Spark; `classes/`: the program; `compiler/`: what compiled it; beside them
    what Java is started with."""
    asked = {name: versions[name] for name in NAMES}

    def build(site: Site) -> str:
        jars = site.folder / "lib"
        central.fetch(site, MAVEN, asked, jars)
        central.check(site, MAVEN, asked, jars)
        compiler = site.folder / "compiler"
        compiler.mkdir()
        (jar,) = jars.glob(COMPILER)
        jar = jar.rename(compiler / jar.name)
        site.run(
            *("java", "-jar", jar, *FLAGS, "-cp", ":".join(map(str, sorted(jars.glob("*.jar"))))),
            *("-d", site.folder / "classes", SOURCES),
            doing="compiling",
        )
        for name in (OPTIONS, LOG4J):
            shutil.copy(PROGRAM / name, site.folder)
        return " ".join(asked.values())

    return Recipe(
        part="spark",
        label="-".join(asked.values()),
        why="Apache Spark, an engine under test (Maven Central)",
        download_mb=292,
        needs=("java", "mvn"),
        content=(
            MAVEN.pom.read_bytes(),
            MAVEN.hashes.read_bytes(),
            *(path.read_bytes() for path in sorted(SOURCES.rglob("*.java"))),
            *(flag.encode() for flag in FLAGS),
            *((PROGRAM / name).read_bytes() for name in (OPTIONS, LOG4J)),
        ),
        build=build,
    )


def for_tests(versions: Mapping[str, str]) -> Recipe:
    """`lib/*.jar`: JUnit."""
    asked = {name: versions[name] for name in NAMES}

    def build(site: Site) -> str:
        central.fetch(site, FOR_TESTS, asked, site.folder / "lib")
        central.check(site, FOR_TESTS, asked, site.folder / "lib")
        return " ".join(asked.values())

    return Recipe(
        part="spark-tests",
        label="-".join(asked.values()),
        why="what tests Spark's queries without Kafka (Maven Central)",
        download_mb=3,
        needs=("java", "mvn"),
        content=(FOR_TESTS.pom.read_bytes(), FOR_TESTS.hashes.read_bytes()),
        build=build,
    )


INSTALLS = Installs(
    parts={"spark": spark},
    on_request={"spark-tests": for_tests},
    versions=NAMES,
    maven=(MAVEN, FOR_TESTS),
)
