"""The part `kstreams`: Kafka Streams with what it needs, from Maven Central, and the program that
is compiled against it. The compiler is Eclipse's, a jar from there too: a Java that only runs
programs is enough."""

from collections.abc import Mapping
from pathlib import Path

from racetrack.install import central
from racetrack.install.recipe import Installs, MavenPart, Recipe, Site

HERE = Path(__file__).parent
PROGRAM, TESTS = HERE / "program", HERE / "tests" / "java"
NAMES = ("KSTREAMS_VERSION",)
MAVEN = MavenPart("kstreams", PROGRAM / "pom.xml", HERE / "maven.sha256", NAMES)
FOR_TESTS = MavenPart("kstreams-tests", TESTS / "pom.xml", TESTS / "maven.sha256", NAMES)
SOURCES = PROGRAM / "src" / "main" / "java"
COMPILER = "ecj-*.jar"
# What the program says of itself: no time of day and no path of this machine goes into a class.
FLAGS = ("-17", "-encoding", "UTF-8", "-proc:none", "-parameters", "-g:source,lines", "-nowarn")


def kstreams(versions: Mapping[str, str]) -> Recipe:
    """`lib/*.jar`: Kafka Streams; `classes/`: the program; `compiler/`: what compiled it."""
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
        return " ".join(asked.values())

    return Recipe(
        part="kstreams",
        label="-".join(asked.values()),
        why="Kafka Streams, an engine under test (Maven Central)",
        download_mb=102,
        needs=("java", "mvn"),
        content=(
            MAVEN.pom.read_bytes(),
            MAVEN.hashes.read_bytes(),
            *(path.read_bytes() for path in sorted(SOURCES.rglob("*.java"))),
            *(flag.encode() for flag in FLAGS),
        ),
        build=build,
    )


def for_tests(versions: Mapping[str, str]) -> Recipe:
    """`lib/*.jar`: what runs a topology without Kafka, and JUnit."""
    asked = {name: versions[name] for name in NAMES}

    def build(site: Site) -> str:
        central.fetch(site, FOR_TESTS, asked, site.folder / "lib")
        central.check(site, FOR_TESTS, asked, site.folder / "lib")
        return " ".join(asked.values())

    return Recipe(
        part="kstreams-tests",
        label="-".join(asked.values()),
        why="what tests Kafka Streams' topologies without Kafka (Maven Central)",
        download_mb=4,
        needs=("java", "mvn"),
        content=(FOR_TESTS.pom.read_bytes(), FOR_TESTS.hashes.read_bytes()),
        build=build,
    )


INSTALLS = Installs(
    parts={"kstreams": kstreams},
    on_request={"kstreams-tests": for_tests},
    versions=NAMES,
    maven=(MAVEN, FOR_TESTS),
)
