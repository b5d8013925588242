"""Tests that other programs do not change the measured speed of a core: fixed work takes the same
CPU time."""

import os
import subprocess
import sys

from racetrack.probes.noise import CoresSpeed, core_mib_per_s


def best() -> float:
    """Return the highest of twenty speeds, as another virtual machine may use the core for a
    while."""
    return max(core_mib_per_s() for _ in range(20))


def test_a_program_on_the_same_core_does_not_make_it_slower() -> None:
    """The other program takes half of the time, but none of this thread's CPU time."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        alone = best()
        with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as burner:
            try:
                beside = best()
            finally:
                burner.kill()
    finally:
        os.sched_setaffinity(0, cores)
    assert beside > 0.7 * alone


def test_one_core_after_the_other_is_looked_at_and_their_mean_reported() -> None:
    anywhere = os.sched_getaffinity(0)
    looked_at = list[int]()

    def speed_here() -> float:
        (core,) = os.sched_getaffinity(0)
        looked_at.append(core)
        return 100.0 * len(looked_at)

    cores = CoresSpeed(speed_here)
    for _ in range(2 * len(anywhere)):
        cores.sample()
    assert looked_at == 2 * sorted(anywhere)
    assert os.sched_getaffinity(0) == anywhere
    assert cores.mean_mib_per_s() == 50 * (len(looked_at) + 1)
    cores.sample()
    assert cores.mean_mib_per_s() == 100 * len(looked_at)
