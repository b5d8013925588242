"""How fast a core is at an instant, while others may share it: known work, by its own CPU time.

A hypervisor may run two machines on the two halves of one core. Neither has all of it then, though
none of its time counts as stolen. BLAKE2b keeps many of a core's units busy, so it shows that.
SHA-256 by a processor's own instructions does not: it mostly waits for itself (docs/noise.md).
"""

import hashlib
import itertools
import os
import statistics
import time

MIB = 1024**2
# It fits into the fastest cache, so what the engine does to the larger ones and to memory is not in
# it. The first try finds that cache cold.
BLOCK = bytes(range(256)) * 64
TRIES = 7


def core_mib_per_s() -> float:
    """MiB of BLAKE2b in a second of this thread's CPU time: the median of some tries, which take
    about a tenth of a millisecond together. Who interrupts them is not counted."""
    return len(BLOCK) / MIB / statistics.median(_try_s() for _ in range(TRIES))


def _try_s() -> float:
    began_ns = time.thread_time_ns()
    hashlib.blake2b(BLOCK).digest()
    return (time.thread_time_ns() - began_ns) / 1e9


class CoresSpeed:
    """Looks at one core after the other, round and round: each is shared, or not, by itself."""

    def __init__(self) -> None:
        self._cores = itertools.cycle(sorted(os.sched_getaffinity(0)))
        self._looks: list[float] = []

    def look(self) -> None:
        """At the next core; this thread runs there until it may run anywhere again."""
        anywhere = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {next(self._cores)})
        try:
            self._looks.append(core_mib_per_s())
        finally:
            os.sched_setaffinity(0, anywhere)

    def mean_mib_per_s(self) -> float:
        """Of the looks since it was last asked.

        Raises:
            statistics.StatisticsError: there was none.
        """
        looks, self._looks = self._looks, []
        return statistics.fmean(looks)
