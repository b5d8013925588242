"""How a native stack ends."""

import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import cast

from racetrack.settings import load
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
