"""Tests of the offset of clocks of services that run elsewhere."""

import random

import pytest

from racetrack.stack.contract import ServiceClock
from racetrack.stack.elsewhere import ClockReading, clock_by

NOW_MS = 1_764_000_000_000.0


def reading(there_ms: float, back_ms: float, offset_ms: float = 0.0) -> ClockReading:
    at_ms = NOW_MS + there_ms + offset_ms
    return ClockReading(NOW_MS, NOW_MS + there_ms + back_ms, at_ms, at_ms)


def test_the_true_offset_is_within_the_uncertainty() -> None:
    chance = random.Random(1)  # noqa: S311
    for _ in range(200):
        offset_ms = chance.uniform(-1000, 1000)
        trips = [(chance.expovariate(0.1), chance.expovariate(0.02)) for _ in range(20)]
        clock = clock_by("it", [reading(*trip, offset_ms) for trip in trips])
        assert abs(clock.offset_ms - offset_ms) <= clock.uncertainty_ms + 0.001
        assert clock.uncertainty_ms <= min(map(sum, trips)) / 2 + 0.001


def test_the_clock_of_a_service_on_several_nodes_covers_theirs() -> None:
    clocks = [ServiceClock("a", 3.0, 1.0), ServiceClock("b", -2.0, 0.5)]
    assert ServiceClock.covering("the broker", clocks) == ServiceClock("the broker", 0.75, 3.25)
    assert ServiceClock.covering("a", clocks[:1]) == clocks[0]


def test_a_clock_that_was_set_during_the_measurement_is_uncertain() -> None:
    clock = clock_by("it", [reading(1, 1, 0), reading(1, 1, 100)])
    assert clock.uncertainty_ms >= 50
    assert clock.offset_ms == pytest.approx(50)
