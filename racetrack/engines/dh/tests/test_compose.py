"""Tests of Deephaven's service as `docker compose` reads it."""

import os
import subprocess
from pathlib import Path

from racetrack.engines.dh.services.deephaven import FOR_CLIENTS
from racetrack.stack import jvm
from tests.compose_files import service
from tests.image_facts import IMAGES

ARGUMENTS = "/tmp/racetrack.args"  # of the service's JVM


def test_its_key_is_in_no_argument(tmp_path: Path) -> None:
    """Run the service's script without starting the server; a JVM must understand the file of
    arguments that the script writes."""
    key = "a-key#1"
    changed = {"DEEPHAVEN_HEAP": "3g", "DEEPHAVEN_CYCLE_MS": "250"}
    described = service("deephaven", DEEPHAVEN_PSK=key, **changed)
    environment = described["environment"]
    cycle = "-DPeriodicUpdateGraph.targetCycleDurationMillis=250"
    assert {"-Xmx3g", cycle, *FOR_CLIENTS} <= set(environment["START_OPTS"].split())

    file = tmp_path / "args"
    (script,) = described["command"]
    assert key not in script
    assert key not in environment["START_OPTS"]
    start = IMAGES["ghcr.io/deephaven/server"].defaults["entry point"].value
    assert script.endswith(f"exec {start}")
    script = script.replace(start, "true").replace(ARGUMENTS, str(file)).replace("$$", "$")
    variables = {**os.environ, "DEEPHAVEN_PSK": environment["DEEPHAVEN_PSK"]}
    subprocess.run([*described["entrypoint"], script], env=variables, check=True)
    assert file.stat().st_mode & 0o077 == 0
    options = environment["START_OPTS"].replace(ARGUMENTS, str(file)).split()
    done = subprocess.run(
        [jvm.java(), *options, "-XshowSettings:properties", "-version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"authentication.psk = {key}\n" in done.stderr
