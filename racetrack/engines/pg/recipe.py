"""What PostgreSQL installs: the server out of the distribution's archive, unpacked, so that no
system service of that name is installed or started; and what feeds it, for containers."""

import re
from pathlib import Path

from racetrack.install import apt, debian, pypi
from racetrack.install.image import Image
from racetrack.install.recipe import Installs, PypiLock, Recipe, Site

# The newest that a release has.
POSTGRES_SERVERS = tuple(f"postgresql-{major}" for major in range(20, 13, -1))
# What the server links to, and no compiler for queries. The C library is the host's own: the
# packages are of the host's release, and initdb starts the server without asking for a loader.
POSTGRES_NEEDS = re.compile(r"^(postgresql-\d+|lib(?!perl|c6|c-|llvm|z3)|zlib1g)")
# What the feeder imports of the harness, and itself.
FEED = (
    "racetrack/__init__.py",
    "racetrack/environment.py",
    "racetrack/errors.py",
    "racetrack/plugins.py",
    "racetrack/config.py",
    "racetrack/units.py",
    "racetrack/stack/__init__.py",
    "racetrack/stack/avro.py",
    "racetrack/stack/contract.py",
    "racetrack/stack/net.py",
    "racetrack/stack/service.py",
    "racetrack/engines/__init__.py",
    "racetrack/engines/pg/__init__.py",
    "racetrack/engines/pg/feed/__init__.py",
    "racetrack/engines/pg/feed/consumer.py",
    "racetrack/engines/pg/feed/plan.py",
    "racetrack/engines/pg/feed/sink.py",
)
FEED_LOCK = Path(__file__).with_name("feed") / "requirements.lock"


def postgres() -> Recipe:
    """`usr/lib/postgresql/<major>/bin` and the libraries that are not the C library's."""
    distribution, suite = apt.host()
    packages = apt.Packages("postgres", suite, POSTGRES_SERVERS, POSTGRES_NEEDS)
    why = f"PostgreSQL, the baseline ({distribution} {suite}, unpacked)"
    return debian.unpacked(packages, why, 36, _version)


def libraries(folder: Path) -> str:
    """LD_LIBRARY_PATH for the programs of an unpacked PostgreSQL."""
    return ":".join(
        str(path) for sub in ("usr/lib", "lib") for path in folder.glob(f"{sub}/*-linux-gnu*")
    )


def programs(folder: Path) -> Path:
    """Return the folder of its programs."""
    (found,) = folder.glob("usr/lib/postgresql/*/bin")
    return found


def feed() -> Recipe:
    """CPython environment with just what feeds PostgreSQL inside a container."""
    return pypi.locked("pgfeed", "what feeds PostgreSQL inside a container (PyPI)", 60, FEED_LOCK)


def _version(site: Site) -> str:
    said = site.run(
        "env",
        f"LD_LIBRARY_PATH={libraries(site.folder)}",
        programs(site.folder) / "postgres",
        "--version",
        doing="starting the unpacked postgres",
    )
    found = re.search(r"PostgreSQL\) (\S+)", said)
    return found[1] if found else said.strip()


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
