"""Tests of the time until memory is used up, and of the time when the load must stop."""

from collections.abc import Callable
from pathlib import Path

import pytest

from racetrack.probes.heap import Heap, HeapProbe, NoLiveHeap
from racetrack.results.folder import RunFolder
from racetrack.run.live.load import Forecast, Outlook
from racetrack.units import BYTES_PER_GIB as GIB


def outlook_of(used: Callable[[float], float]) -> Outlook:
    """Return the outlook after five minutes for memory of 10 GiB, of which `used(seconds)` GiB are
    used."""
    now_s = 0.0
    forecast = Forecast("heap", lambda: (int(used(now_s) * GIB), 10 * GIB))
    found = None
    while now_s <= 300:
        found = forecast.at(now_s)
        now_s += 1
    assert found
    return found


def test_memory_that_does_not_grow_lasts() -> None:
    found = outlook_of(lambda _: 5)
    assert (found.left_s, found.warns, found.is_ending) == (None, False, False)
    assert found.as_text() == "heap: 5.00 of 10.00 GiB used, not growing"


def test_memory_that_grows_lasts_so_long_and_warns_in_time() -> None:
    found = outlook_of(lambda s: 2 + s / 100)
    assert found.left_s == pytest.approx(500, rel=0.01)
    assert not found.warns
    found = outlook_of(lambda s: 5 + s / 100)
    assert found.left_s == pytest.approx(200, rel=0.01)
    assert (found.warns, found.is_ending) == (True, False)
    assert found.as_text() == "heap: 8.00 of 10.00 GiB used, lasts 3 min at this rate"


def test_the_load_stops_before_memory_is_used_up() -> None:
    assert outlook_of(lambda s: 6.9 + s / 100).is_ending
    assert outlook_of(lambda s: 9.3 + s / 100_000).is_ending  # slow growth, but nearly full


def test_there_is_no_forecast_while_memory_settles() -> None:
    forecast = Forecast("machine", lambda: (int(now_s * GIB), 100 * GIB), settles_s=30)
    left_s = []
    for now_s in (0.0, 10.0, 30.0, 31.0):
        outlook = forecast.at(now_s)
        assert outlook
        left_s.append(outlook.left_s)
    assert left_s == [None, None, None, pytest.approx(69)]


def test_what_a_collection_leaves_is_the_content_of_a_heap(tmp_path: Path) -> None:
    now = [Heap(0, 100)]
    folder = RunFolder.create(tmp_path, "fake", "live")
    probe = HeapProbe(dict, folder, lambda _: now[0], lambda pid: pid == 1)
    floors = []
    for used in (20, 40, 15, 35, 18, 50):
        now[0] = Heap(used, 100)
        probe.take("engine", [1, 2])
        floors.append(probe.floors.get("engine"))
    assert floors == [None, None, *[Heap(15, 100)] * 2, *[Heap(18, 100)] * 2]
    now[0] = Heap(95, 100)  # nearly full, partly of garbage
    probe.take("engine", [1])
    assert probe.floors["engine"].used == 95
    assert (folder.path / "heap.csv").read_text().count(",engine,") == 7


def test_a_heap_that_can_not_be_read_is_reported_once_with_the_reason(tmp_path: Path) -> None:
    answers: list[Heap | None] = [None, None, Heap(20, 100), None]

    def read(_pid: int) -> Heap:
        if answer := answers.pop(0):
            return answer
        raise NoLiveHeap('it did not "listen" within 5 s')

    folder = RunFolder.create(tmp_path, "fake", "live")
    probe = HeapProbe(dict, folder, read, lambda _: True)
    for is_unknown in (True, True, False, True):
        probe.take("engine", [1])
        assert ("engine" in probe.unknown) == is_unknown
    assert probe.floors == {}
    rows = [line.split(",", 1)[1] for line in (folder.path / "heap.csv").read_text().splitlines()]
    reason = "engine,,,\"it did not 'listen' within 5 s\""
    assert rows == [reason, "engine,0.000000,0.000000,", reason]
