"""Tests of a capacity search's order, and of its accuracy on simulated engines."""

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
    """A fake engine. Its lag is 1 s up to a share of its capacity, 3 s up to a second share, and 8
    s above."""

    def __init__(
        self,
        up_to: float,
        a_little_late_up_to: float,
        *,
        offers: float = math.inf,
        update_interval_ms: float = 100.0,
    ) -> None:
        self._up_to, self._late_up_to = up_to, a_little_late_up_to
        self.works: list[Work | RacetrackError] = [BUSY, BUSY]
        self.did: list[str] = []
        self.tried: list[float] = []
        self.most_holds = 99
        self.offers = offers
        self.update_interval_ms = update_interval_ms

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


@pytest.mark.parametrize(
    ("up_to", "late_up_to", "of_engine", "rates"),
    [
        (0.97, 0.99, {}, [(9_500, None), (9_500, None)]),
        (0.80, 0.90, {}, [(8_000, 8_500), (9_000, 9_500)]),
        (0, 0, {}, [(None, 500), (None, 500)]),
        # Updates every 1.6 s raise the bound of 2 s to two intervals, so a lag of 3 s is within it.
        (0.80, 0.99, {"update_interval_ms": 1_600}, [(9_500, None), (9_500, None)]),
        # A rate that the generator could not offer does not count as failed.
        (0.97, 0.99, {"offers": 8_200}, [(8_000, None), (8_000, None)]),
    ],
)
def test_each_bound_has_its_rate(
    up_to: float,
    late_up_to: float,
    of_engine: dict[str, float],
    rates: list[tuple[int | None, int | None]],
) -> None:
    found = Engine(up_to, late_up_to, **of_engine).limit()
    assert found.is_whole
    assert [(one.sustained_per_s, one.failed_per_s) for one in found.sustained] == rates


def test_no_more_rates_are_tried_than_needed() -> None:
    fast, slow = Engine(0.97, 0.99), Engine(0.80, 0.90)
    fast.limit()
    slow.limit()
    assert fast.tried == [0.95]
    assert slow.tried == [0.95, 0.9, 0.8, 0.85]
    bounds = [f"hold for {bound} ms" for bound in ("5,000", "5,000", "2,000", "2,000")]
    assert slow.did[3:-1] == bounds


@pytest.mark.parametrize("share", SHARES[1:])
def test_the_rate_is_found_to_a_twentieth_of_the_capacity(share: float) -> None:
    engine = Engine(share, share)
    expected = (round(10_000 * share), round(10_000 * (share + 0.05)))
    assert engine.rates() == [expected, expected]
    assert len(engine.tried) == len(set(engine.tried)) <= 8


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


def test_capacity_is_of_both_runs() -> None:
    engine = Engine(0.97, 0.99)
    engine.works[1] = replace(BUSY, batches_per_s=(9_000.0,) * 5)
    assert engine.limit().capacity.per_s == pytest.approx(9_500)


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
