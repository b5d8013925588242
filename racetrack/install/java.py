"""Recipes of parts that contain Java code of this repository, with libraries from Maven Central.

The compiler is Eclipse's, a jar from Maven Central, so a Java runtime is enough: no JDK is needed.
Standard library only.
"""

import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from racetrack.install import central
from racetrack.install.recipe import MavenPart, Recipe, Site

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


def debezium(versions: Mapping[str, str]) -> Recipe:
    """Return the recipe of two Kafka Connect plugins: `plugins/debezium-connector-mysql/`, and
    `plugins/apicurio-converter/`, which also contains this repository's transform."""
    return central.recipe(
        central.PARTS["debezium"],
        versions,
        why="Debezium and the Avro converter: MySQL's changes into Kafka (Maven Central)",
        download_mb=43,
        place=_plugins,
        content=_content([TRANSFORM]),
    )


def _plugins(site: Site, fetched: Path) -> None:
    plugins = site.folder / "plugins"
    plugins.mkdir()
    central.unpack(site, fetched, plugins)
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
    return central.recipe(
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
    return central.recipe(
        part, versions, why=why, download_mb=download_mb, place=place, content=content
    )


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
    """Return everything that determines a compiled program."""
    files = [path for folder in sources for path in sorted(folder.rglob("*.java"))]
    return [*(path.read_bytes() for path in files), *(flag.encode() for flag in FLAGS)]
