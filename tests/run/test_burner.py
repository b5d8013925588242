"""The program that disturbs on purpose uses what it says, is no child of the harness, and ends."""

import threading
from pathlib import Path

import psutil
import pytest

from racetrack.clock import now_ms
from racetrack.run.burner import burning, burnt_pct


def burners(file: Path) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if str(file) in (process.info["cmdline"] or ())
    ]


def test_it_burns_what_it_says_beside_the_harness_and_ends(tmp_path: Path) -> None:
    file = tmp_path / "burnt.csv"
    with burning(0.2, file):
        threading.Event().wait(0.5)
        (burner,) = burners(file)
        assert burner not in psutil.Process().children(recursive=True)
        start_ms = now_ms()
        began_s = sum(burner.cpu_times()[:2])
        threading.Event().wait(2.0)
        end_ms, used_s = now_ms(), sum(burner.cpu_times()[:2]) - began_s
    burner.wait(5)
    assert burnt_pct(file, start_ms, end_ms) == pytest.approx(
        100_000 * used_s / (end_ms - start_ms), abs=2
    )
    assert used_s == pytest.approx(0.4, abs=0.15)
