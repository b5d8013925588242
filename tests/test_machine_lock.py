"""One run at a time: the second is told who holds the machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from racetrack.errors import BusyError
from racetrack.machine_lock import machine_lock

HOLD = """
import sys
from racetrack.machine_lock import machine_lock
with machine_lock():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> subprocess.Popen[str]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    return process


def test_the_second_is_told_who_holds_it(holder: subprocess.Popen[str]) -> None:
    with pytest.raises(BusyError, match=f"pid {holder.pid} "), machine_lock():
        pass
    holder.communicate("")
    with machine_lock():
        pass


def test_a_killed_holder_holds_nothing(holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.communicate()
    with machine_lock():
        pass
