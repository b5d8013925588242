"""Tests of a capacity that is programmed into the calibration engine: its mean, variation and
pauses over a long simulated time."""

from dataclasses import replace
from itertools import takewhile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from racetrack.engines.cal.capacity import STEP_S, Capacity, stretches
from racetrack.engines.cal.consumer import Counting
from racetrack.results.defects import InjectedDefect

NOISE = InjectedDefect(capacity_per_s=8_000, capacity_noise_pct=10, capacity_noise_tau_s=8, seed=1)
PAUSES = InjectedDefect(capacity_per_s=8_000, pause_ms=500, pause_every_s=10, seed=1)
BOTH = replace(NOISE, pause_ms=500, pause_every_s=10)
LONG_S = 40_000


def grown(defect: InjectedDefect, seed: int, every_s: float, until_s: float) -> NDArray[np.float64]:
    """Return the number of pageviews that the capacity allows in each of consecutive intervals of
    `every_s` seconds."""
    capacity = Capacity(defect, seed)
    at_s = np.arange(0, until_s + every_s / 2, every_s)
    return np.diff([capacity.work_by(float(at)) for at in at_s])


@pytest.mark.slow
@pytest.mark.parametrize("defect", [NOISE, PAUSES, BOTH], ids=str)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_mean_over_a_long_time_is_as_programmed(defect: InjectedDefect, seed: int) -> None:
    counted_per_s = float(np.mean(grown(defect, seed, 1.0, LONG_S)))
    assert counted_per_s == pytest.approx(defect.mean_capacity_per_s, rel=0.01)


@pytest.mark.slow
def test_the_swings_are_as_large_and_as_long_as_programmed() -> None:
    levels = grown(NOISE, 3, STEP_S, LONG_S) / STEP_S / NOISE.capacity_per_s
    assert np.std(levels) == pytest.approx(0.10, rel=0.05)
    lag = round(NOISE.capacity_noise_tau_s / STEP_S)
    after_tau = np.corrcoef(levels[:-lag], levels[lag:])[0, 1]
    assert after_tau == pytest.approx(np.exp(-1), abs=0.03)


def test_pauses_are_as_long_and_as_frequent_as_programmed() -> None:
    ends = [
        0.0,
        *(s for s, _ in takewhile(lambda stretch: stretch[0] < 50_000, stretches(PAUSES, 5))),
    ]
    lengths = np.diff(ends)
    working, paused = lengths[0::2], lengths[1::2]
    assert paused == pytest.approx(0.5)
    assert np.mean(working) == pytest.approx(9.5, rel=0.05)
    assert np.std(working) == pytest.approx(9.5, rel=0.05)  # exponential: deviation = mean


def test_a_seed_determines_which_swings_and_pauses_they_are() -> None:
    first, again, other = (grown(BOTH, seed, 1.0, 60) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@given(
    looks_ms=st.lists(st.integers(1, 400), min_size=1, max_size=60),
    seed=st.integers(1, 10_000),
    per_s=st.integers(1, 5_000),
    varies=st.booleans(),
)
def test_while_something_waits_the_integral_of_the_capacity_is_counted(
    looks_ms: list[int], seed: int, per_s: int, varies: bool
) -> None:
    steady = InjectedDefect(capacity_per_s=per_s, seed=seed)
    defect = replace(BOTH, capacity_per_s=per_s, pause_every_s=2, seed=seed) if varies else steady
    counting, programmed, now_ms = Counting(2, defect), Capacity(defect, seed), 0
    for look_ms in looks_ms:
        now_ms += look_ms
        for partition in range(2):
            counting.add(partition, [0] * (2 * per_s * look_ms // 1000 + 1))
        counting.count(now_ms, now_ms / 1000)
        due = programmed.work_by(now_ms / 1000) if varies else per_s * now_ms / 1000
        # The pageview in progress is not counted yet, so one may be missing. (0.001 is for
        # rounding.)
        assert due - 1.001 < sum(counting.total) < due + 0.001
