"""Tests of reading top's output: values as printed, added up by service, without the first
screen."""

import os
from pathlib import Path

import pytest

from racetrack.errors import RacetrackError
from racetrack.probes import top
from racetrack.results.folder import RunFolder

PRINTED = """\
top - 08:02:17 up 23 min,  0 user,  load average: 2.04, 1.55, 0.81
Tasks:   2 total,   0 running,   2 sleeping,   0 stopped,   0 zombie
%Cpu(s):  0.0 us,  0.0 sy,  0.0 ni,100.0 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st
KiB Mem : 24684084 total, 17713872 free,  3235100 used,  4283320 buff/cache
KiB Swap:        0 total,        0 free,        0 used. 21448984 avail Mem

  PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND
 1406 root      20   0 9999380 1048576  3028 S   0.0   0.0   0:00.07 java
 1407 root      20   0    5380 512.0m   3028 S   0.0   0.0   0:00.07 top - 1

top - 08:02:18 up 23 min,  0 user,  load average: 2.04, 1.55, 0.81
Tasks:   1 total,   0 running,   1 sleeping,   0 stopped,   0 zombie

  PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND
  1406 root      20   0   9.9g    2.0g  3028 R 150.5   8.5   0:00.07 java
"""


def test_screens_are_read_as_printed() -> None:
    first, second = top.parse_screens(PRINTED.splitlines())
    assert set(first) == {1406, 1407}
    assert first[1406] == top.Sample(cpu_pct=0.0, rss_gib=1.0)
    assert first[1407].rss_gib == 0.5
    assert second == {1406: top.Sample(cpu_pct=150.5, rss_gib=2.0)}


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, "steady", "1")


@pytest.mark.slow
def test_a_process_that_is_gone_is_an_error_not_a_zero(folder: RunFolder) -> None:
    with pytest.raises(RacetrackError, match="top"):
        top.take({"gone": [2**22 - 1]}, 1, 0.1, folder, "tests", lambda: None)


@pytest.mark.slow
def test_where_services_are_killed_on_purpose_all_that_ever_ran_is_added_up(
    folder: RunFolder,
) -> None:
    gone, here = 2**22 - 1, os.getpid()
    now: dict[str, list[int]] = {"engine": [gone], "dead": [gone]}

    def while_waiting() -> None:
        now["engine"] = [here]

    taken = top.take(now, 3, 0.2, folder, "tests", while_waiting, changing=lambda: now)
    lines = (folder.path / "top_samples.log").read_text().splitlines()
    assert lines[0].startswith("name=engine, sample=1, CPU_PCT=") and len(lines) == 6
    assert taken["engine"][-1].rss_gib > 0.001
    assert [sample.rss_gib for sample in taken["dead"]] == [0, 0, 0]
