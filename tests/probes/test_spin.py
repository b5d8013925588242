"""A fixed piece of work takes as long as before."""

import time

from racetrack.probes.spin import mib_per_s


def test_it_is_short_and_finds_the_same_speed_again() -> None:
    """Of ten tries two: a machine that others slow for a second is slower then."""
    began_s = time.process_time()
    first = mib_per_s()
    assert time.process_time() - began_s < 0.3
    second_best, best = sorted([first, *(mib_per_s() for _ in range(9))])[-2:]
    assert second_best > 20
    assert best / second_best < 1.25
