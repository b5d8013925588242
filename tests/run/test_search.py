"""The order of a capacity search, and its accuracy on simulated engines."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from racetrack.analysis.capacity import Work
from racetrack.errors import RacetrackError
from racetrack.results.search import effective_bound_ms
from racetrack.run.search import SHARES, Found, TrialResult, find
from racetrack.run.trials import DURATIONS
from simulations.fluid import SimulatedEngine, searched

CAPACITY_PER_S = 10_000.0
BUSY = Work((CAPACITY_PER_S,) * 5, backlog_min_s=10, backlog_max_s=20, idle_share=0)


class Engine:
    """One whose lag is 1 s up to a share of its capacity, 3 s up to another, 8 s above it."""

    def __init__(self, up_to: float, a_little_late_up_to: float) -> None:
        self._up_to, self._late_up_to = up_to, a_little_late_up_to
        self.works: list[Work | RacetrackError] = [BUSY, BUSY]
        self.did: list[str] = []
        self.tried: list[float] = []
        self.most_holds = 99
        self.offers = math.inf
        self.update_interval_ms = 100.0

    @contextmanager
    def fresh(self) -> Iterator["Engine"]:
        self.did.append("begin")
        yield self

    def work(self) -> Work:
        self.did.append("work")
        made = self.works[self.did.count("work") - 1]
        if isinstance(made, RacetrackError):
            raise made
        return made

    def try_rate(self, per_s: int, bound_ms: float) -> TrialResult:
        self.did.append(f"hold for {bound_ms:,.0f} ms")
        share = round(per_s / CAPACITY_PER_S, 2)
        self.tried.append(share)
        lag_ms = 8_000 if share > self._late_up_to else 3_000 if share > self._up_to else 1_000
        ended_early = lag_ms > effective_bound_ms(bound_ms, self.update_interval_ms)
        is_offered = per_s <= self.offers
        return TrialResult(math.inf if ended_early else lag_ms, self.update_interval_ms, is_offered)

    def has_time_for_trial(self) -> bool:
        return len(self.tried) < self.most_holds

    def limit(self) -> Found:
        found = find(self)
        assert found is not None
        return found

    def rates(self) -> list[tuple[int | None, int | None]]:
        return [(one.sustained_per_s, one.failed_per_s) for one in self.limit().sustained]


def test_one_rate_is_enough_for_who_sustains_nearly_all() -> None:
    engine = Engine(0.97, 0.99)
    assert engine.rates() == [(9_500, None), (9_500, None)]
    assert engine.tried == [0.95]


@pytest.mark.parametrize("share", SHARES[1:])
def test_the_rate_is_found_to_a_twentieth_of_the_capacity(share: float) -> None:
    engine = Engine(share, share)
    expected = (round(10_000 * share), round(10_000 * (share + 0.05)))
    assert engine.rates() == [expected, expected]
    assert len(engine.tried) == len(set(engine.tried)) <= 8


def test_each_bound_has_its_rate() -> None:
    engine = Engine(0.80, 0.90)
    assert engine.rates() == [(8_000, 8_500), (9_000, 9_500)]
    assert engine.tried == [0.95, 0.9, 0.8, 0.85]
    bounds = [f"hold for {bound} ms" for bound in ("5,000", "5,000", "2,000", "2,000")]
    assert engine.did[3:-1] == bounds


def test_who_sustains_nothing_has_no_rate() -> None:
    engine = Engine(0, 0)
    assert engine.rates() == [(None, 500), (None, 500)]
    assert Engine(0, 0).limit().is_whole


def test_no_rate_is_begun_without_time_for_it() -> None:
    engine = Engine(0.80, 0.90)
    engine.most_holds = 3
    found = engine.limit()
    assert not found.is_whole
    assert [(one.sustained_per_s, one.failed_per_s) for one in found.sustained] == [
        (8_000, 9_000),
        (9_000, 9_500),
    ]
    assert engine.did[-1] == "work"


def test_a_bound_is_two_update_cycles_at_least() -> None:
    engine = Engine(0.80, 0.99)
    engine.update_interval_ms = 1_600
    assert engine.rates() == [(9_500, None), (9_500, None)]


def test_a_rate_that_was_not_offered_is_no_failure() -> None:
    engine = Engine(0.97, 0.99)
    engine.offers = 8_200
    assert engine.rates() == [(8_000, None), (8_000, None)]


def test_capacity_is_of_both_runs() -> None:
    engine = Engine(0.97, 0.99)
    engine.works[1] = replace(BUSY, batches_per_s=(9_000.0,) * 5)
    assert engine.limit().capacity.per_s == pytest.approx(9_500)


def test_what_is_known_stands_if_the_second_run_fails() -> None:
    """As with an engine that keeps all that it gets, and runs out of memory there."""
    engine = Engine(0.80, 0.90)
    engine.works[1] = RacetrackError("out of memory")
    found = engine.limit()
    assert found.capacity.per_s == CAPACITY_PER_S
    assert [(one.sustained_per_s, one.failed_per_s) for one in found.sustained] == [
        (8_000, 8_500),
        (9_000, 9_500),
    ]
    assert not found.is_whole
    assert str(found.failed) == "out of memory"


@pytest.mark.parametrize("run", [0, 1])
def test_an_engine_that_was_not_kept_busy_has_no_capacity(run: int) -> None:
    engine = Engine(0.97, 0.99)
    engine.works[run] = replace(BUSY, idle_share=0.3)
    assert find(engine) is None
    assert engine.tried == ([] if run == 0 else [0.95])


@pytest.mark.slow
def test_a_wavering_capacity_is_found_in_time() -> None:
    engine = SimulatedEngine(noise=0.1, pause_s=1)
    rng = np.random.default_rng(3)
    found = [searched(engine, rng) for _ in range(100)]
    errors = np.array([one.error for one in found])
    assert abs(errors.mean()) < 0.01
    assert np.quantile(np.abs(errors), 0.95) < 0.07
    assert np.mean([one.covers for one in found]) > 0.8
    assert max(one.minutes for one in found) <= DURATIONS.within_s / 60
