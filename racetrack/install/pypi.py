"""Recipes of parts from PyPI: virtual environments, and librdkafka from a wheel.

uv installs them, pip installs uv, and all packages are verified by hash.
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
from racetrack.plugins import REPO

UV_LOCK = REPO / "requirements" / "uv.lock"
HARNESS_LOCK = REPO / "requirements" / "harness.lock"
TESTS_LOCK = REPO / "requirements" / "tests.lock"
SERVE_LOCK = REPO / "requirements" / "serve.lock"
LIBRDKAFKA_LOCK = REPO / "requirements" / "librdkafka.lock"
LOADGEN_LOCK = REPO / "loadgen" / "requirements.lock"
PIP_OPTIONS = [
    "--no-deps",
    "--only-binary=:all:",
    "--no-compile",
    "--no-cache-dir",
    "--no-warn-script-location",
    "--progress-bar=off",
    "--retries=5",
]
# Folders that no program reads: a fifth of the size of numpy, pandas, scipy and pyarrow.
NEVER_READ = ("tests", "include")


def uv() -> Recipe:
    """Return the recipe of `bin/uv`, which installs the other Python packages."""

    def build(site: Site) -> str:
        site.run(
            *pip.command(),
            "install",
            *PIP_OPTIONS,
            "--target",
            site.folder,
            "--require-hashes",
            "-r",
            UV_LOCK,
            doing="installing uv",
            env=pip.install_environment(pip_settings()),
        )
        return pinned(UV_LOCK, "uv")

    return Recipe(
        part="uv",
        label=pinned(UV_LOCK, "uv"),
        why="installs Python packages (PyPI)",
        download_mb=22,
        needs=(),
        content=(UV_LOCK.read_bytes(),),
        build=build,
    )


def harness() -> Recipe:
    """Return the recipe of the harness's CPython environment."""
    return locked("harness", "the program that runs experiments (PyPI)", 205, HARNESS_LOCK)


def tests() -> Recipe:
    """Return the recipe of a CPython environment with the harness's packages and the test tools."""
    # `whole` keeps folders that mypy reads, and test helpers of packages.
    return locked("tests", "the harness and its test tools (PyPI)", 240, TESTS_LOCK, whole=True)


def serve() -> Recipe:
    """Return the recipe of a CPython environment that starts native services in a container."""
    return locked("serve", "starts a service in a container (PyPI)", 12, SERVE_LOCK)


def locked(part: str, why: str, download_mb: int, lock: Path, *, whole: bool = False) -> Recipe:
    """Return the recipe of a CPython environment that a lock file alone determines."""
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
    """Return the recipe of the load generator's PyPy environment, with librdkafka in `lib/`."""

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
    version = re.search(rf"^{re.escape(package)}==([^\s;\\]+)", lock.read_text(), re.MULTILINE)
    if not version:
        raise SetupError(f"{lock} does not pin {package}. Remake it (see its first lines).")
    return version[1]


def environment(site: Site, python: Path, packages: Path | str, *, whole: bool = False) -> str:
    """Make a relocatable virtual environment in `site.folder`; return Python's version.

    Unless `whole`, remove folders that programs never read.

    Raises:
        SetupError: a hash is wrong, or a package can't be fetched.
    """
    _uv(
        site,
        "venv",
        "--python",
        python,
        "--relocatable",
        "--prompt",
        site.final.name,
        "--allow-existing",
        site.folder,
        doing="making a virtual environment",
    )
    inside = site.folder / "bin" / "python3"
    _install(site, packages, "--python", inside)
    if not whole:
        _remove_never_read(site.folder)
    version = "import platform as p; print(p.python_implementation(), p.python_version())"
    return site.run(inside, "-c", version, doing="asking for the version").strip()


def unpacked(site: Site, packages: Path | str) -> Path:
    """Fetch packages without their dependencies; return the folder with their unpacked files.

    The folder is in `site.scratch`. Files in it may be moved but not changed: they are hard links.

    Raises:
        SetupError: a hash is wrong, or a package can't be fetched.
    """
    folder = site.scratch / "unpacked"
    _install(site, packages, "--no-deps", "--python", pip.base_python(), "--target", folder)
    return folder


def _install(site: Site, packages: Path | str, *where: str | Path) -> None:
    """Install `packages`: a lock file, whose hashes are verified, or one requirement such as
    `name==1.2`, without a hash."""
    _uv(
        site,
        "pip",
        "install",
        "--only-binary",
        ":all:",
        *where,
        *(("--require-hashes", "-r", packages) if isinstance(packages, Path) else (packages,)),
        doing="installing packages",
    )


def _uv(site: Site, *arguments: str | Path, doing: str) -> None:
    site.run(
        site.tools["uv"] / "bin" / "uv",
        *arguments,
        "--no-config",
        "--no-python-downloads",
        "--no-progress",
        "--cache-dir",
        cache.packages(),
        doing=doing,
        env=pip.uv_environment(pip_settings()),
    )


@functools.cache
def pip_settings() -> Mapping[str, str]:
    return pip.settings()


def _remove_never_read(environment: Path) -> None:
    for folder in environment.glob("lib/*/site-packages/*"):
        for name in NEVER_READ:
            for unneeded in [path for path in folder.rglob(name) if path.is_dir()]:
                shutil.rmtree(unneeded, ignore_errors=True)  # found folders may be nested


def _librdkafka(site: Site) -> str:
    """Move librdkafka and its libraries out of confluent-kafka's wheel; return its version."""
    libraries = list(unpacked(site, LIBRDKAFKA_LOCK).glob("*.libs/*"))
    for library in libraries:
        library.rename(site.folder / "lib" / library.name)
    version = pinned(LIBRDKAFKA_LOCK, "confluent-kafka")
    if not any(library.name.startswith("librdkafka") for library in libraries):
        raise SetupError(
            f"loadgen: confluent-kafka {version} brings no librdkafka. Choose another version"
            " in requirements/librdkafka.in and remake the lock (see its first lines)."
        )
    return version


def _pypy_identity() -> bytes:
    """Return bytes that identify the system's PyPy: another PyPy needs another environment."""
    pypy = shutil.which("pypy3")
    if not pypy:
        return b""
    real = Path(pypy).resolve()
    return f"{real} {real.stat().st_size} {real.stat().st_mtime_ns}".encode()
