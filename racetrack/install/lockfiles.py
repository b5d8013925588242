"""Updates all lock files from pyproject.toml, *.in and .env; for maintainers.

    python3 -m racetrack.install.lockfiles

Review the changes before you commit them: later downloads are trusted because of these files.
"""

import subprocess
import tempfile
from pathlib import Path

from racetrack import environment, plugins
from racetrack.install import central, npm, pip, pypi
from racetrack.install.commands import Children, Runner
from racetrack.install.ensure import ensure_recipes
from racetrack.install.recipe import MavenPart, PypiLock, Site
from racetrack.install.versions import read_versions
from racetrack.plugins import REPO

COMMAND = "python3 -m racetrack.install.lockfiles"
OPTIONS = [
    "pip",
    "compile",
    "--quiet",
    "--upgrade",
    "--no-config",
    "--universal",
    "--fork-strategy",  # the same versions of packages on every Python
    "fewest",
    "--generate-hashes",
]
_BROUGHT = [module.INSTALLS for module in plugins.of_all("recipe").values()]
PYPI_LOCKS = (
    PypiLock(pypi.UV_LOCK, ["requirements/uv.in"]),
    PypiLock(pypi.HARNESS_LOCK, ["pyproject.toml"]),
    PypiLock(
        pypi.TESTS_LOCK,
        ["--constraint", "requirements/harness.lock", "--extra", "dev", "pyproject.toml"],
    ),
    PypiLock(
        pypi.SERVE_LOCK, ["--constraint", "requirements/harness.lock", "requirements/serve.in"]
    ),
    PypiLock(npm.NODE_LOCK, ["requirements/node.in"]),
    PypiLock(pypi.LIBRDKAFKA_LOCK, ["requirements/librdkafka.in"]),
    PypiLock(pypi.LOADGEN_LOCK, ["loadgen/requirements.in"], python="3.9"),
    *(lock for brought in _BROUGHT for lock in brought.pypi),
)
MAVEN_PARTS = (*central.PARTS.values(), *(part for brought in _BROUGHT for part in brought.maven))


def lock_pypi() -> None:
    """Write the lock files of Python packages, with the hashes of all files of each package."""
    uv = ensure_recipes([pypi.uv()], print)["uv"] / "bin" / "uv"
    network = pip.uv_environment(pip.settings())
    environ = {n: v for n, v in {**environment.of_download(), **network}.items() if v is not None}
    for lock in PYPI_LOCKS:
        print(f"{lock.file.relative_to(REPO)} from {lock.sources[-1]}")
        subprocess.run(
            [
                uv,
                *OPTIONS,
                "--python-version",
                lock.python,
                "--custom-compile-command",
                COMMAND,
                *lock.sources,
                "--output-file",
                str(lock.file.relative_to(REPO)),
            ],
            cwd=REPO,
            env=environ,
            check=True,
        )


def lock_npm() -> None:
    """Write the lock file of npm packages, with their hashes, from `package.json`."""
    print(f"{npm.LOCK.relative_to(REPO)} from {npm.PACKAGES.name}")
    tools = ensure_recipes([pypi.uv()], print)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        run = Runner("web", log=scratch / "log", scratch=scratch, say=print, children=Children())
        site = Site(scratch / "web", scratch / "web", scratch, run, print, tools)
        # The user's registry may be a mirror, so its address is left out.
        options = ["--package-lock-only", "--omit-lockfile-registry-resolved"]
        npm.npm(site, "install", npm.WEB, options)


def lock_maven() -> None:
    """Download each Maven part into an empty local repository, and write the hashes of its files.

    Maven verifies the checksums of the downloads.
    """
    versions = read_versions()
    with tempfile.TemporaryDirectory() as scratch:
        for part in MAVEN_PARTS:
            print(f"{part.hashes.relative_to(REPO)} from Maven Central")
            wanted = {name: versions[name] for name in part.versions}
            part.hashes.write_text(_list(Path(scratch), part, wanted))


def _list(scratch: Path, part: MavenPart, versions: dict[str, str]) -> str:
    run = Runner(part.name, log=scratch / "log", scratch=scratch, say=print, children=Children())
    site = Site(scratch / part.name, scratch / part.name, scratch, run, print)
    site.folder.mkdir()
    fetched = site.folder / "fetched"
    central.fetch(site, part, versions, fetched)
    lines = [f"{digest}  {name}" for name, digest in central.digests(fetched).items()]
    return "\n".join([central.lock_header(versions), *lines, ""])


if __name__ == "__main__":
    lock_pypi()
    lock_npm()
    lock_maven()
