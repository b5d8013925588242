"""Tests of the time until memory is used up, and that a session's load stops before,
with a message."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from racetrack.live.contract import Action, Refused
from racetrack.probes.heap import Heap, HeapProbe, NoLiveHeap
from racetrack.results.folder import RunFolder
from racetrack.run.live.load import Forecast, LiveLoad, MemoryWatch, Now, Outlook
from racetrack.run.live.record import SessionLog
from racetrack.run.session import Session
from racetrack.units import BYTES_PER_GIB as GIB


class Generator:
    """A session that only records its load."""

    def __init__(self) -> None:
        self.rates = {"events": 5_000, "purchases": 10, "tracer_events": 24}

    @property
    def arrivals(self) -> "Generator":
        return self

    @property
    def counts(self) -> dict[str, Any]:
        return {kind: {"rate": rate} for kind, rate in self.rates.items()}

    def offer(self, per_s: int, of: str = "events") -> None:
        self.rates[of] = per_s

    def end_load(self) -> None:
        pass


class Memory:
    """Fake memory that lasts for a time that the test sets."""

    left_s: float | None = None

    def outlooks(self) -> list[Outlook]:
        return [Outlook("heap of deephaven", 3 * GIB, 4 * GIB, self.left_s)]

    def unknown(self) -> list[str]:
        return ["heap of pg: unknown, it does not listen"]


class Bench:
    def __init__(self, folder: RunFolder) -> None:
        self.generator, self.memory, self.now = Generator(), Memory(), Now()
        self.log = SessionLog(folder)
        self.load = LiveLoad(
            self.now,
            cast(Session, self.generator),
            self.log,
            (),
            cast(MemoryWatch, self.memory),
            lambda _: None,
        )

    def texts_of(self, kind: str) -> list[str]:
        return [event["text"] for event in self.log.after(0) if event["kind"] == kind]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(RunFolder.create(tmp_path, "fake", "live"))


def test_memory_that_lasts_less_than_five_minutes_is_warned_of_once(bench: Bench) -> None:
    for left_s in (600, 299, 250):
        bench.memory.left_s = left_s
        bench.load.watch_memory()
    (warning,) = bench.texts_of("warning")
    assert "heap of deephaven" in warning and "lasts 5 min" in warning
    assert bench.generator.rates["events"] == 5_000


def test_before_memory_runs_out_all_rates_are_set_to_0(bench: Bench) -> None:
    bench.memory.left_s = 15
    bench.load.watch_memory()
    bench.load.watch_memory()  # the load has stopped already
    assert bench.generator.rates == {"events": 0, "purchases": 0, "tracer_events": 24}
    assert "the session set the rate to 0" in bench.now.load_stopped
    assert bench.texts_of("load_stopped") == [bench.now.load_stopped]

    def change(per_s: int) -> None:
        bench.load.set_rate(Action("rate"), per_s)

    with pytest.raises(Refused, match="set the rate to 0"):
        change(1)
    change(0)
    bench.memory.left_s = None
    bench.load.watch_memory()
    change(1_000)
    assert bench.generator.rates["events"] == 1_000
    assert bench.log.segment.why == "rate 0/s → 1,000/s"


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


def test_memory_lasts_so_long_as_it_grows_and_warns_in_time() -> None:
    found = outlook_of(lambda _: 5)
    assert (found.left_s, found.warns, found.is_ending) == (None, False, False)
    found = outlook_of(lambda s: 2 + s / 100)
    assert found.left_s == pytest.approx(500, rel=0.01)
    assert not found.warns
    found = outlook_of(lambda s: 5 + s / 100)
    assert found.left_s == pytest.approx(200, rel=0.01)
    assert (found.warns, found.is_ending) == (True, False)
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
