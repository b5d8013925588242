"""Recipes of PostgreSQL's installed components: the server, and, for containers, the feeder.

The server's packages come from the distribution's archive. They are unpacked but not installed, so
that no system service is set up or started."""

import re
from pathlib import Path

from racetrack.install import apt, debian, pypi
from racetrack.install.recipe import Image, Installs, PypiLock, Recipe, Site

# Candidates for the server's package; the newest that the distribution has is used.
POSTGRES_SERVERS = tuple(f"postgresql-{major}" for major in range(20, 13, -1))
# Selects the server and the libraries that it links to. LLVM is left out, because it is only needed
# to compile queries. The C library is left out, because the host's own fits: the packages are from
# the host's release, and initdb could not start the server with another loader.
POSTGRES_NEEDS = re.compile(r"^(postgresql-\d+|lib(?!perl|c6|c-|llvm|z3)|zlib1g)")
# The feeder, and the modules of the harness that it imports.
FEED = (
    "racetrack/__init__.py",
    "racetrack/clock.py",
    "racetrack/environment.py",
    "racetrack/errors.py",
    "racetrack/client_properties.py",
    "racetrack/kafka_endpoint.py",
    "racetrack/mysql_endpoint.py",
    "racetrack/plugins.py",
    "racetrack/renamed.py",
    "racetrack/config.py",
    "racetrack/units.py",
    "racetrack/stack/__init__.py",
    "racetrack/stack/avro.py",
    "racetrack/stack/contract.py",
    "racetrack/stack/elsewhere.py",
    "racetrack/stack/net.py",
    "racetrack/stack/service.py",
    "racetrack/workloads/__init__.py",
    "racetrack/workloads/contract.py",
    "racetrack/engines/__init__.py",
    "racetrack/engines/pg/__init__.py",
    "racetrack/engines/pg/feed/__init__.py",
    "racetrack/engines/pg/feed/consumer.py",
    "racetrack/engines/pg/feed/plan.py",
    "racetrack/engines/pg/feed/sink.py",
)
FEED_LOCK = Path(__file__).with_name("feed") / "requirements.lock"


def postgres() -> Recipe:
    """Return the recipe of the server. It installs `usr/lib/postgresql/<major>/bin` and all
    libraries except the C library."""
    distribution, suite = apt.host()
    packages = apt.Packages("postgres", suite, POSTGRES_SERVERS, POSTGRES_NEEDS)
    why = f"PostgreSQL, the baseline ({distribution} {suite}, unpacked)"
    return debian.unpacked(packages, why, 36, _version)


def libraries(folder: Path) -> str:
    """Return the LD_LIBRARY_PATH for the programs of an unpacked PostgreSQL."""
    return ":".join(
        str(path) for sub in ("usr/lib", "lib") for path in folder.glob(f"{sub}/*-linux-gnu*")
    )


def programs(folder: Path) -> Path:
    """Return the folder with the programs of an unpacked PostgreSQL."""
    (folder_of_programs,) = folder.glob("usr/lib/postgresql/*/bin")
    return folder_of_programs


def feed() -> Recipe:
    """Return the recipe of a CPython environment for the feeder, for use in a container."""
    return pypi.locked("pgfeed", "what feeds PostgreSQL inside a container (PyPI)", 60, FEED_LOCK)


def _version(site: Site) -> str:
    program = programs(site.folder) / "postgres"
    shown = ("env", f"LD_LIBRARY_PATH={libraries(site.folder)}", program, "--version")
    return apt.installed_version(site, "postgres", *shown, pattern=r"PostgreSQL\) (\S+)")


INSTALLS = Installs(
    parts={"postgres": lambda _: postgres()},
    on_request={"pgfeed": lambda _: feed()},
    pypi=(
        PypiLock(
            FEED_LOCK,
            [
                "--constraint",
                "requirements/harness.lock",
                "racetrack/engines/pg/feed/requirements.in",
            ],
        ),
    ),
    images=(
        Image("postgres", parts=("postgres",), prepare=("postgres",), runs=("postgres",)),
        Image(
            "pgfeed",
            installs="pgfeed",
            locks=("racetrack/engines/pg/feed/requirements.lock",),
            command="python -m racetrack.engines.pg.feed.consumer",
            files=FEED,
        ),
    ),
)
