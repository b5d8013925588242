"""Rate control for saturation: the rate to offer next, and when warm-up has ended. No I/O."""

from collections import deque
from dataclasses import dataclass
from itertools import pairwise

# The backlog is to be 5 to 30 s of work; the target leaves room on both sides.
TARGET_S = 15.0
LEAST_S = 5.0
# Time constant of the proportional control.
CORRECTS_OVER_S = 15.0
MOST_FACTOR, LEAST_FACTOR = 2.0, 0.3
# Throughput is averaged over this: longer than an update interval, short enough not to oscillate.
WORK_OVER_S = 10.0
FIRST_ESTIMATE_S = 2.0
# A throughput drop shorter than this may be a pause: the best recent throughput is used instead.
PAUSE_S = 5.0
LEAST_PER_S = 1.0  # for an engine that counts nothing

FLAT_WITHIN = 0.05
FLAT_BINS = 3


@dataclass(frozen=True)
class LoadSample:
    """Counters of a run at an instant of the monotonic clock: events due, events counted by the
    engine, and CPU seconds used by its services, all since the run began."""

    at_s: float
    due: int
    counted: int
    cpu_s: float


class RateController:
    """Proportional control of the offered rate. It offers the measured throughput, and more while
    the backlog is below the target, so the rate of an engine that keeps up doubles every few
    seconds until the engine no longer does."""

    def __init__(self, start_per_s: float) -> None:
        self.per_s = start_per_s
        self.backlog_s = 0.0  # at the measured throughput; 0 until that is known
        self._samples: deque[LoadSample] = deque()

    def next_per_s(self, now: LoadSample) -> int:
        """Return the rate to offer from now on, events per second."""
        if self._samples and now.at_s - self._samples[-1].at_s > WORK_OVER_S:
            self._samples.clear()
        self._samples.append(now)
        while len(self._samples) > 2 and now.at_s - self._samples[1].at_s >= WORK_OVER_S:
            self._samples.popleft()
        then = self._samples[0]
        passed_s, backlog_s = now.at_s - then.at_s, 0.0
        if passed_s >= FIRST_ESTIMATE_S:
            waiting, works_per_s = max(0, now.due - now.counted), _work_per_s(then, now)
            backlog_s = waiting / works_per_s
            wanted_per_s = _wanted_per_s(works_per_s, waiting)
            if passed_s < PAUSE_S and wanted_per_s < self.per_s:
                best_per_s = max(_work_per_s(*pair) for pair in pairwise(self._samples))
                at_best_per_s = _wanted_per_s(best_per_s, waiting)
                stands_still = best_per_s == LEAST_PER_S
                wanted_per_s = self.per_s if stands_still else min(self.per_s, at_best_per_s)
            self.per_s = wanted_per_s
        self.backlog_s = backlog_s if passed_s >= WORK_OVER_S else 0.0
        return max(1, round(self.per_s))


def _work_per_s(then: LoadSample, now: LoadSample) -> float:
    return max(LEAST_PER_S, (now.counted - then.counted) / (now.at_s - then.at_s))


def _wanted_per_s(works_per_s: float, waiting: int) -> float:
    """Return the rate to offer at this throughput with this many events waiting."""
    factor = 1 + (TARGET_S - waiting / works_per_s) / CORRECTS_OVER_S
    return works_per_s * min(MOST_FACTOR, max(LEAST_FACTOR, factor))


class WarmUpDetector:
    """Detects the end of warm-up: CPU time per event has become flat."""

    def __init__(self, bin_s: float) -> None:
        self._bin_s = bin_s
        self._began: LoadSample | None = None
        self._costs: deque[float] = deque(maxlen=FLAT_BINS)

    def is_flat(self, now: LoadSample) -> bool:
        """Return whether the last FLAT_BINS bins are within FLAT_WITHIN of their mean."""
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
