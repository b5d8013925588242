"""Tests of the recorded CPU time and memory of containers, one row at a time, while containers come
and go."""

import csv
from pathlib import Path

from racetrack.probes.usage import CgroupProbe
from racetrack.results.folder import RunFolder
from tests.waiting import wait_until


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
