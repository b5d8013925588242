"""Logic of the capacity search, without I/O: which rates to try, which rate to offer at saturation,
and when warm-up has ended."""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from racetrack.analysis import capacity
from racetrack.analysis.capacity import Work
from racetrack.errors import RacetrackError
from racetrack.results.search import Capacity, SustainableRate, effective_bound_ms

# Fractions of the first run's capacity at which rates may be tried: 0.95, 0.90, … 0.05. A step is
# an index into this tuple.
SHARES = tuple(round(0.95 - 0.05 * step, 2) for step in range(19))
# Steps that are tried until a rate is sustained: 0.95, 0.90, 0.80, 0.60, 0.20, 0.05 of the
# capacity.
DESCENT = (0, 1, 3, 7, 15, 18)
# A rate is sustainable within a bound if the QUANTILE of the lag does not exceed the bound.
BOUNDS_MS = (2_000.0, 5_000.0)
QUANTILE = 0.99
RUNS = 2


@dataclass(frozen=True)
class TrialResult:
    """Result of a rate trial. `lag_p99_ms` is infinite if the trial was stopped because the lag had
    exceeded the bound for too long. `update_interval_ms` was measured at low load. `is_offered` is
    false if the generator did not reach the rate."""

    lag_p99_ms: float
    update_interval_ms: float
    is_offered: bool = True

    def is_within(self, bound_ms: float) -> bool:
        """Return whether the lag stayed within a bound."""
        within_ms = effective_bound_ms(bound_ms, self.update_interval_ms)
        return self.is_offered and self.lag_p99_ms <= within_ms


class FreshRun(Protocol):
    """A run on a fresh stack, after the engine's warm-up."""

    def work(self) -> Work:
        """Measure the throughput at saturation."""

    def try_rate(self, per_s: int, bound_ms: float) -> TrialResult:
        """Drain the backlog, then measure the lag at a rate. The trial may be stopped as soon as
        the lag has exceeded the bound for too long."""


class Runs(Protocol):
    """Starts the runs of a search, each on a fresh stack."""

    def fresh(self) -> AbstractContextManager[FreshRun]:
        """Start a run. It ends with the context."""

    def has_time_for_trial(self) -> bool:
        """Return whether another rate trial and the final saturation window fit in the time."""


@dataclass(frozen=True)
class Found:
    """Result of a search. `is_whole` is true if the highest sustained rate and the lowest that
    failed are adjacent steps for every bound. `failed` is the error that ended the second run, in
    which case the capacity is based on the first run alone."""

    capacity: Capacity
    sustained: tuple[SustainableRate, ...]
    is_whole: bool
    failed: RacetrackError | None = None


def find(runs: Runs, bounds_ms: Sequence[float] = BOUNDS_MS) -> Found | None:
    """Search with two fresh runs. Return None if the engine could not be saturated.

    The first run measures the capacity. The second run tries fractions of this capacity, then
    measures the capacity again. The trials come first because some engines become slower the more
    events they have counted. If the second run fails, for example because the engine runs out of
    memory, the results measured so far are kept.

    Raises:
        RacetrackError: the first run failed.
    """
    with runs.fresh() as run:
        first = run.work()
    if not first.is_capacity:
        return None

    def rate_of(step: int) -> int:
        return max(1, round(first.per_s * SHARES[step]))

    trials, works, failed = _Trials(bounds_ms), [first], None
    try:
        with runs.fresh() as run:
            while (wanted := trials.wanted()) and runs.has_time_for_trial():
                trials.results[wanted.step] = run.try_rate(rate_of(wanted.step), wanted.bound_ms)
            works.append(run.work())
    except RacetrackError as error:
        failed = error
    if not works[-1].is_capacity:
        return None
    return Found(
        capacity=capacity.estimate(works),
        sustained=tuple(trials.sustained(bound_ms, rate_of) for bound_ms in bounds_ms),
        is_whole=not failed and not trials.wanted(),
        failed=failed,
    )


@dataclass(frozen=True)
class _Wanted:
    """The next step to try, and the bound for which it is tried."""

    step: int
    bound_ms: float


class _Trials:
    """Results of rate trials, by step (an index into SHARES). Each result is used for all bounds.
    The largest bound is searched first; the search for a smaller bound then starts below the rate
    that was sustained within the larger bound."""

    def __init__(self, bounds_ms: Sequence[float]) -> None:
        self._bounds_ms = sorted(bounds_ms, reverse=True)
        self.results: dict[int, TrialResult] = {}

    def wanted(self) -> _Wanted | None:
        """Return the next trial; None once the search is complete for every bound."""
        for bound_ms in self._bounds_ms:
            failed, sustained = self._bracket(bound_ms)
            if sustained is None:
                lower = [step for step in DESCENT if failed is None or step > failed]
                if lower:
                    return _Wanted(lower[0], bound_ms)
            elif failed is not None and sustained - failed > 1:
                return _Wanted((failed + sustained) // 2, bound_ms)
        return None

    def sustained(self, bound_ms: float, rate_of: Callable[[int], int]) -> SustainableRate:
        """Return the sustainable rate within a bound, from the trials so far. The failed rate is
        None if no rate failed, or if the generator could not reach it."""
        failed, sustained = self._bracket(bound_ms)
        was_offered = failed is not None and self.results[failed].is_offered
        return SustainableRate(
            bound_ms=bound_ms,
            sustained_per_s=None if sustained is None else rate_of(sustained),
            failed_per_s=rate_of(failed) if failed is not None and was_offered else None,
        )

    def _bracket(self, bound_ms: float) -> tuple[int | None, int | None]:
        """Return the steps of two rates: the lowest rate that failed above the highest sustained
        rate, and the highest sustained rate."""
        within = [step for step, result in self.results.items() if result.is_within(bound_ms)]
        sustained = min(within, default=None)
        failed = [step for step, result in self.results.items() if not result.is_within(bound_ms)]
        above = [step for step in failed if sustained is None or step < sustained]
        return max(above, default=None), sustained


# The backlog should be between 5 and 30 s of work; the target leaves a margin on both sides.
TARGET_S = 15.0
LEAST_S = 5.0
# Time constant of the proportional control.
CORRECTS_OVER_S = 15.0
MOST_FACTOR, LEAST_FACTOR = 2.0, 0.3
# Throughput is averaged over this time, which is longer than an update interval but short enough to
# keep the control loop from oscillating.
WORK_OVER_S = 10.0
FIRST_ESTIMATE_S = 2.0
# A shorter drop of the throughput may be a pause of the engine, so the highest throughput of this
# time is used.
PAUSE_S = 5.0
LEAST_PER_S = 1.0  # lower limit of the throughput, for an engine that counts nothing

FLAT_WITHIN = 0.05
FLAT_BINS = 3


@dataclass(frozen=True)
class LoadSample:
    """Counters of a run at `at_s` (monotonic clock): events due, events counted by the engine, and
    CPU seconds of the engine's services, all since the run began."""

    at_s: float
    due: int
    counted: int
    cpu_s: float

    @property
    def waiting(self) -> int:
        """Number of events that are due but not counted."""
        return max(0, self.due - self.counted)


class RateController:
    """Proportional controller of the offered rate. It offers the measured throughput, corrected
    upwards while the backlog is below the target and downwards while it is above. So the rate
    doubles every few seconds until the engine no longer keeps up."""

    def __init__(self, start_per_s: float) -> None:
        self.per_s = start_per_s
        self.backlog_s = 0.0  # seconds to process the backlog; 0 until the throughput is known
        self._samples: deque[LoadSample] = deque()

    def next_per_s(self, now: LoadSample) -> int:
        """Return the rate to offer next, in events per second."""
        if self._samples and now.at_s - self._samples[-1].at_s > WORK_OVER_S:
            self._samples.clear()
        self._samples.append(now)
        while len(self._samples) > 2 and now.at_s - self._samples[1].at_s >= WORK_OVER_S:
            self._samples.popleft()
        then = self._samples[0]
        passed_s, backlog_s = now.at_s - then.at_s, 0.0
        if passed_s >= FIRST_ESTIMATE_S:
            works_per_s = _work_per_s(then, now)
            backlog_s = now.waiting / works_per_s
            wanted_per_s = _wanted_per_s(works_per_s, now.waiting)
            if passed_s < PAUSE_S and wanted_per_s < self.per_s:
                best_per_s = max(_work_per_s(*pair) for pair in pairwise(self._samples))
                at_best_per_s = _wanted_per_s(best_per_s, now.waiting)
                stands_still = best_per_s == LEAST_PER_S
                wanted_per_s = self.per_s if stands_still else min(self.per_s, at_best_per_s)
            self.per_s = wanted_per_s
        self.backlog_s = backlog_s if passed_s >= WORK_OVER_S else 0.0
        return max(1, round(self.per_s))


def _work_per_s(then: LoadSample, now: LoadSample) -> float:
    return max(LEAST_PER_S, (now.counted - then.counted) / (now.at_s - then.at_s))


def _wanted_per_s(works_per_s: float, waiting: int) -> float:
    """Return the rate to offer, given the throughput and the number of waiting events."""
    factor = 1 + (TARGET_S - waiting / works_per_s) / CORRECTS_OVER_S
    return works_per_s * min(MOST_FACTOR, max(LEAST_FACTOR, factor))


class WarmUpDetector:
    """Detects the end of warm-up: CPU time per event has become flat."""

    def __init__(self, bin_s: float) -> None:
        self._bin_s = bin_s
        self._began: LoadSample | None = None
        self._costs: deque[float] = deque(maxlen=FLAT_BINS)

    def is_flat(self, now: LoadSample) -> bool:
        """Return whether CPU time per event was flat: in each of the last FLAT_BINS bins of time,
        it was within FLAT_WITHIN of their mean."""
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
