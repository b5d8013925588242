"""Recipe of the installed component `flink`: the jars of Flink's distribution, from its PyPI wheel,
and further jars that are not in the wheel, from Maven Central."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from racetrack.install import central, pypi
from racetrack.install.recipe import Image, Installs, MavenPart, PypiLock, Recipe, Site

HERE = Path(__file__).parent
LOCK = HERE / "requirements.lock"
NAMES = ("FLINK_VERSION", "FLINK_KAFKA_VERSION")
MAVEN = MavenPart("flink", HERE / "pom.xml", HERE / "maven.sha256", NAMES)
PACKAGE, JARS = "apache-flink-libraries", "pyflink/lib"
PROGRAM = HERE / "sql-client.sh"


def flink(versions: Mapping[str, str]) -> Recipe:
    """Return the recipe. It installs the SQL gateway with its dependencies as `lib/*.jar`, and the
    SQL client as `bin/sql-client.sh`."""
    version = versions["FLINK_VERSION"]

    def place(site: Site, fetched: Path) -> None:
        jars, program = fetched.rename(site.folder / "lib"), site.folder / "bin" / PROGRAM.name
        for jar in (pypi.unpacked(site, _distribution(site, version)) / JARS).glob("*.jar"):
            jar.rename(jars / jar.name)
        program.parent.mkdir()
        shutil.copyfile(PROGRAM, program)
        program.chmod(0o755)

    why = "Apache Flink, an engine under test (PyPI and Maven Central)"
    made = central.recipe(MAVEN, versions, why=why, download_mb=365, place=place, revision=b"uv")
    content = (LOCK.read_bytes(), *made.content, PROGRAM.read_bytes())
    return replace(made, content=content, tools=(pypi.uv(),))


def _distribution(site: Site, version: str) -> Path | str:
    """Return the package with Flink's distribution: for the locked version from the lock file,
    which contains its hash; for another version by name."""
    locked = pypi.pinned(LOCK, PACKAGE)
    if version == locked:
        return LOCK
    site.say(
        f"flink: {version} is not the locked version ({locked}), so the distribution is"
        " installed without a check of its hash"
    )
    return f"{PACKAGE}=={version}"


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
            files=(
                "racetrack/engines/flink/cluster.py",
                "racetrack/engines/flink/log4j2.properties",
            ),
        ),
    ),
)
