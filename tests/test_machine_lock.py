"""Tests that a machine has only one run at a time, for all users and temporary folders."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from racetrack.config import REPO
from racetrack.errors import BusyError, UsageError
from racetrack.machine_lock import machine_lock

HOLD = """
import os, sys
from racetrack.machine_lock import machine_lock
if sys.argv[1:]:
    os.setuid(int(sys.argv[1]))
with machine_lock():
    print("held", flush=True)
    sys.stdin.read()
"""
NOBODY = "65534"


@pytest.fixture(autouse=True)
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of a lock for this test only, in a folder that is writable for all, like
    /tmp."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o011)
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    monkeypatch.setenv("MACHINE_LOCK", str(shared / "lock"))
    return shared / "lock"


@contextmanager
def holding(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Run another process that holds the lock until the block ends or it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, *arguments],
        cwd=REPO,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.communicate("")


def test_the_second_learns_who_holds_it_as_long_as_it_runs(tmp_path: Path) -> None:
    """Another temporary folder is no other machine, and a killed holder holds nothing."""
    with holding(TMPDIR=str(tmp_path)) as holder:
        with pytest.raises(BusyError, match=f"pid {holder.pid} "), machine_lock():
            pass
        holder.kill()
        holder.wait()
        with machine_lock():
            pass


@pytest.mark.skipif(os.getuid() != 0, reason="only root can run something as another user")
def test_another_user_is_excluded_and_can_have_it_afterwards(lock: Path) -> None:
    old = os.umask(0o077)
    try:
        with machine_lock():
            pass
    finally:
        os.umask(old)
    assert lock.stat().st_uid == os.getuid()
    with holding(NOBODY), pytest.raises(BusyError), machine_lock():
        pass


def test_only_a_regular_file_is_a_lock(lock: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    lock.symlink_to(victim)
    with pytest.raises(UsageError, match="MACHINE_LOCK") as refused, machine_lock():
        pass
    assert str(lock) in str(refused.value)
    assert victim.read_text() == "precious"


@pytest.mark.parametrize(
    "written", ["no json", json.dumps({"pid": 1, "command": "\x1b[2Jbad", "since": "\x07"})]
)
def test_what_others_wrote_into_it_does_no_harm(lock: Path, written: str) -> None:
    with holding():
        lock.write_text(written)
        with pytest.raises(BusyError) as refused, machine_lock():
            pass
    assert str(refused.value).isprintable()
