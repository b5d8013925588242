"""Tests of the descent to sustained rates, and of a search's accuracy on simulated engines."""

import math

import numpy as np
import pytest

from racetrack.run.descent import SHARES, Descent, TrialResult
from simulations.fluid import SEARCH, SimulatedEngine, searched

BOUNDS_MS = (2_000.0, 5_000.0)
Found = list[tuple[float | None, float | None]]


class Engine:
    """A fake engine. Its lag is 1 s up to a share of its capacity, 3 s up to a second share, and 8
    s above."""

    def __init__(self, up_to: float, late_up_to: float, *, offers: float = math.inf) -> None:
        self._up_to, self._late_up_to, self._offers = up_to, late_up_to, offers
        self.descent, self.tried = Descent(BOUNDS_MS), list[tuple[float, float]]()

    def search(self, most: int = 99) -> Found:
        """Try at most this many rates; return the shares that were sustained and that failed."""
        while (trial := self.descent.wanted()) and len(self.tried) < most:
            self.tried.append((trial.share, trial.bound_ms))
            self.descent.take(trial.share, self.attempt(trial.share, trial.bound_ms))
        found = [self.descent.sustained(bound_ms) for bound_ms in BOUNDS_MS]
        return [(one.share, one.failed) for one in found]

    def attempt(self, share: float, bound_ms: float) -> TrialResult:
        lag_ms = 8_000 if share > self._late_up_to else 3_000 if share > self._up_to else 1_000
        ended_early = lag_ms > bound_ms
        return TrialResult(math.inf if ended_early else lag_ms, share <= self._offers)


@pytest.mark.parametrize(
    ("up_to", "late_up_to", "shares", "tried"),
    [
        (0.97, 0.99, [(0.95, None), (0.95, None)], [(0.95, 5_000)]),
        (
            0.80,
            0.90,
            [(0.80, 0.85), (0.90, 0.95)],
            [(0.95, 5_000), (0.9, 5_000), (0.8, 2_000), (0.85, 2_000)],
        ),
        (0, 0, [(None, 0.05), (None, 0.05)], None),
    ],
)
def test_each_bound_has_its_rate_and_no_more_are_tried_than_needed(
    up_to: float, late_up_to: float, shares: Found, tried: list[tuple[float, float]] | None
) -> None:
    engine = Engine(up_to, late_up_to)
    assert engine.search() == shares
    assert all(engine.descent.sustained(bound_ms).is_final for bound_ms in BOUNDS_MS)
    assert tried in (None, engine.tried)


def test_a_rate_that_the_generator_could_not_offer_is_no_failure_of_the_engine() -> None:
    engine = Engine(0.97, 0.99, offers=0.82)
    assert engine.search() == [(0.80, None), (0.80, None)]
    assert not engine.descent.sustained(2_000).is_final


@pytest.mark.parametrize("share", SHARES[1:])
def test_the_rate_is_found_to_a_twentieth_of_the_capacity(share: float) -> None:
    engine = Engine(share, share)
    expected = (share, round(share + 0.05, 2))
    assert engine.search() == [expected, expected]
    assert len(engine.tried) == len(set(engine.tried)) <= 8


@pytest.mark.slow
def test_a_varying_capacity_is_found_in_time() -> None:
    engine = SimulatedEngine(noise=0.1, pause_s=1)
    rng = np.random.default_rng(3)
    found = [searched(engine, rng) for _ in range(100)]
    errors = np.array([one.error for one in found])
    assert abs(errors.mean()) < 0.01
    assert np.quantile(np.abs(errors), 0.95) < 0.07
    assert np.mean([one.covers for one in found]) > 0.8
    assert max(one.minutes for one in found) <= SEARCH.within_s / 60
