"""For maintainers: makes all lock files anew from what stands in pyproject.toml, *.in and .env.

    pip install uv && python3 -m racetrack.install.lockfiles

Look at the difference before you commit it: this is where trust in what is downloaded begins.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from racetrack.install import central, flink, pypi
from racetrack.install.commands import Children, Runner
from racetrack.install.recipe import Site
from racetrack.install.versions import REPO, read_versions

COMMAND = "pip install uv && python3 -m racetrack.install.lockfiles"
# Lock file → what it is made from, and the oldest Python that it must serve.
PYPI_LOCKS = {
    pypi.HARNESS_LOCK: (["--extra", "dev", "pyproject.toml"], "3.11"),
    pypi.SERVE_LOCK: (
        ["--constraint", "requirements/harness.lock", "requirements/serve.in"],
        "3.11",
    ),
    pypi.PGFEED_LOCK: (
        ["--constraint", "requirements/harness.lock", "requirements/pgfeed.in"],
        "3.11",
    ),
    pypi.DEEPHAVEN_LOCK: (["requirements/deephaven.in"], "3.11"),
    flink.LOCK: (["requirements/flink.in"], "3.11"),
    pypi.LIBRDKAFKA_LOCK: (["requirements/librdkafka.in"], "3.11"),
    pypi.LOADGEN_LOCK: (["loadgen/requirements.in"], "3.9"),
}
MAVEN_PARTS = {
    "kafka": ("KAFKA_VERSION",),
    "registry": ("APICURIO_VERSION",),
    "debezium": ("DEBEZIUM_VERSION", "APICURIO_VERSION"),
    "flink": flink.NAMES,
}


def lock_pypi() -> None:
    """Resolve every package, with the hashes of all its files."""
    for lock, (sources, python) in PYPI_LOCKS.items():
        print(f"{lock.relative_to(REPO)} from {sources[-1]}")
        subprocess.run(
            [
                *("uv", "pip", "compile", "--quiet", "--upgrade", "--no-config"),
                *("--universal", "--python-version", python, "--generate-hashes"),
                *("--custom-compile-command", COMMAND, *sources),
                *("--output-file", str(lock.relative_to(REPO))),
            ],
            cwd=REPO,
            check=True,
        )


def lock_maven() -> None:
    """Fetch each part into a new local repository (Maven checks its own checksums), and list it."""
    versions = read_versions()
    with tempfile.TemporaryDirectory() as scratch:
        for part, names in MAVEN_PARTS.items():
            lock = central.MAVEN / f"{part}.sha256"
            print(f"{lock.relative_to(REPO)} from Maven Central")
            lock.write_text(_list(Path(scratch), part, {name: versions[name] for name in names}))


def _list(scratch: Path, part: str, versions: dict[str, str]) -> str:
    run = Runner(part, log=scratch / "log", scratch=scratch, say=print, children=Children())
    site = Site(scratch / part, scratch / part, scratch, run, print)
    site.folder.mkdir()
    fetched = site.folder / "fetched"
    central.fetch(site, part, versions, fetched)
    lines = [f"{digest}  {name}" for name, digest in central.digests(fetched).items()]
    return "\n".join([central.lock_header(versions), *lines, ""])


if __name__ == "__main__":
    if not shutil.which("uv"):
        sys.exit(f"uv is not on PATH. Run: {COMMAND}")
    lock_pypi()
    lock_maven()
