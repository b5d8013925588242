"""Tests that a session's load stops before memory runs out, with a message."""

from pathlib import Path
from typing import Any, cast

import pytest

from racetrack.live.contract import Action, Refused
from racetrack.results.folder import RunFolder
from racetrack.run.live.load import LiveLoad, MemoryWatch, Now, Outlook
from racetrack.run.live.record import SessionLog
from racetrack.run.session import Session
from racetrack.units import BYTES_PER_GIB as GIB


class Generator:
    """A session that only records its load."""

    def __init__(self) -> None:
        self.rates = {"pageviews": 5_000, "purchases": 10, "tracer_events": 24}

    @property
    def arrivals(self) -> "Generator":
        return self

    @property
    def counts(self) -> dict[str, Any]:
        return {kind: {"rate": rate} for kind, rate in self.rates.items()}

    def offer(self, per_s: int, of: str = "pageviews") -> None:
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
    assert warning == "heap of deephaven: 3.00 of 4.00 GiB used, lasts 5 min at this rate"
    assert bench.generator.rates["pageviews"] == 5_000


def test_before_memory_runs_out_all_rates_are_set_to_0(bench: Bench) -> None:
    bench.memory.left_s = 15
    bench.load.watch_memory()
    bench.load.watch_memory()  # the load has stopped already
    assert bench.generator.rates == {"pageviews": 0, "purchases": 0, "tracer_events": 24}
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
    assert bench.generator.rates["pageviews"] == 1_000
    assert bench.log.segment.why == "rate 0/s → 1,000/s"
