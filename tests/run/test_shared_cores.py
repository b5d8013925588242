"""On a machine whose cores others share, searches agree at like speed where they don't as found."""

import numpy as np
import pytest

from racetrack.analysis.compare import apart
from tests.run.shared_cores import Sharing, told

SETS = 40


@pytest.mark.parametrize("cycle_s", [1.0, 10.0])
def test_at_like_speed_searches_agree_on_what_the_engine_works_on_cores_for_itself(
    cycle_s: float,
) -> None:
    """An engine that wavers by 5 % and slows down by more than the cores do, however long its
    updates are."""
    rng = np.random.default_rng(7)
    of = [told(Sharing(noise=0.05, power=1.5, cycle_s=cycle_s), rng) for _ in range(SETS)]
    as_found = [apart(one.as_found) for one in of]
    alike = [apart(one.likened.per_s) for one in of]
    assert np.median(alike) < 0.6 * np.median(as_found)
    capacities = [one.likened.capacity for one in of]
    assert abs(np.mean([one.per_s for one in capacities]) - 1) < 0.02
    assert np.mean([one.low <= 1 <= one.high for one in capacities]) >= 0.9
    assert abs(np.mean([one.likened.power.value for one in of]) - 1.5) < 0.1


def test_an_engine_that_does_not_mind_is_not_made_to() -> None:
    rng = np.random.default_rng(8)
    of = [told(Sharing(noise=0.05, power=0.0), rng).likened for _ in range(SETS)]
    assert abs(np.mean([one.power.value for one in of])) < 0.1
    assert abs(np.mean([one.capacity.per_s for one in of]) - 1) < 0.02
