"""Recipe of the installed component `deephaven`: a Python environment with the server, from
PyPI."""

import sys
from collections.abc import Mapping
from pathlib import Path

from racetrack.install import pip, pypi
from racetrack.install.recipe import Image, Installs, PypiLock, Recipe, Site

LOCK = Path(__file__).with_name("requirements.lock")
VERSION = "DEEPHAVEN_VERSION"


def deephaven(versions: Mapping[str, str]) -> Recipe:
    """Return the recipe of a CPython environment with deephaven-server."""
    version, locked = versions[VERSION], pypi.pinned(LOCK, "deephaven-server")

    def build(site: Site) -> str:
        if version == locked:
            pypi.environment(site, pip.base_python(), LOCK)
        else:
            site.say(
                f"deephaven: {version} is not the locked version ({locked}), "
                "so its packages are installed without a check of their hashes"
            )
            pypi.environment(site, pip.base_python(), f"deephaven-server=={version}")
        return version

    return Recipe(
        part="deephaven",
        label=version,
        why="the Deephaven server, an engine under test (PyPI)",
        download_mb=340,
        needs=("java",),
        content=(LOCK.read_bytes(), pip.this_python().encode(), sys.base_prefix.encode()),
        build=build,
        revision=b"uv",
        tools=(pypi.uv(),),
    )


INSTALLS = Installs(
    parts={"deephaven": deephaven},
    versions=(VERSION,),
    pypi=(PypiLock(LOCK, ["racetrack/engines/dh/requirements.in"]),),
    images=(
        Image(
            "deephaven",
            installs="deephaven",
            locks=("racetrack/engines/dh/requirements.lock",),
            versions=(VERSION,),
            prepare=("deephaven",),
            runs=("deephaven",),
            files=("racetrack/engines/dh/server.py", "racetrack/engines/dh/logback.xml"),
        ),
    ),
)
