"""Tests of the random times of reads: they come at the rate in the settings, and evenly over an
engine's cycle."""

from itertools import islice, pairwise

import numpy as np
import pytest

from racetrack import poisson

SECONDS = 5_000


@pytest.mark.parametrize("per_s", [0.5, 2, 20])
def test_they_come_at_the_rate(per_s: float) -> None:
    times_s = list(islice(poisson.due_s(per_s), round(SECONDS * per_s)))
    assert times_s[-1] == pytest.approx(SECONDS, rel=0.05)
    assert all(later > earlier > 0 for earlier, later in pairwise(times_s))


@pytest.mark.parametrize("cycle_s", [0.5, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("turn", [0, 1, 2])
def test_every_point_of_an_engine_s_cycle_is_met_as_often(cycle_s: float, turn: int) -> None:
    """Three queries take turns, at two reads a second. Each must meet every point of the cycle as
    often."""
    times_s = np.array(list(islice(poisson.due_s(2), 30_000)))[turn::3]
    counts, _ = np.histogram(times_s % cycle_s, bins=10, range=(0, cycle_s))
    assert counts.min() > 0.88 * counts.mean()
    assert counts.max() < 1.12 * counts.mean()
