"""What the search for a limit runs next, and how near it comes on engines that are made up."""

import math
from dataclasses import replace

import numpy as np
import pytest

from racetrack.analysis.capacity import Work
from racetrack.run.phases import PACE
from racetrack.run.search import SHARES, Found, Held, find
from tests.run.fluid import Wavering, searched

CAPACITY_PER_S = 10_000.0
BUSY = Work((CAPACITY_PER_S,) * 5, youngest_s=10, oldest_s=20, idle_share=0)


class Engine:
    """One whose lag is 1 s up to a share of its capacity, 3 s up to another, 8 s above it."""

    def __init__(self, up_to: float, a_little_late_up_to: float) -> None:
        self._up_to, self._late_up_to = up_to, a_little_late_up_to
        self.work = BUSY
        self.asked: list[float] = []
        self.most_runs = 99
        self.offers = math.inf
        self.cycle_ms = 100.0

    def overload(self) -> Work:
        return self.work

    def hold(self, pageviews_per_s: int) -> Held:
        share = round(pageviews_per_s / CAPACITY_PER_S, 2)
        self.asked.append(share)
        lag_ms = 8_000 if share > self._late_up_to else 3_000 if share > self._up_to else 1_000
        return Held(lag_ms, self.cycle_ms, is_offered=pageviews_per_s <= self.offers)

    def has_time(self) -> bool:
        return len(self.asked) < self.most_runs

    def limit(self) -> Found:
        found = find(self, sessions=2)
        assert found is not None
        return found

    def rates(self) -> list[tuple[int | None, int | None]]:
        return [(one.held, one.failed) for one in self.limit().sustained]


def test_one_run_is_enough_for_who_sustains_nearly_all() -> None:
    engine = Engine(0.97, 0.99)
    assert engine.rates() == [(9_500, None), (9_500, None)]
    assert engine.asked == [0.95]


@pytest.mark.parametrize("share", SHARES[1:])
def test_the_rate_is_found_to_a_twentieth_of_the_capacity(share: float) -> None:
    engine = Engine(share, share)
    expected = (round(10_000 * share), round(10_000 * (share + 0.05)))
    assert engine.rates() == [expected, expected]
    assert len(engine.asked) == len(set(engine.asked)) <= 8


def test_each_bound_has_its_rate() -> None:
    engine = Engine(0.80, 0.90)
    assert engine.rates() == [(8_000, 8_500), (9_000, 9_500)]
    assert engine.asked == [0.95, 0.9, 0.8, 0.85]


def test_who_sustains_nothing_has_no_rate() -> None:
    engine = Engine(0, 0)
    assert engine.rates() == [(None, 500), (None, 500)]
    assert engine.limit().is_whole


def test_no_run_begins_without_time_for_it() -> None:
    engine = Engine(0.80, 0.90)
    engine.most_runs = 3
    found = engine.limit()
    assert not found.is_whole
    assert [(one.held, one.failed) for one in found.sustained] == [(8_000, 9_000), (9_000, 9_500)]


def test_a_bound_is_two_update_cycles_at_least() -> None:
    engine = Engine(0.80, 0.99)
    engine.cycle_ms = 1_600
    assert engine.rates() == [(9_500, None), (9_500, None)]


def test_a_rate_that_was_not_offered_is_no_failure() -> None:
    engine = Engine(0.97, 0.99)
    engine.offers = 8_200
    assert engine.rates() == [(8_000, None), (8_000, None)]


def test_an_engine_that_was_not_kept_busy_has_no_capacity() -> None:
    engine = Engine(0.97, 0.99)
    engine.work = replace(BUSY, idle_share=0.3)
    assert find(engine, sessions=2) is None
    assert engine.asked == []


@pytest.mark.slow
def test_a_wavering_capacity_is_found_in_time() -> None:
    engine = Wavering(noise=0.1, pause_s=1)
    rng = np.random.default_rng(3)
    found = [searched(engine, rng) for _ in range(100)]
    errors = np.array([one.error for one in found])
    assert abs(errors.mean()) < 0.01
    assert np.quantile(np.abs(errors), 0.95) < 0.07
    assert np.mean([one.covers for one in found]) > 0.8
    assert max(one.minutes for one in found) <= PACE.within_min
