"""Recipe of the installed component `flink`: the jars of Flink's distribution, from its PyPI wheel,
and further jars that are not in the wheel, from Maven Central."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from racetrack.install import central, pypi
from racetrack.install.image import Image
from racetrack.install.recipe import Installs, MavenPart, PypiLock, Recipe, Site

HERE = Path(__file__).parent
LOCK = HERE / "requirements.lock"
NAMES = ("FLINK_VERSION", "FLINK_KAFKA_VERSION")
MAVEN = MavenPart("flink", HERE / "pom.xml", HERE / "maven.sha256", NAMES)
PACKAGE, JARS = "apache-flink-libraries", "pyflink/lib"
PROGRAM = HERE / "sql-client.sh"


def flink(versions: Mapping[str, str]) -> Recipe:
    """Return the recipe. It installs the SQL gateway with its dependencies as `lib/*.jar`, and the
    SQL client as `bin/sql-client.sh`."""
    asked = {name: versions[name] for name in NAMES}

    def build(site: Site) -> str:
        jars = site.folder / "lib"
        central.fetch(site, MAVEN, asked, jars)
        central.check(site, MAVEN, asked, jars)
        _distribution(site, asked["FLINK_VERSION"], jars)
        program = site.folder / "bin" / PROGRAM.name
        program.parent.mkdir()
        shutil.copyfile(PROGRAM, program)
        program.chmod(0o755)
        return " ".join(asked.values())

    return Recipe(
        part="flink",
        label="-".join(asked.values()),
        why="Apache Flink, an engine under test (PyPI and Maven Central)",
        download_mb=365,
        needs=("java", "mvn"),
        content=(
            LOCK.read_bytes(),
            MAVEN.pom.read_bytes(),
            MAVEN.hashes.read_bytes(),
            PROGRAM.read_bytes(),
        ),
        build=build,
        revision=b"uv",
        tools=(pypi.uv(),),
    )


def _distribution(site: Site, version: str, jars: Path) -> None:
    """Extract the jars from the wheel of apache-flink-libraries. The wheel's hash is checked if it
    is the locked version."""
    locked = pypi.pinned(LOCK, PACKAGE)
    if version != locked:
        site.say(
            f"flink: {version} is not the locked version ({locked}), so the distribution is"
            " installed without a check of its hash"
        )
    packages = LOCK if version == locked else f"{PACKAGE}=={version}"
    for jar in (pypi.unpacked(site, packages) / JARS).glob("*.jar"):
        jar.rename(jars / jar.name)


INSTALLS = Installs(
    parts={"flink": flink},
    versions=NAMES,
    pypi=(PypiLock(LOCK, ["racetrack/engines/flink/requirements.in"]),),
    maven=(MAVEN,),
    images=(
        Image(
            "flink",
            parts=("flink",),
            prepare=("flink",),
            runs=("flink",),
            files=("racetrack/engines/flink/log4j2.properties",),
        ),
    ),
)
