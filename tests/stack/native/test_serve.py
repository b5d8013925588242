"""Tests of services in the foreground of a container: they start and stop together."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from racetrack.config import Settings
from racetrack.errors import RacetrackError
from racetrack.stack.native import serve
from racetrack.stack.native.serve import Foreground
from racetrack.stack.service import Context
from tests.stack.fake_service import FakeService
from tests.waiting import wait_until

WAITS = "touch up; exec sleep 1000"
DEAF = f"trap '' TERM; {WAITS}"  # which `sleep` inherits
ENDS = "touch up; exit 3"
FAILS = "exit 4"

MakeForeground = Callable[..., Foreground]


@pytest.fixture
def make(settings: Settings, tmp_path: Path) -> Iterator[MakeForeground]:
    made: list[Foreground] = []
    (tmp_path / "parts/kafka").mkdir(parents=True)

    def make(**limits: float) -> Foreground:
        made.append(Foreground(settings, tmp_path / "parts", tmp_path / "serve", **limits))
        return made[-1]

    yield make
    for each in made:
        each.end()


def test_it_is_ready_when_all_are(make: MakeForeground, tmp_path: Path) -> None:
    (tmp_path / "serve/mysql/data").mkdir(parents=True)  # of an earlier start
    (tmp_path / "serve/ready").touch()
    foreground = make()
    assert not list((tmp_path / "serve").iterdir())
    foreground.bring_up([FakeService("a", WAITS), FakeService("b", WAITS)])
    assert not (tmp_path / "serve/ready").exists()
    foreground.mark_ready()
    assert (tmp_path / "serve/ready").exists()


@pytest.mark.parametrize(
    ("script", "named"),
    [(ENDS, r"b .*ended.*3"), (FAILS, r"b did not start: it ended \(4\)")],
)
def test_it_ends_with_the_first_that_ends(make: MakeForeground, script: str, named: str) -> None:
    with pytest.raises(RacetrackError, match=named):
        serve.serve(make(), [FakeService("a", WAITS), FakeService("b", script)])


@pytest.mark.slow
def test_what_does_not_listen_is_killed(make: MakeForeground) -> None:
    foreground = make(grace_s=0.2)
    foreground.bring_up([FakeService("a", DEAF)])
    began = time.monotonic()
    foreground.end()
    assert time.monotonic() - began < 5


@pytest.mark.slow
def test_sigterm_ends_it_with_all_it_started(context: Context, tmp_path: Path) -> None:
    """Run the real program with a stand-in for Kafka that never answers."""
    (tmp_path / "jdk/bin/java").write_text("#!/bin/sh\ntouch started\nexec sleep 1000\n")
    (context.parts["kafka"] / "made").chmod(0o500)
    folders = {"PARTS": tmp_path / "parts", "WORK": tmp_path / "served"}
    process = subprocess.Popen(
        [sys.executable, "-m", "racetrack.stack.native.serve", "broker"],
        env={**os.environ, **{f"RACETRACK_{name}": str(path) for name, path in folders.items()}},
        stdout=subprocess.PIPE,
        text=True,
    )
    started = folders["WORK"] / "broker/started"
    wait_until(lambda: process.poll() is not None or started.exists(), "start")
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "ended on request" in said
