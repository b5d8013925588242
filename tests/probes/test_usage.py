"""Tests of the kernel's account of a process and of containers: its true use, including that of its
ended children."""

import csv
import os
import threading
from pathlib import Path

import pytest

from racetrack.errors import RacetrackError
from racetrack.probes.usage import CgroupProbe, Meter, UsageProbe, cpu_times
from racetrack.results.folder import RunFolder
from tests.probes.burning import LEAST_S, Account, burn, burnt
from tests.waiting import wait_until


@pytest.mark.slow
def test_cpu_of_a_child_that_was_waited_for_still_counts() -> None:
    meter = Meter(lambda: {"tests": [os.getpid()]})
    before = cpu_times(meter)["tests"]
    burn()
    used = cpu_times(meter)["tests"].since(before)
    assert used.user + used.system >= LEAST_S


@pytest.mark.slow
def test_what_a_killed_process_has_used_stays_in_the_account() -> None:
    running: list[int] = []
    meter = Meter(lambda: {"engine": running, "broker": [os.getpid()]})
    with burnt() as first:
        running[:] = [first.pid]
        with meter.killing(["engine", "not measured"]):
            first.kill()
            running.clear()
    dead = meter.read()["engine"]
    assert dead.cpu_s >= LEAST_S
    assert dead.rss_gib == 0
    with burnt() as second:
        running[:] = [second.pid]
        meter.refresh()
        both = meter.read()["engine"]
    assert both.cpu_s >= dead.cpu_s + LEAST_S
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


def test_one_row_a_look_with_its_units(tmp_path: Path) -> None:
    up, down = Account(grows_s=0.25), Account(None)
    probe = CgroupProbe({"broker": up, "steadyd": down}, 0.01, RunFolder(tmp_path, "steady"))

    def rows() -> list[dict[str, str]]:
        return list(csv.DictReader((tmp_path / "cgroup.csv").read_text().splitlines()))

    probe.start()
    wait_until(lambda: len(rows()) >= 3, "third look")
    down.used_s = 0.0
    wait_until(lambda: rows()[-1]["service"] == "steadyd", "look at the second")
    probe.check()
    probe.stop()
    assert rows()[0].keys() == {"at_ms", "service", "cpu_s", "memory_gib"}
    # The service that was down has rows from when it was up again.
    assert [row["service"] for row in rows()[:3]] == ["broker"] * 3
    assert [float(row["cpu_s"]) for row in rows()[:3]] == [0.25, 0.5, 0.75]
    assert {float(row["memory_gib"]) for row in rows()} == {1.5}
