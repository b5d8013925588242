"""Fluid-queue simulation of the capacity search: an engine with noise and pauses.

    python -m simulations.fluid [SEARCHES]

prints the table of docs/limit.md: error and duration of the searches.
"""

import math
import sys
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from rich.console import Console
from rich.table import Table
from scipy import signal

from racetrack.analysis import capacity
from racetrack.analysis.capacity import Work
from racetrack.plan.model import (
    Saturate,
    Search,
    WarmUp,
    find_plan,
    read_plan_file,
)
from racetrack.plan.resolve import DRAIN_S
from racetrack.run.descent import QUANTILE, Descent, TrialResult
from racetrack.run.phases import CHECK_LAG_EVERY_S, LOW_S
from racetrack.run.saturation import (
    DRAIN_SHARE,
    DRAINED_S,
    DRAINED_WITHIN_S,
    LEAST_S,
    TARGET_S,
    RateController,
)
from racetrack.run.session import LoadSample

STEP_S = 0.2
LOOK_EVERY_S = 1.0
LONGEST_S = 1_200.0
SEARCHES = 1_000
START_AND_STOP_S = 30.0  # of a stack

PHASES = read_plan_file(find_plan("limit")).phases
WARM_UP = next(phase for phase in PHASES if isinstance(phase, WarmUp))
SATURATE = next(phase for phase in PHASES if isinstance(phase, Saturate))
SEARCH = next(phase for phase in PHASES if isinstance(phase, Search))
BOUNDS_MS = tuple(1000 * bound_s for bound_s in SEARCH.bounds_s)


@dataclass(frozen=True)
class SimulatedEngine:
    """Engine with a capacity of `per_s` events per second, AR(1) noise of relative size `noise` and
    correlation time `tau_s`, and pauses of `pause_s` at exponential intervals of mean
    `pause_every_s`. It reports its count every `cycle_s`.

    With `fixed_s`, each update processes the whole backlog and takes `fixed_s` in addition to the
    time for its events, so a larger backlog means a higher throughput.
    """

    per_s: float = 20_000.0
    noise: float = 0.1
    tau_s: float = 8.0
    pause_s: float = 0.0
    pause_every_s: float = 30.0
    cycle_s: float = 1.0
    fixed_s: float = 0.0

    @property
    def mean_per_s(self) -> float:
        """Mean capacity including pauses."""
        return self.per_s * self.pause_every_s / (self.pause_every_s + self.pause_s)

    def steps(self, rng: Generator) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        """Return how many events the engine can process in each STEP_S."""
        count = int(LONGEST_S / STEP_S)
        keeps = math.exp(-STEP_S / self.tau_s)
        fresh = rng.normal(0, math.sqrt(1 - keeps * keeps), count)
        noise, _ = signal.lfilter([1], [1, -keeps], fresh, zi=[keeps * rng.normal()])
        room = np.maximum(1 + self.noise * noise, 0) * self.per_s * STEP_S
        at_s = rng.exponential(self.pause_every_s)
        while self.pause_s and at_s < LONGEST_S:
            room[int(at_s / STEP_S) : int((at_s + self.pause_s) / STEP_S)] = 0
            at_s += self.pause_s + rng.exponential(self.pause_every_s)
        return room


class Queue:
    """Event counts of one fresh run of an engine, advanced step by step."""

    def __init__(self, engine: SimulatedEngine, rng: Generator) -> None:
        self.offered_per_s, self.most_handed_over_per_s = 0.0, math.inf
        self.now_s, self.due, self.handed_over, self.done, self.reported = 0.0, 0.0, 0.0, 0.0, 0.0
        self._cycle_s, self._tells_at_s = engine.cycle_s, rng.random() * engine.cycle_s
        self._room = iter(engine.steps(rng).tolist())
        self._fixed_s, self._taken, self._updates_at_s = engine.fixed_s, 0.0, 0.0

    def step(self) -> None:
        """Advance by STEP_S."""
        self.now_s += STEP_S
        self.due += self.offered_per_s * STEP_S
        at_most = self.handed_over + self.most_handed_over_per_s * STEP_S
        self.handed_over = min(self.due, at_most)
        if self._fixed_s:
            self._update(next(self._room))
            return
        self.done = min(self.handed_over, self.done + next(self._room))
        if self.now_s >= self._tells_at_s:
            self.reported, self._tells_at_s = self.done, self._tells_at_s + self._cycle_s

    def _update(self, room: float) -> None:
        if self.now_s < self._updates_at_s:
            return
        self.done = self.reported = self.done + self._taken
        self._taken = self.handed_over - self.done
        self._updates_at_s = self.now_s + self._fixed_s + self._taken / room * STEP_S

    def look(self) -> LoadSample:
        """Return the counters that the harness would see."""
        return LoadSample(self.now_s, int(self.due), int(self.reported), 0.0)


class FluidRun:
    """A run of the plan `limit` on a queue, after its warm-up, with the real rate controller."""

    def __init__(self, engine: SimulatedEngine, rng: Generator) -> None:
        self._engine = engine
        self._queue, self._controller = Queue(engine, rng), RateController(1_000)
        self._pass(1_000, LOW_S)
        self._since_s: float | None = self._queue.now_s
        while self._queue.now_s < WARM_UP.for_s or self._controller.backlog_s < LEAST_S:
            self._control()

    @property
    def took_s(self) -> float:
        """Duration of this run so far."""
        return START_AND_STOP_S + self._queue.now_s

    def work(self) -> Work:
        """Return the throughput at saturation."""
        since_s = self._queue.now_s if self._since_s is None else self._since_s
        self._control()
        while self._controller.backlog_s < LEAST_S:
            self._control()
        filled_by_s = self._queue.now_s + SATURATE.hold_s
        while self._queue.now_s < filled_by_s and (
            self._controller.backlog_s < TARGET_S or self._queue.now_s < since_s + SATURATE.hold_s
        ):
            self._control()
        looks, backlogs_s = [self._queue.look()], [self._controller.backlog_s]
        while looks[-1].at_s - looks[0].at_s < SATURATE.for_s:
            looks.append(self._control())
            backlogs_s.append(self._controller.backlog_s)
        at_s, counted = [look.at_s for look in looks], [look.counted for look in looks]
        batches = max(1, round(SATURATE.for_s / SATURATE.batch_s))
        edges = np.linspace(at_s[0], at_s[-1], batches + 1)
        rates = np.diff(np.interp(edges, at_s, counted)) / np.diff(edges)
        idle = float(np.mean([left_s == 0 for left_s in backlogs_s]))
        return Work(tuple(rates.tolist()), idle)

    def try_rate(self, per_s: int, bound_ms: float) -> TrialResult:
        """Return the lag at a rate, after draining."""
        queue = self._queue
        self._since_s = None
        drained_by_s = queue.now_s + DRAINED_WITHIN_S
        while queue.due - queue.reported > DRAINED_S * per_s and queue.now_s < drained_by_s:
            self._pass(DRAIN_SHARE * per_s, LOOK_EVERY_S)
        self._pass(per_s, SEARCH.settle_s)
        ages_s: list[float] = []
        above_s, from_s = 0.0, queue.now_s
        while queue.now_s < from_s + SEARCH.trial_s:
            queue.step()
            ages_s.append((queue.due - queue.reported) / per_s)
            above_s += STEP_S * (1000 * ages_s[-1] > bound_ms)
            looks = not len(ages_s) % round(CHECK_LAG_EVERY_S / STEP_S)
            if looks and above_s > (1 - QUANTILE) * SEARCH.trial_s:
                return TrialResult(math.inf)
        return TrialResult(1000 * float(np.quantile(ages_s, QUANTILE)))

    def _control(self) -> LoadSample:
        look = self._queue.look()
        self._pass(self._controller.next_per_s(look), LOOK_EVERY_S)
        return look

    def _pass(self, offered_per_s: float, seconds: float) -> None:
        self._queue.offered_per_s = offered_per_s
        for _ in range(round(seconds / STEP_S)):
            self._queue.step()


@dataclass(frozen=True)
class Searched:
    """Result of one search. Rates are fractions of the true capacity."""

    error: float
    covers: bool
    sustained: tuple[float | None, ...]
    minutes: float
    is_whole: bool


def searched(engine: SimulatedEngine, rng: Generator) -> Searched:
    """Run one capacity search on a simulated engine; compare its result with the true capacity."""
    first, second = FluidRun(engine, rng), FluidRun(engine, rng)
    works, descent = [first.work()], Descent(BOUNDS_MS)
    later_s = DRAIN_S + SEARCH.settle_s + SEARCH.trial_s + SATURATE.hold_s + SATURATE.for_s
    while (trial := descent.wanted()) and first.took_s + second.took_s + later_s <= SEARCH.within_s:
        per_s = max(1, round(works[0].per_s * trial.share))
        descent.take(trial.share, second.try_rate(per_s, trial.bound_ms))
    works.append(second.work())
    if not all(work.is_capacity for work in works):
        raise ValueError("the engine was not saturated")
    mean, found = engine.mean_per_s, capacity.estimate(works)
    rates = [descent.sustained(bound_ms).share for bound_ms in BOUNDS_MS]
    return Searched(
        error=found.per_s / mean - 1,
        covers=found.low <= mean <= found.high,
        sustained=tuple(rate and rate * works[0].per_s / mean for rate in rates),
        minutes=(first.took_s + second.took_s) / 60,
        is_whole=descent.wanted() is None,
    )


# A view that is at most a second old needs updates more often than once a second.
CYCLE_S = 0.2
KINDS = {
    "10 % noise": SimulatedEngine(cycle_s=CYCLE_S),
    "5 % noise": SimulatedEngine(noise=0.05, cycle_s=CYCLE_S),
    "10 % noise, pauses of 1 s every 30 s": SimulatedEngine(pause_s=1.0, cycle_s=CYCLE_S),
    "10 % noise, pauses of 3 s every 40 s": SimulatedEngine(
        pause_s=3.0, pause_every_s=40.0, cycle_s=CYCLE_S
    ),
    "20 % noise": SimulatedEngine(noise=0.2, cycle_s=CYCLE_S),
}


def table(searches: int) -> Table:
    """Return the table, one row per kind of engine."""
    made = Table(
        "engine",
        "bias, %",
        "sd, %",
        "95 % of errors within, %",
        "interval holds it, %",
        *(f"sustainable at {bound / 1000:g} s: mean ± sd" for bound in BOUNDS_MS),
        "whole, %",
        "minutes: median, most",
    )
    for name, engine in KINDS.items():
        rng = np.random.default_rng(20261122)
        of = [searched(engine, rng) for _ in range(searches)]
        errors = 100 * np.array([one.error for one in of])
        rates = [
            np.array([sustained for one in of if (sustained := one.sustained[n]) is not None])
            for n in range(len(BOUNDS_MS))
        ]
        minutes = [one.minutes for one in of]
        made.add_row(
            name,
            f"{errors.mean():+.1f}",
            f"{errors.std():.1f}",
            f"{np.quantile(np.abs(errors), 0.95):.1f}",
            f"{100 * np.mean([one.covers for one in of]):.0f}",
            *(f"{rate.mean():.2f} ± {rate.std():.2f} ({len(rate)})" for rate in rates),
            f"{100 * np.mean([one.is_whole for one in of]):.0f}",
            f"{np.median(minutes):.1f}, {max(minutes):.1f}",
        )
    return made


if __name__ == "__main__":
    Console(width=180).print(table(int(sys.argv[1]) if len(sys.argv) > 1 else SEARCHES))
