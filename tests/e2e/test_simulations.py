"""End-to-end tests that the simulations run."""

import os
import re
import subprocess
import sys

import pytest

from racetrack.config import REPO


@pytest.mark.parametrize(
    ("module", "arguments"), [("fluid", ["1"]), ("verdicts", ["1", "one partition of 16 stalled"])]
)
def test_every_simulation_runs(module: str, arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"simulations.{module}", *arguments],
        cwd=REPO,
        env={**os.environ, "PYTHONPATH": str(REPO)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d", done.stdout)
