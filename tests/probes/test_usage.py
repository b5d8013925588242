"""Tests of the kernel's account of a process and of containers: its true use, including that of its
ended children."""

import csv
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from racetrack.errors import RacetrackError
from racetrack.probes.usage import CgroupProbe, Meter, UsageProbe, cpu_times
from racetrack.results.folder import RunFolder
from tests.waiting import wait_until

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


class Account:
    """A fake account whose CPU time grows each time that it is read, unless its service is down."""

    def __init__(self) -> None:
        self.looks = 0
        self.is_down = False

    def cpu_s(self) -> float:
        if self.is_down:
            raise FileNotFoundError("cpuacct.usage")
        self.looks += 1
        return self.looks / 4

    def memory_bytes(self) -> int:
        return 3 << 29


def test_one_row_a_look_with_its_units(tmp_path: Path) -> None:
    up, down = Account(), Account()
    down.is_down = True
    folder = RunFolder(tmp_path, "steady")
    probe = CgroupProbe({"broker": up, "steadyd": down}, 0.01, folder)
    probe.start()
    wait_until(lambda: up.looks >= 3, "third look")
    down.is_down = False
    wait_until(lambda: down.looks >= 1, "look at the second")
    probe.check()
    probe.stop()
    rows = list(csv.DictReader((tmp_path / "cgroup.csv").open()))
    assert rows[0].keys() == {"at_ms", "service", "cpu_s", "memory_gib"}
    broker = [row for row in rows if row["service"] == "broker"]
    assert [float(row["cpu_s"]) for row in broker[:3]] == [0.25, 0.5, 0.75]
    assert {float(row["memory_gib"]) for row in rows} == {1.5}
    # The service that was down has rows from when it was up again.
    assert [row["service"] for row in rows[:3]] == ["broker"] * 3
    assert "steadyd" in {row["service"] for row in rows}
