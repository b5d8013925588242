"""Tests that the progress which an engine's script writes is read back correctly."""

import threading
from pathlib import Path

import pytest

from racetrack.engines.contract import DemoError, Progress, Summary
from racetrack.engines.shared.progress_log import updates_of

LOG = """\
#   RACETRACK failed timestamp=<ms>, listener=<dt or progress>, error=<a comment that was logged>
2026-11-20T18:04:43.123Z INFO  Server started
RACETRACK dt timestamp=1795193083123, total=42, max_received_at=1795193082999, dt_ms=124
: RACETRACK progress timestamp=1795193083124, partition=3, total=7, max_received_at=1795193082998
RACETRACK dt timestamp=17951930"""


def updates(folder: Path, log: str) -> list[Summary | Progress]:
    (folder / "deephaven.log").write_text(log)
    stop = threading.Event()
    stop.set()
    return list(updates_of(folder / "deephaven.log", stop))


def test_its_lines_among_others(tmp_path: Path) -> None:
    assert updates(tmp_path, LOG) == [
        Summary(1795193083123, 42, 1795193082999, 124.0),
        Progress(1795193083124, 3, 7, 1795193082998),
    ]


def test_a_table_that_failed_is_not_taken_for_a_quiet_one(tmp_path: Path) -> None:
    log = "RACETRACK failed timestamp=1, listener=dt, error=not JSON\n"
    with pytest.raises(DemoError, match="not JSON"):
        updates(tmp_path, log)
