"""Keeps an engine overloaded, but not too far: what to offer next, and when it is warm. No I/O."""

from collections import deque
from dataclasses import dataclass
from itertools import dropwhile

import numpy as np

# The backlog's age is to stay between 5 and 30 s: its middle leaves room on both sides.
TARGET_AGE_S = 15.0
LEAST_AGE_S = 5.0
# A backlog too old or too young by so much is made up for in about as many seconds.
CORRECTS_OVER_S = 15.0
MOST_FACTOR, LEAST_FACTOR = 2.0, 0.3
WORK_OVER_S = 10.0  # longer than an update cycle, shorter than what would make it sway
FIRST_LOOK_S = 2.0
REMEMBERS_S = 90.0

FLAT_WITHIN = 0.1
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
    younger than wanted. An engine that keeps up has no backlog, so its rate doubles every few
    seconds until it no longer does."""

    def __init__(self, start_per_s: float) -> None:
        self.per_s = start_per_s
        self.age_s = 0.0
        self._looks: deque[Look] = deque()

    def next_per_s(self, now: Look) -> int:
        """What to offer from now on, pageviews per second."""
        self._looks.append(now)
        while now.at_s - self._looks[0].at_s > REMEMBERS_S:
            self._looks.popleft()
        self.age_s = self._age_s(now)
        then = next(dropwhile(lambda look: now.at_s - look.at_s > WORK_OVER_S, self._looks))
        if (passed_s := now.at_s - then.at_s) >= FIRST_LOOK_S:
            factor = 1 + (TARGET_AGE_S - self.age_s) / CORRECTS_OVER_S
            works_per_s = (now.counted - then.counted) / passed_s
            self.per_s = works_per_s * min(MOST_FACTOR, max(LEAST_FACTOR, factor))
        return max(1, round(self.per_s))

    def _age_s(self, now: Look) -> float:
        """How long ago as many were due as are counted now."""
        if now.counted >= now.due:
            return 0.0
        due, at_s = [look.due for look in self._looks], [look.at_s for look in self._looks]
        return now.at_s - float(np.interp(now.counted, due, at_s))


class Warmth:
    """Whether an engine is warm: the CPU time that a pageview costs it has become flat."""

    def __init__(self, bin_s: float) -> None:
        self._bin_s = bin_s
        self._began: Look | None = None
        self._costs: deque[float] = deque(maxlen=FLAT_BINS)

    def is_flat(self, now: Look) -> bool:
        """Whether the last bins up to this look are within a tenth of their mean."""
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
