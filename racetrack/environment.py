"""The environment of our programs: what they are given, and which of the user's variables are not
passed on because they would change what is measured.

`settle` makes this process independent of the shell that it was started from. Programs that run
beside a measurement get `of_program`; what downloads something gets `of_download`, with the user's
proxies.
"""

import os
import re
import resource
from collections.abc import Iterable, Mapping

from racetrack.errors import SetupError

# The same for every program: none reads a configuration file of the user's.
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
# Of these, what changes nothing that is measured.
HARMLESS = tuple(
    f"PYTHON{name}" for name in ("PATH", "UNBUFFERED", "DONTWRITEBYTECODE", "UTF8", "IOENCODING")
)
# What bootstrap.sh has unset, because Python itself would have read it.
UNSET_BEFORE = "RACETRACK_UNSET"
# Six times what the registry opens (633), the most of the services that were looked at; and at most
# so many, because some programs prepare for every descriptor that they may have.
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
    """Those of some variables that could change a result. Settings of ours are not among them."""
    suspects = {name for name in names if HARMFUL.fullmatch(name)} - set(HARMLESS)
    if not suspects:
        return []
    from racetrack.config import every_setting  # slow, and the installer has no pydantic

    return sorted(name for name in suspects if name.lower() not in every_setting())


def of_program(own: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a program that is given `own`."""
    passed_on = {
        name: value
        for name, value in os.environ.items()
        if name in PASSED_ON or name.startswith(OUR_PREFIX)
    }
    return {**passed_on, **FIXED, **own}


def of_download() -> dict[str, str]:
    """The environment of a program that reaches out of this machine, as the user set it up."""
    return {**os.environ, **_set_aside}


def ignored() -> str | None:
    """A line that names the user's variables that the stack does not get, if there are any."""
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
        SetupError: they may not.
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
