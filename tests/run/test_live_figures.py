"""Tests of the current lag of traced views, and of the CPU time of browsers."""

import os
from pathlib import Path

import pytest

from racetrack.run.live.figures import BrowserMeter, oldest_missing_ms
from racetrack.workloads.contract import TracedView

PARTITIONS = 3
# The newest of 1,000 tracer events was due at 100 s; there are ten a second.
MARKS = {"newest": [1_000, 100_000], "rate": 10}


def view(parity: int | None, *, is_time: bool = False) -> TracedView:
    return TracedView("sold", "views", "item_id", "items", "pageviews", parity, is_time)


def numbers_in(parity: int | None, partition: int, until: int) -> list[int]:
    """Return the numbers of the tracer events up to `until` that are in a partition of the view."""
    return [
        n
        for n in range(until)
        if n // 2 % PARTITIONS == partition and (parity is None or n % 2 == parity)
    ]


@pytest.mark.parametrize("parity", [None, 0, 1])
@pytest.mark.parametrize("is_time", [False, True])
def test_the_oldest_missing_tracer_event_is_found(parity: int | None, is_time: bool) -> None:
    """The view has all tracer events up to number 899, and those of two partitions up to 949."""
    traced, values, missing = view(parity, is_time=is_time), {}, []
    for partition, until in enumerate((950, 900, 950)):
        known = numbers_in(parity, partition, until)
        due_ms = 100_000 - (999 - known[-1]) * 100
        values[traced.name, partition] = due_ms if is_time else len(known)
        missing.append(numbers_in(parity, partition, 1_000)[len(known)])
    expected_ms = 100_000 - (999 - min(missing)) * 100
    assert oldest_missing_ms(traced, values, MARKS, PARTITIONS) == pytest.approx(expected_ms)


def test_a_view_without_any_lacks_the_first() -> None:
    assert oldest_missing_ms(view(0), {}, MARKS, PARTITIONS) == pytest.approx(100)


def test_only_browsers_are_measured(tmp_path: Path) -> None:
    for pid, name in ((os.getpid(), "chromium"), (1, "java")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "comm").write_text(f"{name}\n")
    meter = BrowserMeter(tmp_path)
    assert meter.pct() is None
    sum(range(300_000))
    pct = meter.pct()
    assert pct is not None and pct >= 0
    assert BrowserMeter(tmp_path / str(os.getpid())).pct() is None
