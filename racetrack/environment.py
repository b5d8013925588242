"""Environment variables of this process and its children.

Removes the user's variables that could change results. `settle` cleans this process. `of_program`
returns the environment for the programs of a run, `of_download` the environment for downloads,
which keeps the user's proxies.
"""

import gc
import os
import re
import resource
from collections.abc import Iterable, Mapping

from racetrack.errors import SetupError

# Fixed for every program, so that none reads the user's configuration files.
FIXED = {
    "LC_ALL": "C.UTF-8",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "HOME": "/nonexistent",
    "XDG_CONFIG_HOME": "/nonexistent",
    "XDG_CACHE_HOME": "/nonexistent",
    "XDG_DATA_HOME": "/nonexistent",
    "PYTHONUTF8": "1",
    "PYTHONNOUSERSITE": "1",
}
PASSED_ON = ("PATH", "TMPDIR", "TERM", "USER", "LOGNAME")
OUR_PREFIX = "RACETRACK_"
# Variables that configure Java, the dynamic loader, Python or client libraries.
HARMFUL = re.compile(
    r"_?[A-Z0-9_]+_(OPTS|OPTIONS)|CLASSPATH|QUARKUS_\w+"  # Java
    r"|LD_\w+|MALLOC_\w+|GLIBC_TUNABLES|OPENSSL_CONF"
    r"|PYTHON\w+|PYPY\w+"
    r"|\w+_proxy|\w+_PROXY|GRPC_(?!DEFAULT_SSL)\w+"
    r"|PG[A-Z]+|PSQLRC|PSQL_\w+|MYSQL_(HOME|TCP_PORT|UNIX_PORT)|KCAT_CONFIG"
)
# Variables that match HARMFUL but do not affect results.
HARMLESS = tuple(
    f"PYTHON{name}" for name in ("PATH", "UNBUFFERED", "DONTWRITEBYTECODE", "UTF8", "IOENCODING")
)
# Contains the names of the variables that bootstrap.sh unset before it started Python.
UNSET_BEFORE = "RACETRACK_UNSET"
# The schema registry opens 633 files, the most of all services; the lower limit is about six times
# that. The upper limit exists because some programs allocate memory for each possible descriptor.
OPEN_FILES, OPEN_FILES_AT_MOST = 4096, 65536
UMASK = 0o022
# New objects after which Python looks for cycles among them, many more than by default: thousands
# of messages come a second, none has cycles, and looking took a third of the time to receive them.
OBJECTS_UNTIL_COLLECTED = 50_000

_set_aside: dict[str, str] = {}


def settle() -> None:
    """Set the umask, the limit of open files and how often Python looks for cycles, and remove
    harmful variables. Idempotent.

    `of_download` restores the removed variables.
    """
    os.umask(UMASK)
    gc.set_threshold(OBJECTS_UNTIL_COLLECTED)
    _raise_open_files()
    for name in harmful(os.environ):
        _set_aside[name] = os.environ.pop(name)


def harmful(names: Iterable[str]) -> list[str]:
    """Return the names that could change a result, except Racetrack's own settings."""
    suspects = {name for name in names if HARMFUL.fullmatch(name)} - set(HARMLESS)
    if not suspects:
        return []
    from racetrack.config import every_setting  # slow; absent from the installer

    return sorted(name for name in suspects if name.lower() not in every_setting())


def of_program(own: Mapping[str, str]) -> dict[str, str]:
    """Return the complete environment of a program of a run; `own` variables take precedence."""
    passed_on = {
        name: value
        for name, value in os.environ.items()
        if name in PASSED_ON or name.startswith(OUR_PREFIX)
    }
    return {**passed_on, **FIXED, **own}


def of_download() -> dict[str, str]:
    """Return the environment of a download: all of the user's variables."""
    return {**os.environ, **_set_aside}


def ignored() -> str | None:
    """Return a message that lists the user's variables that are ignored; None if there are none."""
    unset = os.environ.get(UNSET_BEFORE, "").split()
    names = harmful({*os.environ, *_set_aside, *unset})
    if not names:
        return None
    downloads = any(name.lower().endswith("_proxy") for name in names)
    return (
        f"Ignored from your environment: {', '.join(names)}"
        f"{' (downloads still use the proxy)' if downloads else ''}."
        " Options for Java: JVM_OPTIONS in .env."
    )


def require_open_files() -> None:
    """Check that this process and its children may open as many files as a stack needs.

    Raises:
        SetupError: the limit is lower.
    """
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed != resource.RLIM_INFINITY and allowed < OPEN_FILES:
        raise SetupError(
            f"The stack needs {OPEN_FILES:,} open files, and this shell allows {allowed:,}."
            f" Raise the limit with `ulimit -n {OPEN_FILES}`; if that is refused, have root set"
            " `nofile` in /etc/security/limits.conf (in a container: `docker run --ulimit"
            f" nofile={OPEN_FILES}`) and log in again."
        )


def _raise_open_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = OPEN_FILES_AT_MOST
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
