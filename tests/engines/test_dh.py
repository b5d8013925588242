"""Deephaven's own lines: what sample_dt.py writes is read back as it was meant."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from racetrack.engines.contract import Progress, Summary
from racetrack.engines.dh import ENGINE

LOG = """\
2026-11-20T18:04:43.123Z INFO  Server started
RACETRACK dt timestamp=1795193083123, total=42, max_received_at=1795193082999, dt_ms=124
: RACETRACK progress timestamp=1795193083124, partition=3, total=7, max_received_at=1795193082998
RACETRACK dt timestamp=17951930"""


def test_its_lines_among_others(tmp_path: Path) -> None:
    (tmp_path / "deephaven.log").write_text(LOG)
    stack: Any = SimpleNamespace(log_of=lambda name: tmp_path / f"{name}.log")
    stop = threading.Event()
    stop.set()
    assert list(ENGINE.updates(stack, stop)) == [
        Summary(1795193083123, 42, 1795193082999, 124.0),
        Progress(1795193083124, 3, 7, 1795193082998),
    ]
