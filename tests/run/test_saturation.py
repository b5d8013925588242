"""Tests of saturation on simulated engines: the load keeps a backlog of 5 to 30 s, an engine counts
as warm once its cost per event is constant, and a backlog is drained."""

from pathlib import Path
from typing import cast

import numpy as np
import pytest

from racetrack.analysis import capacity, curves
from racetrack.analysis.lag import age
from racetrack.config import load
from racetrack.errors import RacetrackError
from racetrack.results.folder import RunFolder
from racetrack.results.run import Window
from racetrack.run.saturation import (
    RateController,
    Saturation,
    SessionLoad,
    WarmUpDetector,
    drain,
)
from racetrack.run.session import LoadSample, Session
from simulations.fluid import LOOK_EVERY_S, Queue, SimulatedEngine
from tests.run.fluid_session import FakeClock, FluidSession

OVERLOADED_WITHIN_S = 90


def ages_s(
    engine: SimulatedEngine,
    seconds: float,
    start_per_s: int = 1_000,
    results_every_s: float = 0.0,
) -> list[float]:
    """Return the backlog's true age in each second, from when it first exceeded 5 s."""
    queue = Queue(engine, np.random.default_rng(7))
    steering = RateController(start_per_s, results_every_s)
    looks_at_s, due_at = 0.0, [(0.0, 0.0)]
    ages: list[float] = []
    while queue.now_s < seconds:
        queue.step()
        due_at.append((queue.due, queue.now_s))
        if queue.now_s >= looks_at_s:
            looks_at_s += LOOK_EVERY_S
            queue.offered_per_s = steering.next_per_s(queue.look())
            due, at_s = zip(*due_at, strict=True)
            age_s = queue.now_s - float(np.interp(queue.done, due, at_s))
            if ages or age_s > 5:
                assert ages or queue.now_s < OVERLOADED_WITHIN_S
                ages.append(age_s)
    return ages


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine",
    [
        SimulatedEngine(noise=0),
        SimulatedEngine(noise=0, per_s=300_000),
        SimulatedEngine(noise=0, per_s=1_500),
        SimulatedEngine(noise=0.1),
        SimulatedEngine(noise=0.1, pause_s=2),
        SimulatedEngine(noise=0.1, cycle_s=5),
    ],
    ids=str,
)
def test_the_backlog_stays_between_5_and_30_s(engine: SimulatedEngine) -> None:
    ages = ages_s(engine, 300)
    inside = [4 < age < 30 for age in ages]
    assert sum(inside) >= 0.99 * len(inside), (min(ages), max(ages))


@pytest.mark.slow
@pytest.mark.parametrize("start_per_s", [20_000, 40_000])
def test_an_engine_that_shows_windows_has_a_backlog(start_per_s: int) -> None:
    """Its backlog seems to be up to a window older than it is."""
    engine = SimulatedEngine(noise=0.1, cycle_s=10)
    ages = ages_s(engine, 600, start_per_s, results_every_s=10)[60:]
    assert 3 < min(ages) < max(ages) < 30


def test_a_window_that_takes_long_does_not_stop_the_load() -> None:
    steering = RateController(1_000, results_every_s=10)
    counted_at = [10_000 * (at_s // 10) for at_s in range(60)] + [50_000] * 60
    rates = [
        steering.next_per_s(LoadSample(at_s, 1_000 * at_s, counted, 0.0))
        for at_s, counted in enumerate(counted_at)
    ]
    assert min(rates) >= 100


def test_a_start_above_the_capacity_is_taken_back() -> None:
    ages = ages_s(SimulatedEngine(noise=0), 300, start_per_s=200_000)
    assert max(ages) < 40
    assert 10 < np.mean(ages[-100:]) < 20


def test_an_engine_that_stands_still_is_offered_little_more() -> None:
    steering = RateController(1_000)
    rates = [steering.next_per_s(LoadSample(at_s, 1_000 * at_s, 0, 0.0)) for at_s in range(60)]
    assert rates[0] == 1_000
    assert rates[-1] == 1


def is_warm_after(costs_s: list[float]) -> list[bool]:
    """Return whether the engine counts as warm every 10 s, given its CPU time per event."""
    warmth = WarmUpDetector(bin_s=10)
    used_s, found = 0.0, [warmth.is_flat(LoadSample(0, 0, 0, 0.0))]
    for number, cost_s in enumerate(costs_s, start=1):
        used_s += 1_000 * cost_s
        found.append(warmth.is_flat(LoadSample(10 * number, 0, 1_000 * number, used_s)))
    return found


def test_an_engine_is_warm_once_its_cost_is_flat() -> None:
    compiles = [9e-4, 5e-4, 3e-4, 2e-4]
    assert is_warm_after([*compiles, 1.95e-4, 2.05e-4]) == [*[False] * 6, True]


def test_a_cost_that_still_falls_is_not_flat() -> None:
    assert not any(is_warm_after([8e-4 * 0.8**n for n in range(8)]))


WARM_UP_S, LOW_S, FOR_S, HOLD_S, BATCH_S = 120.0, 10.0, 120.0, 60.0, 30.0
STEADY = SimulatedEngine(per_s=20_000, noise=0.02)


class Drive:
    """A session of a simulated engine, and its folder."""

    def __init__(self, logs: Path, engine: SimulatedEngine) -> None:
        self.clock = FakeClock()
        self.folder = RunFolder.create(logs, "fake", "phase")
        self.fluid = FluidSession(self.clock, engine, np.random.default_rng(5), self.folder)
        self.session = cast(Session, self.fluid)
        self.session.run_demo()
        self.load = SessionLoad(self.session, self.folder.path, load({}))

    def work_in(self, window: Window) -> capacity.Work:
        """Return the engine's throughput in a window."""
        recorded = curves.read(self.folder.path)
        return capacity.work(recorded, window.start_ms, window.end_ms, BATCH_S)


def test_an_overloaded_engine_shows_what_it_works(tmp_path: Path) -> None:
    at = Drive(tmp_path, STEADY)
    saturation = Saturation(at.load, at.folder.path, 1_000)
    saturation.warm_up(WARM_UP_S, LOW_S)
    window = saturation.measure(FOR_S, HOLD_S)
    assert window.seconds == pytest.approx(FOR_S, abs=2)
    work = at.work_in(window)
    assert work.per_s == pytest.approx(20_000, rel=0.01)
    assert work.is_capacity
    ages = age(curves.read(at.folder.path), window.start_ms, window.end_ms)
    assert 4_000 < ages.lowest_ms.min() < ages.highest_ms.max() < 31_000


def test_an_engine_whose_updates_grow_is_measured_when_they_have_grown(tmp_path: Path) -> None:
    """Each update takes in the whole backlog and has a fixed cost. While the backlog is small, that
    cost is a large share of an update's time, so the engine is slower than it can be."""
    growing = SimulatedEngine(per_s=300_000, noise=0.001, fixed_s=1.5)
    at = Drive(tmp_path, growing)
    saturation = Saturation(at.load, at.folder.path, 1_000)
    saturation.warm_up(WARM_UP_S, LOW_S)
    first = at.work_in(saturation.measure(FOR_S, HOLD_S))
    assert drain(at.load, 30_000)
    saturation.end()
    began_s = at.clock.now_s
    window = saturation.measure(FOR_S, HOLD_S)
    assert at.clock.now_s - window.seconds - began_s >= HOLD_S
    second = at.work_in(window)
    assert second.per_s == pytest.approx(first.per_s, rel=0.02)
    assert second.batches_per_s[0] == pytest.approx(second.per_s, rel=0.03)
    soon = at.work_in(Window(start_ms=window.start_ms - 45_000, end_ms=window.start_ms - 25_000))
    assert soon.per_s < 0.95 * second.per_s


def test_it_is_measured_once_the_engine_is_warm_or_reported_as_cold(tmp_path: Path) -> None:
    quick, slow, never = (Drive(tmp_path, STEADY) for _ in range(3))
    slow.fluid.cold_s = 35
    warmed = Saturation(slow.load, slow.folder.path, 15_000).warm_up(WARM_UP_S, LOW_S)
    at_once = Saturation(quick.load, quick.folder.path, 15_000).warm_up(WARM_UP_S, LOW_S)
    assert at_once.is_warm and warmed.is_warm
    assert at_once.took_s < warmed.took_s < WARM_UP_S
    cold = Saturation(never.load, never.folder.path, 15_000).warm_up(20, LOW_S)
    assert not cold.is_warm and 20 <= cold.took_s < 40


def test_who_can_not_be_overloaded_is_not_waited_for_without_end(tmp_path: Path) -> None:
    at = Drive(tmp_path, STEADY)
    at.fluid.most_per_s = 5_000
    with pytest.raises(RacetrackError, match=r"was not saturated within 240 s; .*--start"):
        Saturation(at.load, at.folder.path, 1_000).warm_up(WARM_UP_S, LOW_S)


@pytest.mark.parametrize(
    ("offered_per_s", "for_s", "next_per_s", "is_drained", "between_s"),
    [
        (30_000, 30, 19_000, True, (0, 60)),
        (60_000, 15, 60_000, True, (60, 120)),  # not beside that load, but without
        (60_000, 60, 10_000, False, (116, 124)),  # it is not waited for without end
    ],
)
def test_a_backlog_is_worked_off_before_a_rate_is_set(
    tmp_path: Path,
    offered_per_s: int,
    for_s: float,
    next_per_s: int,
    is_drained: bool,
    between_s: tuple[float, float],
) -> None:
    at = Drive(tmp_path, STEADY)
    at.load.offer(offered_per_s)
    at.session.watch(for_s, "gathering a backlog")
    began_s = at.clock.now_s
    assert drain(at.load, next_per_s) == is_drained
    assert between_s[0] < at.clock.now_s - began_s < between_s[1]
    look = at.session.load_sample()
    assert (0 <= look.due - look.counted <= next_per_s) == is_drained
