"""Environments of this process and its children, without the user's variables that would change
results.

`settle` makes this process independent of its shell. Programs of a run get `of_program`; downloads
get `of_download`, with the user's proxies.
"""

import os
import re
import resource
from collections.abc import Iterable, Mapping

from racetrack.errors import SetupError

# The same for every program, so that none reads the user's configuration files.
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
# Variables that runtimes, loaders and clients read by themselves.
HARMFUL = re.compile(
    r"_?[A-Z0-9_]+_(OPTS|OPTIONS)|CLASSPATH|QUARKUS_\w+"  # Java
    r"|LD_\w+|MALLOC_\w+|GLIBC_TUNABLES|OPENSSL_CONF"
    r"|PYTHON\w+|PYPY\w+"
    r"|\w+_proxy|\w+_PROXY|GRPC_(?!DEFAULT_SSL)\w+"
    r"|PG[A-Z]+|PSQLRC|PSQL_\w+|MYSQL_(HOME|TCP_PORT|UNIX_PORT)|KCAT_CONFIG"
)
# Exceptions, which do not affect results.
HARMLESS = tuple(
    f"PYTHON{name}" for name in ("PATH", "UNBUFFERED", "DONTWRITEBYTECODE", "UTF8", "IOENCODING")
)
# Variables that bootstrap.sh has unset, because Python would have read them.
UNSET_BEFORE = "RACETRACK_UNSET"
# Six times the 633 of the registry, the most of all services. The upper limit is there because some
# programs allocate memory for each possible descriptor.
OPEN_FILES, OPEN_FILES_AT_MOST = 4096, 65536
UMASK = 0o022

_set_aside: dict[str, str] = {}


def settle() -> None:
    """Set this process's file mode mask and limit of open files, and set aside the variables that
    its libraries would read. Idempotent."""
    os.umask(UMASK)
    _raise_open_files()
    for name in harmful(os.environ):
        _set_aside[name] = os.environ.pop(name)


def harmful(names: Iterable[str]) -> list[str]:
    """Return the variables that could change a result, without our own settings."""
    suspects = {name for name in names if HARMFUL.fullmatch(name)} - set(HARMLESS)
    if not suspects:
        return []
    from racetrack.config import every_setting  # slow, and the installer has no pydantic

    return sorted(name for name in suspects if name.lower() not in every_setting())


def of_program(own: Mapping[str, str]) -> dict[str, str]:
    """Return the whole environment of a program, with `own` variables."""
    passed_on = {
        name: value
        for name, value in os.environ.items()
        if name in PASSED_ON or name.startswith(OUR_PREFIX)
    }
    return {**passed_on, **FIXED, **own}


def of_download() -> dict[str, str]:
    """Return the environment of a download, with all variables of the user."""
    return {**os.environ, **_set_aside}


def ignored() -> str | None:
    """Return a line with the user's variables that are not passed on, None without any."""
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
