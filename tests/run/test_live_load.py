"""Tests of the time until memory is used up, and that a session's load stops before,
with a message."""

from pathlib import Path
from typing import cast

import pytest

from racetrack.live.contract import Action, Refused
from racetrack.probes.heap import Heap, HeapProbe
from racetrack.results.folder import RunFolder
from racetrack.run.live.load import Forecast, LiveLoad, MemoryWatch, Now, Outlook
from racetrack.run.live.record import SessionLog
from racetrack.run.session import Session
from racetrack.units import BYTES_PER_GIB as GIB
from tests.run.fakes import FakeLoad


class Memory:
    """Fake memory that lasts for a time that the test sets."""

    left_s: float | None = None

    def outlooks(self) -> list[Outlook]:
        return [Outlook("heap of deephaven", 3 * GIB, 4 * GIB, self.left_s)]

    def unknown(self) -> list[str]:
        return ["heap of pg: unknown, it does not listen"]


class Bench:
    def __init__(self, folder: RunFolder) -> None:
        self.memory, self.now = Memory(), Now()
        self.generator = FakeLoad(events=5_000, purchases=10, tracer_events=24)
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
    with pytest.raises(Refused, match="set the rate to 0"):
        bench.load.set_rate(Action("rate"), 1)
    bench.load.set_rate(Action("rate"), 0)
    bench.memory.left_s = None
    bench.load.watch_memory()
    bench.load.set_rate(Action("rate"), 1_000)
    assert bench.generator.rates["events"] == 1_000
    assert bench.log.segment.why == "rate 0/s → 1,000/s"


@pytest.mark.parametrize(
    ("used", "per_s", "left_s", "warns", "is_ending"),
    [
        (5, 0, None, False, False),
        (2, 1 / 100, 500, False, False),
        (5, 1 / 100, 200, True, False),
        (6.9, 1 / 100, 10, True, True),
        (9.3, 1 / 100_000, 69_700, False, True),  # slow growth, but nearly full
    ],
)
def test_memory_lasts_so_long_as_it_grows_and_warns_in_time(
    used: float, per_s: float, left_s: float | None, warns: bool, is_ending: bool
) -> None:
    """Memory of 10 GiB, of which `used` GiB are used at first, has grown for five minutes."""
    forecast = Forecast("heap", lambda: (int((used + per_s * now_s) * GIB), 10 * GIB))
    found = None
    for now_s in range(301):
        found = forecast.at(now_s)
    assert found
    assert found.left_s == (left_s and pytest.approx(left_s, rel=0.01))
    assert (found.warns, found.is_ending) == (warns, is_ending)


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
