"""Deephaven in a container: what `docker compose` understands of its service."""

import os
import subprocess
from pathlib import Path

import pytest

from racetrack.config import REPO, load
from racetrack.stack import jvm
from racetrack.stack.compose.project import Project
from tests import compose_files
from tests.compose_files import service
from tests.image_facts import IMAGES

ARGUMENTS = "/tmp/racetrack.args"  # of its JVM


def test_it_heeds_its_settings() -> None:
    told = service("deephaven", DEEPHAVEN_HEAP="3g", DEEPHAVEN_CYCLE_MS="250", DEEPHAVEN_PSK="key")
    options = told["environment"]["START_OPTS"].split()
    for option in (
        "-Xmx3g",
        "-DPeriodicUpdateGraph.targetCycleDurationMillis=250",
    ):
        assert option in options


def test_it_logs_its_pauses_as_it_does_natively() -> None:
    assert jvm.LOG_GC_PAUSES in service("deephaven")["environment"]["START_OPTS"].split()


def test_its_key_is_in_no_argument(tmp_path: Path) -> None:
    """It is run up to where the image's own entry point begins, and read by a JVM."""
    key = "a-key#1"
    described = service("deephaven", DEEPHAVEN_PSK=key)
    told = described["environment"]
    file = tmp_path / "args"
    (script,) = described["command"]
    assert key not in script
    assert key not in told["START_OPTS"]
    start = IMAGES["ghcr.io/deephaven/server"].defaults["entry point"].value
    assert script.endswith(f"exec {start}")
    script = script.replace(start, "true").replace(ARGUMENTS, str(file)).replace("$$", "$")
    variables = {**os.environ, "DEEPHAVEN_PSK": told["DEEPHAVEN_PSK"]}
    subprocess.run([*described["entrypoint"], script], env=variables, check=True)
    assert file.stat().st_mode & 0o077 == 0
    options = told["START_OPTS"].replace(ARGUMENTS, str(file)).split()
    done = subprocess.run(
        [jvm.java(), *options, "-XshowSettings:properties", "-version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"authentication.psk = {key}\n" in done.stderr


def test_scripts_are_where_people_paste_them_from() -> None:
    mounts = {each["target"]: each for each in service("deephaven")["volumes"]}
    assert mounts["/scripts"]["source"] == str(REPO / "scripts")
    assert mounts["/scripts"]["read_only"]


@pytest.mark.parametrize("airgap", ["false", "true"])
def test_its_heap_is_counted_as_memory_that_it_may_use(
    airgap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in compose_files.plugin().items():
        monkeypatch.setenv(name, value)
    told = Project(load({"AIRGAP": airgap, "DEEPHAVEN_HEAP": "7g"})).services()
    assert told["deephaven"].memory.startswith("7g")


@pytest.mark.parametrize("heap", ["512m", "1g"])
def test_its_jvm_takes_heaps_as_the_setting_does(heap: str) -> None:
    assert load({"DEEPHAVEN_HEAP": heap}).model_dump()["deephaven_heap"] == heap
    compose_files.java_starts_with(f"-Xmx{heap}")
