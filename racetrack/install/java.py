"""Parts for an engine's own Java program: what it needs from Maven Central, and the program itself.
The compiler is Eclipse's, a jar from there too: a Java that only runs programs is enough. Standard
library only."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from racetrack.install import central
from racetrack.install.recipe import MavenPart, Recipe, Site

COMPILER = "ecj-*.jar"
# What a program says of itself: no time of day and no path of this machine goes into a class.
FLAGS = ("-17", "-encoding", "UTF-8", "-proc:none", "-parameters", "-g:source,lines", "-nowarn")


def jars(part: MavenPart, versions: Mapping[str, str], *, why: str, download_mb: int) -> Recipe:
    """`lib/*.jar`, and no more."""
    asked = {name: versions[name] for name in part.versions}

    def build(site: Site) -> str:
        central.fetch(site, part, asked, site.folder / "lib")
        central.check(site, part, asked, site.folder / "lib")
        return " ".join(asked.values())

    return Recipe(
        part=part.name,
        label="-".join(asked.values()),
        why=why,
        download_mb=download_mb,
        needs=("java", "mvn"),
        content=(part.pom.read_bytes(), part.hashes.read_bytes()),
        build=build,
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
    """`lib/*.jar`: what it runs with; `classes/`: the program; `compiler/`: what compiled it; and
    files that lie beside these."""
    asked = {name: versions[name] for name in part.versions}

    def build(site: Site) -> str:
        jars = site.folder / "lib"
        central.fetch(site, part, asked, jars)
        central.check(site, part, asked, jars)
        compiler = site.folder / "compiler"
        compiler.mkdir()
        (jar,) = jars.glob(COMPILER)
        jar = jar.rename(compiler / jar.name)
        site.run(
            *("java", "-jar", jar, *FLAGS, "-cp", ":".join(map(str, sorted(jars.glob("*.jar"))))),
            *("-d", site.folder / "classes"),
            *sources,
            doing="compiling",
        )
        for file in beside:
            shutil.copy(file, site.folder)
        return " ".join(asked.values())

    return Recipe(
        part=part.name,
        label="-".join(asked.values()),
        why=why,
        download_mb=download_mb,
        needs=("java", "mvn"),
        content=(
            part.pom.read_bytes(),
            part.hashes.read_bytes(),
            *(path.read_bytes() for folder in sources for path in sorted(folder.rglob("*.java"))),
            *(flag.encode() for flag in FLAGS),
            *(file.read_bytes() for file in beside),
        ),
        build=build,
    )
