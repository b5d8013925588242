"""End-to-end tests in a shell whose settings would change results, and on file systems that fill
up.

Those file systems are in their own mount namespace, which requires root.
"""

import json
import os
import re
import shutil
import time
from pathlib import Path

import pytest

from racetrack import integrity
from racetrack.config import Settings
from racetrack.install import cache, folder_of, read_versions
from racetrack.stack import processes
from tests.e2e.shared import Door, NothingLeft, Open, ended_well
from tests.some_engines import CALIBRATION

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")

HOSTILE = {
    "_JAVA_OPTIONS": "-Xmx20m",
    "JAVA_TOOL_OPTIONS": "-Duser.language=tr -Duser.country=TR",
    "KAFKA_OPTS": "-Dnonsense=true",
    "http_proxy": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "ALL_PROXY": "socks5://127.0.0.1:9",
    "grpc_proxy": "http://127.0.0.1:9",
    "PYTHONOPTIMIZE": "2",
    "PGOPTIONS": "--nonsense",
    "KCAT_CONFIG": "/nonsense",
}
LOCALE = {"LANG": "tr_TR.UTF-8", "LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Kolkata"}
ENDS_WITHIN_S = 20.0
ROOM = 1100 << 20
Mounted = Open


@pytest.fixture
def mounted(door: Open) -> Mounted:
    """Return a function, `mounted(folder, size, *words)`, that runs an experiment with a tmpfs at a
    folder."""

    def begin(folder: Path, size: str, *words: str, before: str = "true") -> Door:
        script = 'mount -t tmpfs -o size="$1" tmpfs "$0" && shift && ' + before
        script += ' && exec ./run_experiment.sh "$@"'
        return door("/usr/bin/unshare", "-m", "bash", "-c", script, str(folder), size, *words)

    return begin


def seen_inside(run: Door, folder: Path) -> Path:
    """Return a folder's path as seen from the run's mount namespace."""
    return Path(f"/proc/{run.process.pid}/root") / folder.relative_to("/")


def fill(file: Path, bytes_most: int) -> None:
    """Write until the file system is full."""
    block = bytes(1 << 20)
    with file.open("wb", buffering=0) as full:
        try:
            for _ in range(bytes_most >> 20):
                full.write(block)
        except OSError:
            return


def test_a_shell_of_the_user_s_changes_nothing_and_data_on_disk_is_reported(
    mounted: Mounted,
    nothing_left: NothingLeft,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {**HOSTILE, **LOCALE}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "procps").mkdir()
    (tmp_path / "procps/toprc").write_text("no configuration that top could read\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    words = (CALIBRATION, "1000", "5", "3", "1.0")
    run = mounted(processes.SHM, "64m", *words, before="umask 077 && ulimit -Sn 256")
    run.until(r"^\[4/6\]")
    for member in processes.members(settings.stack_name):
        given = member.process.environ()
        assert not given.keys() & HOSTILE.keys(), member.service
        assert given["LC_ALL"] == "C.UTF-8"
        # The database runs as another user, and psutil can't read the limits of that user's
        # processes.
        limits = Path(f"/proc/{member.process.pid}/limits").read_text()
        soft = re.search(r"^Max open files +(\d+)", limits, re.MULTILINE)
        assert soft and int(soft[1]) > 256, member.service
    found = ended_well(run)
    named = run.until("^Ignored from your environment: ")
    assert all(name in named for name in HOSTILE)
    assert found["data_in_memory"] is False
    nothing_left()


@pytest.fixture
def own_kafka(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a copy of Kafka, in a cache that shares all other parts."""
    parts = tmp_path / "cache" / "parts"
    parts.mkdir(parents=True)
    for part in (cache.root() / "parts").iterdir():
        if part.name.startswith("kafka-"):
            shutil.copytree(part, parts / part.name, ignore=shutil.ignore_patterns("made"))
        else:
            (parts / part.name).symlink_to(part)
    monkeypatch.setenv("RACETRACK_CACHE", str(parts.parent))
    folder = folder_of("kafka", read_versions())
    assert folder
    if not (folder / integrity.HASHES).exists():  # installed by an earlier version
        integrity.add_hashes(folder, integrity.files_in(folder))
    return folder


def test_a_damaged_jar_is_named_and_its_component_is_not_used_again(
    own_kafka: Path, door: Open, nothing_left: NothingLeft
) -> None:
    (jar,) = own_kafka.glob("libs/kafka-clients-*.jar")
    os.truncate(jar, jar.stat().st_size // 2)
    run = door("./run_experiment.sh", CALIBRATION, "1000", "5", "3", "1.0")
    assert run.wait() == 3
    assert own_kafka.name in run.output and f"libs/{jar.name}" in run.output
    assert "Traceback" not in run.output
    assert folder_of("kafka", read_versions()) is None  # so that the next call installs it
    nothing_left()


def test_a_full_tmpfs_ends_the_run_with_the_reason(
    mounted: Mounted, nothing_left: NothingLeft
) -> None:
    run = mounted(processes.SHM, str(ROOM), CALIBRATION, "300000", "30", "60", "1.0")
    run.until(r"^\[4/6\]")
    fill(seen_inside(run, processes.SHM) / "full", ROOM)
    ends_by_itself(run, "no space in /dev/shm: 1.1 GiB")
    outcome = run.record()["outcome"]
    assert outcome.startswith("no space in /dev/shm")
    nothing_left()


def test_a_full_disk_of_run_folders_ends_the_run(
    mounted: Mounted, nothing_left: NothingLeft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGS_FOLDER", str(tmp_path))
    run = mounted(tmp_path, "30m", CALIBRATION, "1000", "60", "3", "1.0")
    run.until(r"^\[4/6\]")
    record = (seen_inside(run, run.folder) / "run.json").open()
    fill(seen_inside(run, tmp_path) / "full", 40 << 20)
    ends_by_itself(run, "LOGS_FOLDER")
    with record:
        assert json.load(record)["outcome"] == "unfinished"
    nothing_left()


def ends_by_itself(run: Door, why: str) -> None:
    """Fail unless the run ends within seconds, and reports the reason without a traceback."""
    began_s = time.monotonic()
    assert run.wait() == 1, run.output
    assert time.monotonic() - began_s < ENDS_WITHIN_S
    assert why in run.output
    assert "Traceback" not in run.output
    assert "ok" not in [line.strip() for line in run.lines]
