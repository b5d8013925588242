"""Recipes of parts from Maven Central: Kafka with Connect, the schema registry, Debezium, and Java
programs of this repository with their libraries.

The compiler is Eclipse's, a jar from Maven Central, so a Java runtime is enough: no JDK is needed.
"""

import hashlib
import shutil
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from racetrack import environment
from racetrack.errors import SetupError
from racetrack.install import maven_user
from racetrack.install.recipe import MavenPart, Recipe, Site

MAVEN = Path(__file__).with_name("maven")
PARTS = {
    name: MavenPart(name, MAVEN / name / "pom.xml", MAVEN / f"{name}.sha256", versions)
    for name, versions in {
        "kafka": ("KAFKA_VERSION",),
        "registry": ("APICURIO_VERSION",),
        "debezium": ("DEBEZIUM_VERSION", "APICURIO_VERSION"),
    }.items()
}
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"

# Maven runs for a few seconds only, so these options halve its CPU time.
MAVEN_OPTS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# The registry's web pages: 24 MB that no program reads.
PAGES = "lib/io.apicurio.apicurio-registry-ui-*.jar"

COMPILER = "ecj-*.jar"
# These flags make compiled classes reproducible: they contain no time and no path of this machine.
FLAGS = ("-17", "-encoding", "UTF-8", "-proc:none", "-parameters", "-g:source,lines", "-nowarn")

TRANSFORM = Path(__file__).parents[2] / "debezium/transform/src"
# With these service files Connect finds its plugins without scanning every class
# (plugin.discovery=service_load).
SERVICES = {
    "storage.Converter": "io.apicurio.registry.utils.converter.AvroConverter",
    "transforms.Transformation": "racetrack.debezium.KeepNulls",
}


def kafka(versions: Mapping[str, str]) -> Recipe:
    """Return the recipe that installs Kafka: broker, tools and the Connect runtime in `libs/`."""
    return recipe(
        PARTS["kafka"],
        versions,
        why="Apache Kafka: broker, tools and Connect (Maven Central)",
        download_mb=54,
        place=lambda site, fetched: fetched.rename(site.folder / "libs"),
    )


def registry(versions: Mapping[str, str]) -> Recipe:
    """Return the recipe of Apicurio Registry, unpacked: `*-runner.jar` and its libraries."""
    return recipe(
        PARTS["registry"],
        versions,
        why="Apicurio Registry: the schemas of what comes from MySQL (Maven Central)",
        download_mb=142,
        place=_registry,
        revision=b"without pages",
    )


def recipe(
    part: MavenPart,
    all_versions: Mapping[str, str],
    *,
    why: str,
    download_mb: int,
    place: Callable[[Site, Path], object],
    content: Sequence[bytes] = (),
    revision: bytes = b"",
) -> Recipe:
    """Return the recipe of a part from Maven Central. `place` moves the fetched files to
    `site.folder`. `content` is further input of `place`, such as source files."""
    versions = {name: all_versions[name] for name in part.versions}

    def build(site: Site) -> str:
        fetched = site.scratch / "fetched"
        fetch(site, part, versions, fetched)
        check(site, part, versions, fetched)
        place(site, fetched)
        return " ".join(versions.values())

    return Recipe(
        part=part.name,
        label="-".join(versions.values()),
        why=why,
        download_mb=download_mb,
        needs=("java", "mvn"),
        content=(part.pom.read_bytes(), part.hashes.read_bytes(), *content),
        build=build,
        revision=revision,
    )


def fetch(site: Site, part: MavenPart, versions: Mapping[str, str], into: Path) -> None:
    """Let Maven copy the dependencies in the part's pom to a folder, and verify their checksums."""
    environ = environment.of_download()
    options = [MAVEN_OPTS, *maven_user.jvm_options(environ)]
    site.run(
        "mvn",
        "--batch-mode",
        "--strict-checksums",
        "--no-transfer-progress",
        *maven_user.arguments(environ, site.scratch),
        "--file",
        part.pom,
        COPY,
        # Two Mavens must not write to one local repository at the same time.
        f"-Dmaven.repo.local={site.scratch / 'maven'}",
        f"-DoutputDirectory={into}",
        "-DincludeScope=runtime",
        *(f"-D{name}={v}" for name, v in versions.items()),
        doing="fetching from Maven Central",
        env={
            "MAVEN_OPTS": " ".join(options),
            # Otherwise Maven's launcher reads ~/.mavenrc, and .mvn in any folder above the pom.
            "MAVEN_SKIP_RC": "true",
            "MAVEN_BASEDIR": str(site.scratch),
        },
    )


def check(site: Site, part: MavenPart, versions: Mapping[str, str], folder: Path) -> None:
    """Compare the hashes of all files in `folder` with the part's committed list of hashes.

    If there are no locked hashes for these versions, only report that.

    Raises:
        SetupError: a file differs, is missing, or is not in the list; the message names the file.
    """
    lock = part.hashes
    header, *lines = lock.read_text().splitlines()
    if header != lock_header(versions):
        given = ", ".join(f"{name}={version}" for name, version in versions.items())
        site.say(
            f"{part.name}: {given} is not the locked version ({header.removeprefix('# ')}), "
            "so only Maven's own checksums were checked"
        )
        return
    promised = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    arrived = digests(folder)
    wrong = [
        f"{name}: sha256 {arrived.get(name, 'missing')}, {lock.name} says {promised.get(name)}"
        for name in sorted(promised.keys() | arrived.keys())
        if promised.get(name) != arrived.get(name)
    ]
    if wrong:
        raise SetupError(
            f"{part.name}: downloaded files differ from the locked ones:\n    "
            + "\n    ".join(wrong)
            + "\n  It was not installed. Try again; if the error remains, the repository that your"
            " Maven uses serves other files than Maven Central."
        )


def lock_header(versions: Mapping[str, str]) -> str:
    """Return the first line of a list of hashes, which contains the versions of the files."""
    return "# " + " ".join(f"{name}={version}" for name, version in versions.items())


def digests(folder: Path) -> dict[str, str]:
    """Return file name → sha256 in hex."""
    hashes = {}
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            hashes[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return hashes


def _registry(site: Site, fetched: Path) -> None:
    unpack(site, fetched, site.folder)
    for jar in site.folder.glob(PAGES):
        jar.unlink()


def unpack(site: Site, fetched: Path, target: Path) -> None:
    """Unpack the fetched archives."""
    for archive in fetched.glob("*.tar.gz"):
        site.run("tar", "-xzf", archive, "-C", target, "--no-same-owner", doing="unpacking")


def debezium(versions: Mapping[str, str]) -> Recipe:
    """Return the recipe of two Kafka Connect plugins: `plugins/debezium-connector-mysql/`, and
    `plugins/apicurio-converter/`, which also contains this repository's transform."""
    return recipe(
        PARTS["debezium"],
        versions,
        why="Debezium and the Avro converter: MySQL's changes into Kafka (Maven Central)",
        download_mb=43,
        place=_plugins,
        content=_content([TRANSFORM]),
    )


def _plugins(site: Site, fetched: Path) -> None:
    plugins = site.folder / "plugins"
    plugins.mkdir()
    unpack(site, fetched, plugins)
    (compiler,) = fetched.glob(COMPILER)
    connect = sorted((plugins / "debezium-connector-mysql").glob("*.jar"))
    _compile(site, compiler, connect, [TRANSFORM], fetched / "classes")
    compiler.unlink()
    converter = plugins / "apicurio-converter"
    converter.mkdir()
    for jar in fetched.glob("*.jar"):
        jar.rename(converter / jar.name)
    with zipfile.ZipFile(converter / "racetrack-connect.jar", "w") as ours:
        for file in sorted((fetched / "classes").rglob("*.class")):
            ours.write(file, file.relative_to(fetched / "classes"))
        for interface, name in SERVICES.items():
            ours.writestr(f"META-INF/services/org.apache.kafka.connect.{interface}", f"{name}\n")


def jars(part: MavenPart, versions: Mapping[str, str], *, why: str, download_mb: int) -> Recipe:
    """Return the recipe of a part that contains only `lib/*.jar`."""
    return recipe(
        part,
        versions,
        why=why,
        download_mb=download_mb,
        place=lambda site, fetched: fetched.rename(site.folder / "lib"),
    )


def program(
    part: MavenPart,
    sources: Sequence[Path],
    versions: Mapping[str, str],
    *,
    why: str,
    download_mb: int,
    beside: Sequence[Path] = (),
) -> Recipe:
    """Return the recipe of a Java program.

    The part contains the program's libraries in `lib/`, the compiled program in `classes/`, the
    compiler in `compiler/`, and copies of the files `beside`.
    """

    def place(site: Site, fetched: Path) -> None:
        jars, compiler = fetched.rename(site.folder / "lib"), site.folder / "compiler"
        compiler.mkdir()
        (jar,) = jars.glob(COMPILER)
        jar = jar.rename(compiler / jar.name)
        _compile(site, jar, sorted(jars.glob("*.jar")), sources, site.folder / "classes")
        for file in beside:
            shutil.copy(file, site.folder)

    content = (*_content(sources), *(file.read_bytes() for file in beside))
    return recipe(part, versions, why=why, download_mb=download_mb, place=place, content=content)


def _compile(
    site: Site, compiler: Path, jars: Sequence[Path], sources: Sequence[Path], classes: Path
) -> None:
    class_path = ":".join(map(str, jars))
    site.run(
        "java",
        "-jar",
        compiler,
        *FLAGS,
        "-cp",
        class_path,
        "-d",
        classes,
        *sources,
        doing="compiling",
    )


def _content(sources: Sequence[Path]) -> list[bytes]:
    """Return everything that determines a compiled program, for the hash of its part."""
    files = [path for folder in sources for path in sorted(folder.rglob("*.java"))]
    return [*(path.read_bytes() for path in files), *(flag.encode() for flag in FLAGS)]
