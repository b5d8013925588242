"""Tests of Flink in containers: its service, and the script that starts it."""

import re
import subprocess
from pathlib import Path

import pytest

from racetrack.config import load
from racetrack.engines.flink.services import flink
from racetrack.engines.flink.settings import FlinkSettings
from racetrack.stack.compose.project import environment
from racetrack.stack.service import Context
from tests.compose_files import Only
from tests.image_facts import IMAGES

START = Path(flink.__file__).parents[1] / "start.sh"
SETTINGS = ("PORT", "HEAP", "PARALLELISM", "STATE_BACKEND", "UPSERT_MATERIALIZE")


@pytest.mark.parametrize(
    "overrides",
    [
        {"FLINK_MINI_BATCH_MS": "0", "FLINK_PARALLELISM": "3"},
        {"FLINK_STATE_BACKEND": "rocksdb", "FLINK_CHECKPOINT_MS": "5000", "FLINK_HEAP": "2g"},
        {"FLINK_PROPERTIES": "a.b='1 * s' pipeline.object-reuse=true parallelism.default=7"},
    ],
)
def test_it_is_configured_as_natively(tmp_path: Path, overrides: dict[str, str]) -> None:
    settings = load(overrides)
    done = subprocess.run(
        ["bash", str(START), "printenv", "FLINK_PROPERTIES"],
        env={"PATH": "/usr/bin:/bin", **environment(settings)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    # The image takes the last value of each name.
    ours = dict(line.split(": ", 1) for line in done.splitlines())
    native = flink.configured(Context(settings, tmp_path, {}))
    places = re.compile(r"address|bind|\.host$|\.port$|dirs?$|idle-timeout")
    assert {name: value for name, value in ours.items() if not places.search(name)} == {
        name: value for name, value in native.items() if not places.search(name)
    }
    assert ours["sql-gateway.endpoint.rest.port"] == str(FlinkSettings.of(settings).flink_port)
    assert ours["sql-gateway.session.idle-timeout"] == native["sql-gateway.session.idle-timeout"]
    # The image's own defaults are too little: one task slot, and one port for the file (blob)
    # servers of the clusters of all jobs.
    assert ours["taskmanager.numberOfTaskSlots"] == overrides.get("FLINK_PARALLELISM", "1")
    assert ours["blob.server.port"] == "0"


def test_its_script_calls_programs_that_the_image_has(tmp_path: Path) -> None:
    needed = {f"FLINK_{name}": "1" for name in (*SETTINGS, "MINI_BATCH_MS", "CHECKPOINT_MS")}
    needed["FLINK_PROPERTIES"] = "a=1"
    Only(tmp_path).run(IMAGES["flink"], "bash", str(START), "bash", "-c", "true", **needed)
