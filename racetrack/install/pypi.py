"""Parts from PyPI: virtual environments, and librdkafka out of a wheel. All by hash where locked.

uv installs them, and pip installs uv.
"""

import functools
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from racetrack.errors import SetupError
from racetrack.install import cache, pip
from racetrack.install.recipe import Recipe, Site
from racetrack.install.versions import REPO

UV_LOCK = REPO / "requirements" / "uv.lock"
HARNESS_LOCK = REPO / "requirements" / "harness.lock"
TESTS_LOCK = REPO / "requirements" / "tests.lock"
SERVE_LOCK = REPO / "requirements" / "serve.lock"
LIBRDKAFKA_LOCK = REPO / "requirements" / "librdkafka.lock"
LOADGEN_LOCK = REPO / "loadgen" / "requirements.lock"
# What no program reads: a fifth of numpy, pandas, scipy and pyarrow.
NEVER_READ = ("tests", "include")


def uv() -> Recipe:
    """`bin/uv`: what installs the other Python packages."""

    def build(site: Site) -> str:
        site.run(
            *pip.command(),
            *("install", "--target", site.folder, "--no-deps", "--only-binary=:all:"),
            *("--no-compile", "--no-cache-dir", "--no-warn-script-location"),
            *("--progress-bar=off", "--retries", "5", "--require-hashes", "-r", UV_LOCK),
            doing="installing uv",
        )
        return pinned(UV_LOCK, "uv")

    return Recipe(
        part="uv",
        label=pinned(UV_LOCK, "uv"),
        why="what installs Python packages (PyPI)",
        download_mb=22,
        needs=(),
        content=(UV_LOCK.read_bytes(),),
        build=build,
    )


def harness() -> Recipe:
    """CPython environment of the harness."""
    return locked("harness", "the program that runs experiments (PyPI)", 210, HARNESS_LOCK)


def tests() -> Recipe:
    """CPython environment with all that the harness has, and the tools that test it."""
    # Whole: mypy reads types, and tests what packages bring for tests.
    return locked("tests", "what tests the harness (PyPI)", 240, TESTS_LOCK, whole=True)


def serve() -> Recipe:
    """CPython environment with just what starts a native service inside a container."""
    return locked("serve", "what starts a service inside a container (PyPI)", 12, SERVE_LOCK)


def locked(part: str, why: str, download_mb: int, lock: Path, *, whole: bool = False) -> Recipe:
    """CPython environment that a lock file alone decides."""
    return Recipe(
        part=part,
        label=pip.this_python(),
        why=why,
        download_mb=download_mb,
        needs=(),
        content=(lock.read_bytes(), sys.base_prefix.encode()),
        build=lambda site: environment(site, pip.base_python(), lock, whole=whole),
        revision=b"uv",
        tools=(uv(),),
    )


def loadgen() -> Recipe:
    """PyPy environment of the load generator, with librdkafka in `lib/`."""

    def build(site: Site) -> str:
        version = environment(site, Path("pypy3"), LOADGEN_LOCK)
        return f"{version}, librdkafka of confluent-kafka {_librdkafka(site)}"

    return Recipe(
        part="loadgen",
        label="pypy",
        why="the load generator's libraries on PyPy, and librdkafka (PyPI)",
        download_mb=5,
        needs=("pypy3",),
        content=(LOADGEN_LOCK.read_bytes(), LIBRDKAFKA_LOCK.read_bytes(), _pypy_identity()),
        build=build,
        revision=b"uv",
        tools=(uv(),),
    )


def pinned(lock: Path, package: str) -> str:
    """Return the version of a package in a lock file.

    Raises:
        SetupError: the file does not pin it.
    """
    found = re.search(rf"^{re.escape(package)}==([^\s;\\]+)", lock.read_text(), re.MULTILINE)
    if not found:
        raise SetupError(f"{lock} does not pin {package}. Make it anew (see its first lines).")
    return found[1]


def environment(site: Site, python: Path, packages: Path | str, *, whole: bool = False) -> str:
    """Make a virtual environment in `site.folder`, without what programs never read unless it is to
    be `whole`; return Python's version. It can be moved.

    Raises:
        SetupError: a package has another hash, or could not be had.
    """
    _uv(
        site,
        *("venv", "--python", python, "--relocatable", "--prompt", site.final.name),
        *("--allow-existing", site.folder),
        doing="making a virtual environment",
    )
    inside = site.folder / "bin" / "python3"
    _install(site, packages, "--python", inside)
    if not whole:
        _remove_never_read(site.folder)
    version = "import platform as p; print(p.python_implementation(), p.python_version())"
    return site.run(inside, "-c", version, doing="asking for the version").strip()


def unpacked(site: Site, packages: Path | str) -> Path:
    """Fetch packages, without what they depend on; return the folder that they were unpacked into,
    inside `site.scratch`. Files in it may be moved, but not changed: they are links.

    Raises:
        SetupError: a package has another hash, or could not be had.
    """
    folder = site.scratch / "unpacked"
    _install(site, packages, "--no-deps", "--python", pip.base_python(), "--target", folder)
    return folder


def _install(site: Site, packages: Path | str, *where: str | Path) -> None:
    """Install a lock file, each package checked by hash, or one requirement."""
    _uv(
        site,
        *("pip", "install", "--only-binary", ":all:", *where),
        *(("--require-hashes", "-r", packages) if isinstance(packages, Path) else (packages,)),
        doing="installing packages",
    )


def _uv(site: Site, *arguments: str | Path, doing: str) -> None:
    site.run(
        *(site.tools["uv"] / "bin" / "uv", *arguments),
        *("--no-config", "--no-python-downloads", "--no-progress"),
        *("--cache-dir", cache.packages()),
        doing=doing,
        env=pip.uv_environment(_pip_settings()),
    )


@functools.cache
def _pip_settings() -> Mapping[str, str]:
    return pip.settings()


def _remove_never_read(environment: Path) -> None:
    for folder in environment.glob("lib/*/site-packages/*"):
        for name in NEVER_READ:
            for found in [path for path in folder.rglob(name) if path.is_dir()]:
                shutil.rmtree(found, ignore_errors=True)  # the next may lie inside


def _librdkafka(site: Site) -> str:
    """Take librdkafka with what it links to out of confluent-kafka's wheel; the wheel's version."""
    libraries = list(unpacked(site, LIBRDKAFKA_LOCK).glob("*.libs/*"))
    for library in libraries:
        library.rename(site.folder / "lib" / library.name)
    version = pinned(LIBRDKAFKA_LOCK, "confluent-kafka")
    if not any(library.name.startswith("librdkafka") for library in libraries):
        raise SetupError(
            f"loadgen: confluent-kafka {version} brings no librdkafka. Choose another version"
            " in requirements/librdkafka.in and make the lock anew (see its first lines)."
        )
    return version


def _pypy_identity() -> bytes:
    """Changes when the system's PyPy does: an environment made by another one is not ours."""
    found = shutil.which("pypy3")
    if not found:
        return b""
    real = Path(found).resolve()
    return f"{real} {real.stat().st_size} {real.stat().st_mtime_ns}".encode()
