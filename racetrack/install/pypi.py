"""Parts from PyPI: virtual environments, and librdkafka out of a wheel. All by hash where locked.

pip rather than uv: 41 s against 12 s for both CPython environments, but it comes with Python and
follows the user's own pip configuration (mirrors, proxies, certificates).
"""

import os
import re
import shutil
import sys
import zipfile
from pathlib import Path

from racetrack.errors import SetupError
from racetrack.install.recipe import Recipe, Site
from racetrack.install.versions import REPO

HARNESS_LOCK = REPO / "requirements" / "harness.lock"
SERVE_LOCK = REPO / "requirements" / "serve.lock"
LIBRDKAFKA_LOCK = REPO / "requirements" / "librdkafka.lock"
LOADGEN_LOCK = REPO / "loadgen" / "requirements.lock"


def harness() -> Recipe:
    """CPython environment of the harness, with the tools that test it."""
    why = "the program that runs experiments, and its test tools (PyPI)"
    return locked("harness", why, 145, HARNESS_LOCK)


def serve() -> Recipe:
    """CPython environment with just what starts a native service inside a container."""
    return locked("serve", "what starts a service inside a container (PyPI)", 12, SERVE_LOCK)


def locked(part: str, why: str, download_mb: int, lock: Path) -> Recipe:
    """CPython environment that a lock file alone decides."""
    return Recipe(
        part=part,
        label=this_python(),
        why=why,
        download_mb=download_mb,
        needs=(),
        content=(lock.read_bytes(), sys.base_prefix.encode()),
        build=lambda site: environment(site, base_python(), lock),
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
    )


def pinned(lock: Path, package: str) -> str:
    """The version of a package in a lock file.

    Raises:
        SetupError: the file does not pin it.
    """
    found = re.search(rf"^{re.escape(package)}==([^\s;\\]+)", lock.read_text(), re.MULTILINE)
    if not found:
        raise SetupError(f"{lock} does not pin {package}. Make it anew (see its first lines).")
    return found[1]


def environment(site: Site, python: Path, packages: Path | str) -> str:
    """Make a venv in `site.folder` that works after the move to `site.final`; Python's version."""
    make_venv(site, python)
    install(site, packages)
    move_paths(site.folder, site.final)
    version = "import platform as p; print(p.python_implementation(), p.python_version())"
    return site.run(_python(site), "-c", version, doing="asking for the version").strip()


def make_venv(site: Site, python: Path) -> None:
    """Make an empty virtual environment in `site.folder`."""
    prompt = site.final.name
    venv = ("-m", "venv", "--prompt", prompt, site.folder)
    site.run(python, *venv, doing="making a virtual environment")


def install(site: Site, packages: Path | str) -> None:
    """Install into the environment: a lock file, each package checked by hash, or one requirement.

    Raises:
        SetupError: a package has another hash, or could not be had.
    """
    locked = isinstance(packages, Path)
    site.run(
        *(
            _python(site),
            "-m",
            "pip",
            "install",
            "--cache-dir",
            site.downloads / "pip",
            "--retries",
            "5",
        ),
        *("--only-binary=:all:", "--progress-bar=off"),
        *(("--require-hashes", "-r", packages) if locked else (packages,)),
        doing="installing packages",
    )


def _python(site: Site) -> Path:
    return site.folder / "bin" / "python3"


def move_paths(folder: Path, final: Path) -> None:
    """Scripts of a venv name their interpreter by its full path: the one it will have."""
    old, new = str(folder).encode(), str(final).encode()
    for script in [*(folder / "bin").iterdir(), folder / "pyvenv.cfg"]:
        if script.is_symlink() or not script.is_file():
            continue
        text = script.read_bytes()
        if old in text and b"\0" not in text:  # a binary program carries no path of ours
            script.write_bytes(text.replace(old, new))


def _librdkafka(site: Site) -> str:
    """Take librdkafka with what it links to out of confluent-kafka's wheel; the wheel's version."""
    wheels = site.folder / "wheels"
    platform = f"manylinux_2_28_{os.uname().machine}"
    site.run(
        *(_python(site), "-m", "pip", "download", "--no-deps", "--dest", wheels),
        *("--only-binary=:all:", "--platform", platform, "--python-version", "311"),
        *("--implementation", "cp", "--abi", "cp311", "--require-hashes", "-r", LIBRDKAFKA_LOCK),
        *("--cache-dir", site.downloads / "pip", "--progress-bar=off"),
        doing="fetching librdkafka",
    )
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if ".libs/" in name and not name.endswith("/"):
                target = site.folder / "lib" / Path(name).name
                target.write_bytes(archive.read(name))
    shutil.rmtree(wheels)
    if not list((site.folder / "lib").glob("librdkafka*.so*")):
        raise SetupError(
            f"loadgen: {wheel.name} holds no librdkafka. Choose another version of confluent-kafka "
            "in requirements/librdkafka.in and make the lock anew (see its first lines)."
        )
    return pinned(LIBRDKAFKA_LOCK, "confluent-kafka")


def base_python() -> Path:
    """The interpreter outside of any venv: one made from it does not break when ours is removed."""
    return Path(sys.base_prefix) / "bin" / this_python()


def this_python() -> str:
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def _pypy_identity() -> bytes:
    """Changes when the system's PyPy does: an environment made by another one is not ours."""
    found = shutil.which("pypy3")
    if not found:
        return b""
    real = Path(found).resolve()
    return f"{real} {real.stat().st_size} {real.stat().st_mtime_ns}".encode()
