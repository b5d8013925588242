"""Keeps an engine overloaded, but not too far: what to offer next, and when it is warm. No I/O."""

from collections import deque
from dataclasses import dataclass
from itertools import pairwise

# The backlog is to be work for 5 to 30 s: its middle leaves room on both sides.
TARGET_S = 15.0
LEAST_S = 5.0
# What is missing of it, or too much, is made up for in about as many seconds.
CORRECTS_OVER_S = 15.0
MOST_FACTOR, LEAST_FACTOR = 2.0, 0.3
WORK_OVER_S = 10.0  # longer than an update cycle, shorter than what would make it sway
FIRST_LOOK_S = 2.0
# An engine that works less for a shorter time may just pause: then it works as it did at its best.
PAUSE_S = 5.0
LEAST_PER_S = 1.0  # of one that counts nothing

FLAT_WITHIN = 0.05
FLAT_BINS = 3


@dataclass(frozen=True)
class Look:
    """A run at an instant of the monotonic clock: pageviews that were due and that the engine has
    counted, and CPU seconds that its services have used, all since it began."""

    at_s: float
    due: int
    counted: int
    cpu_s: float


class Steering:
    """The rate to offer, look by look: what the engine works, and more of it while its backlog is
    smaller than wanted. An engine that keeps up has no backlog, so its rate doubles every few
    seconds until it no longer does."""

    def __init__(self, start_per_s: float) -> None:
        self.per_s = start_per_s
        self.backlog_s = 0.0  # how long it would work on what is due; 0 until that is known
        self._looks: deque[Look] = deque()

    def next_per_s(self, now: Look) -> int:
        """What to offer from now on, pageviews per second."""
        if self._looks and now.at_s - self._looks[-1].at_s > WORK_OVER_S:
            self._looks.clear()
        self._looks.append(now)
        while len(self._looks) > 2 and now.at_s - self._looks[1].at_s >= WORK_OVER_S:
            self._looks.popleft()
        then = self._looks[0]
        passed_s, backlog_s = now.at_s - then.at_s, 0.0
        if passed_s >= FIRST_LOOK_S:
            waiting, works_per_s = max(0, now.due - now.counted), _work_per_s(then, now)
            backlog_s = waiting / works_per_s
            wanted_per_s = _wanted_per_s(works_per_s, waiting)
            if passed_s < PAUSE_S and wanted_per_s < self.per_s:
                best_per_s = max(_work_per_s(*pair) for pair in pairwise(self._looks))
                at_best_per_s = _wanted_per_s(best_per_s, waiting)
                stands_still = best_per_s == LEAST_PER_S
                wanted_per_s = self.per_s if stands_still else min(self.per_s, at_best_per_s)
            self.per_s = wanted_per_s
        self.backlog_s = backlog_s if passed_s >= WORK_OVER_S else 0.0
        return max(1, round(self.per_s))


def _work_per_s(then: Look, now: Look) -> float:
    return max(LEAST_PER_S, (now.counted - then.counted) / (now.at_s - then.at_s))


def _wanted_per_s(works_per_s: float, waiting: int) -> float:
    """What to offer to an engine that works at this rate while so many pageviews wait for it."""
    factor = 1 + (TARGET_S - waiting / works_per_s) / CORRECTS_OVER_S
    return works_per_s * min(MOST_FACTOR, max(LEAST_FACTOR, factor))


class Warmth:
    """Whether an engine is warm: the CPU time that a pageview costs it has become flat."""

    def __init__(self, bin_s: float) -> None:
        self._bin_s = bin_s
        self._began: Look | None = None
        self._costs: deque[float] = deque(maxlen=FLAT_BINS)

    def is_flat(self, now: Look) -> bool:
        """Whether the last bins up to this look are within a twentieth of their mean."""
        began = self._began = self._began or now
        if now.at_s - began.at_s >= self._bin_s:
            self._began = now
            if counted := now.counted - began.counted:
                self._costs.append((now.cpu_s - began.cpu_s) / counted)
            else:
                self._costs.clear()
        if len(self._costs) < FLAT_BINS:
            return False
        mean = sum(self._costs) / FLAT_BINS
        return all(abs(cost - mean) <= FLAT_WITHIN * mean for cost in self._costs)
