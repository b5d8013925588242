"""Tests that RateController keeps a backlog of 5 to 30 s, and that an engine counts as warm once
its cost per event is constant."""

import numpy as np
import pytest

from racetrack.run.saturation import RateController, WarmUpDetector
from racetrack.run.session import LoadSample
from simulations.fluid import LOOK_EVERY_S, Queue, SimulatedEngine

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
