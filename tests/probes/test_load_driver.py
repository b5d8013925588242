"""Tests that a load profile sets each rate at its time, and that the peak is recorded."""

import csv
import threading
from pathlib import Path

import pytest

from racetrack.probes.loadgen import LOAD_CSV, LoadDriver
from racetrack.results.folder import RunFolder
from racetrack.workloads.load_profile import LoadProfile, Spike

WITHIN_S = 10.0
EARLY_MS = 10  # difference of the two clocks, and rounding to milliseconds


class QuickSpike(Spike):
    """A spike that begins at once."""

    @property
    def peak_s(self) -> tuple[float, float]:
        return 0.1, 0.1 + self.for_s


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, "fake", "steps")


def driven(profile: LoadProfile, folder: RunFolder, rates: int) -> tuple[LoadDriver, list[int]]:
    """Return a driver that was stopped after it had set `rates` rates, and these rates."""
    offered: list[int] = []
    enough = threading.Event()

    def offer(rate: int) -> None:
        offered.append(rate)
        if len(offered) == rates:
            enough.set()

    driver = LoadDriver(profile, offer, folder)
    assert driver.record() is None
    driver.start()
    assert enough.wait(WITHIN_S)
    driver.stop()
    driver.check()
    return driver, offered


@pytest.mark.slow
def test_each_rate_is_set_at_its_time_and_written_and_a_peak_is_recorded(folder: RunFolder) -> None:
    driver, offered = driven(QuickSpike(1_000, 5_000, 0.2), folder, 3)
    assert offered == [1_000, 5_000, 1_000]
    with (folder.path / LOAD_CSV).open(newline="") as file:
        rows = [(int(row["at_ms"]), int(row["events_per_s"])) for row in csv.DictReader(file)]
    assert [rate for _, rate in rows] == offered
    log = driver.record()
    assert log and log.peak_from_ms and log.peak_until_ms
    assert log.peak_from_ms - log.from_ms >= 100 - EARLY_MS
    assert log.peak_until_ms - log.peak_from_ms >= 200 - EARLY_MS
    for (at_ms, _), after_ms in zip(rows, (0, 100, 300), strict=True):
        assert at_ms - log.from_ms >= after_ms - EARLY_MS
