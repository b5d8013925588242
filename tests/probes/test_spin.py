"""A fixed piece of work is as fast as before, however busy the machine is."""

import time

from racetrack.probes.spin import mib_per_s


def test_it_is_short_and_finds_the_same_speed_again() -> None:
    began_s = time.process_time()
    first = mib_per_s()
    assert time.process_time() - began_s < 0.3
    assert first > 20
    again = [mib_per_s() for _ in range(3)]
    assert 0.8 < max(again) / first < 1.25
