"""Searches at like speed: what was put into made-up moments comes out."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from racetrack.analysis.like_speed import Observation, likened

FASTEST = 880.0


def moments(
    levels: tuple[float, ...] = (100.0, 110.0, 90.0),
    power: float = 1.0,
    growth: float = 0.0,
    noise: float = 0.0,
    seed: int = 1,
) -> list[Observation]:
    """Eight of each search, on cores at 70 to 100 % of their fastest, while 1 to 8 million are
    counted; each search sees them slow at another time."""
    rng = np.random.default_rng(seed)
    made = []
    for search, level in enumerate(levels):
        for number, speed in enumerate(rng.uniform(0.7, 1.0, 8)):
            off = growth * (number + 1) + noise * rng.normal()
            per_s = level * speed**power * math.exp(off)
            made.append(Observation(search, per_s, FASTEST * float(speed), 1e6 * (number + 1)))
    return made


@given(power=st.floats(-0.5, 3), growth=st.floats(-0.1, 0.1))
def test_what_moves_the_rate_is_found_and_each_search_as_if_nothing_had(
    power: float, growth: float
) -> None:
    found = likened(moments(power=power, growth=growth), FASTEST)
    assert found
    assert (found.power.value, found.growth.value) == pytest.approx((power, growth), abs=1e-6)
    assert found.counted == pytest.approx(4.5e6)
    usual = math.exp(4.5 * growth)
    assert found.per_s == pytest.approx([100 * usual, 110 * usual, 90 * usual])
    mean = (100 * 110 * 90) ** (1 / 3) * usual
    assert found.capacity.per_s == pytest.approx(mean)
    assert found.capacity.low < 90 * usual and found.capacity.high > 110 * usual


def test_the_interval_holds_the_truth_in_95_of_100() -> None:
    tries = 400
    of = [
        likened(moments((100.0,) * 3, power=1.3, growth=-0.01, noise=0.03, seed=seed), FASTEST)
        for seed in range(tries)
    ]
    held = [abs(one.power.value - 1.3) <= one.power.half for one in of if one]
    assert len(held) == tries
    assert 0.91 <= np.mean(held) <= 0.99


def test_what_searches_differ_by_is_not_taken_for_what_speed_does() -> None:
    """The slow search was on slow cores, but within each of them speed did nothing."""
    fast, slow = moments((100.0, 50.0), power=0.0)[:8], moments((100.0, 50.0), power=0.0)[8:]
    slower = [replace(of, core_mib_per_s=of.core_mib_per_s / 2) for of in slow]
    found = likened([*fast, *slower], FASTEST)
    assert found
    assert found.power.value == pytest.approx(0, abs=1e-6)
    assert found.per_s == pytest.approx([100, 50])


def test_the_time_that_collections_took_is_shared_by_all_alike() -> None:
    """One search had a collection of the whole heap in its window, the other none."""
    made = moments((100.0, 100.0), power=1.0)
    still = made[0]
    paused = replace(still, per_s=still.per_s * 0.6, running=0.6)
    found = likened([paused, *made[1:]], FASTEST)
    assert found
    assert found.running == pytest.approx(1 - 0.4 / 16)
    assert found.per_s == pytest.approx([97.5, 97.5])


def test_speed_that_never_changed_tells_nothing() -> None:
    steady = [replace(of, core_mib_per_s=FASTEST) for of in moments()]
    assert likened(steady, FASTEST) is None


def test_too_few_moments_tell_nothing() -> None:
    one_search = moments((100.0,))
    assert likened(one_search, FASTEST)
    assert likened(one_search[:6], FASTEST) is None
    assert likened([], FASTEST) is None
