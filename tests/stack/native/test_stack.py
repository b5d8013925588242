"""How a native stack ends."""

import signal
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import cast

import pytest

from racetrack.settings import load
from racetrack.stack import tmpfs
from racetrack.stack.native import leftovers
from racetrack.stack.native.service import NativeService
from racetrack.stack.native.stack import NativeStack
from racetrack.stack.native.startup import Running


def test_what_is_not_found_by_its_mark_is_ended_all_the_same() -> None:
    """A wait for it would have no end."""
    stack = NativeStack(load({"STACK_NAME": f"test-{uuid.uuid4().hex[:8]}"}))
    code = "import sys; sys.stdin.read()"
    unmarked = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    stack._running["any"] = Running(cast(NativeService, None), unmarked, Path("its.log"))
    said: list[str] = []
    stack.stop(said.append)
    assert unmarked.returncode == -signal.SIGKILL
    assert f"(pid {unmarked.pid}), which had been overlooked" in said[0]


def test_data_on_disk_is_said_and_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(leftovers, "SHM", tmp_path / "missing")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stack = NativeStack(load({"STACK_NAME": f"test-{uuid.uuid4().hex[:8]}"}))
    assert stack.data_in_memory == tmpfs.is_on_tmpfs(tmp_path)
    (folder,) = stack.data_folders()
    assert folder.path == tmp_path
    assert folder.name == str(tmpfs.mount_point(tmp_path))
    if not stack.data_in_memory:
        stack.prepare([], print)
        assert f"Data is on disk, in {tmp_path}: {tmp_path}/missing is too small" in (
            capsys.readouterr().out
        )
        assert "set TMPDIR" in folder.remedy
