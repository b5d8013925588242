"""Tests of the kernel's account of a process: its true use, including that of its ended
children."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from racetrack.errors import RacetrackError
from racetrack.probes.usage import Meter, UsageProbe, cpu_times
from racetrack.results.folder import RunFolder

BURN = "import time\nwhile time.process_time() < 0.3: pass"


def test_cpu_of_a_child_that_was_waited_for_still_counts() -> None:
    meter = Meter(lambda: {"tests": [os.getpid()]})
    before = cpu_times(meter)["tests"]
    subprocess.run([sys.executable, "-c", BURN], check=True)
    used = cpu_times(meter)["tests"].since(before)
    assert used.user + used.system >= 0.28  # rounded to ticks


def test_what_a_killed_process_has_used_stays_in_the_account() -> None:
    busy = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ntime.sleep(60)"
    running: list[int] = []
    meter = Meter(lambda: {"engine": running, "broker": [os.getpid()]})
    with subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE) as first:
        assert first.stdout
        first.stdout.readline()
        running[:] = [first.pid]
        with meter.killing(["engine", "not measured"]):
            first.kill()
            running.clear()
    dead = meter.read()["engine"]
    assert dead.cpu_s >= 0.28  # rounded to ticks
    assert dead.rss_gib == 0
    with subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE) as second:
        assert second.stdout
        second.stdout.readline()
        running[:] = [second.pid]
        meter.refresh()
        both = meter.read()["engine"]
        second.kill()
    assert both.cpu_s >= dead.cpu_s + 0.28
    assert both.rss_gib > 0


def test_a_failing_probe_is_noticed(tmp_path: Path) -> None:
    def gone() -> dict[str, list[int]]:
        raise LookupError("no such service")

    folder = RunFolder.create(tmp_path, "steady", "1")
    probe = UsageProbe(Meter(gone), 0.05, folder)
    probe.start()
    with pytest.raises(RacetrackError, match=r"CPU and memory.*no such service"):
        for _ in range(500):
            probe.check()
            threading.Event().wait(0.01)
