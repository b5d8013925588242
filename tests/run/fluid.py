"""A fluid queue before an engine whose capacity wavers and pauses: searches for its limit, made up.

    python -m tests.run.fluid [SEARCHES]

prints the table of docs/limit.md: how far off the searches are, and how long they take.
"""

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from rich.console import Console
from rich.table import Table
from scipy import signal

from racetrack.analysis.capacity import Work, moments
from racetrack.limit_record import widened_ms
from racetrack.run.phases import (
    DRAIN_SHARE,
    DRAINED_S,
    DRAINED_WITHIN_S,
    FILLED_WITHIN_S,
    LOOK_AT_LAG_EVERY_S,
    OVERLOADED_FOR_S,
    PACE,
    Pace,
)
from racetrack.run.search import BOUNDS_MS, QUANTILE, Held, find
from racetrack.run.steering import LEAST_S, TARGET_S, Look, Steering

STEP_S = 0.2
LOOK_EVERY_S = 1.0
LONGEST_S = 1_200.0
SEARCHES = 1_000


@dataclass(frozen=True)
class Wavering:
    """An engine: its capacity while it works, in pageviews per second, wavers as AR(1) noise of
    `noise` (a part of it) that forgets with `tau_s`, and pauses for `pause_s`, `pause_every_s`
    after the last pause on average (exponentially); it tells of its count every `cycle_s`.

    One with `fixed_s` takes all that waits in one update, which takes that long beside its work on
    what it took, and tells of its count after each: it works the faster, the more has waited.
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
        """In the long run."""
        return self.per_s * self.pause_every_s / (self.pause_every_s + self.pause_s)

    def steps(self, rng: Generator) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        """How much it can count in each STEP_S."""
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
    """One fresh run of such an engine, step by step."""

    def __init__(self, engine: Wavering, rng: Generator) -> None:
        self.offered_per_s, self.most_handed_over_per_s = 0.0, math.inf
        self.now_s, self.due, self.handed_over, self.done, self.told = 0.0, 0.0, 0.0, 0.0, 0.0
        self._cycle_s, self._tells_at_s = engine.cycle_s, rng.random() * engine.cycle_s
        self._room = iter(engine.steps(rng).tolist())
        self._fixed_s, self._taken, self._updates_at_s = engine.fixed_s, 0.0, 0.0
        self.tells: list[tuple[float, float]] = []

    def step(self) -> None:
        """Let STEP_S pass."""
        self.now_s += STEP_S
        self.due += self.offered_per_s * STEP_S
        at_most = self.handed_over + self.most_handed_over_per_s * STEP_S
        self.handed_over = min(self.due, at_most)
        if self._fixed_s:
            self._update(next(self._room))
            return
        self.done = min(self.handed_over, self.done + next(self._room))
        if self.now_s >= self._tells_at_s:
            self.told, self._tells_at_s = self.done, self._tells_at_s + self._cycle_s
            self.tells.append((self.now_s, self.told))

    def _update(self, room: float) -> None:
        if self.now_s < self._updates_at_s:
            return
        self.done = self.told = self.done + self._taken
        self.tells.append((self.now_s, self.told))
        self._taken = self.handed_over - self.done
        self._updates_at_s = self.now_s + self._fixed_s + self._taken / room * STEP_S

    def look(self) -> Look:
        """What there is to see of it."""
        return Look(self.now_s, int(self.due), int(self.told), 0.0)


class FluidRun:
    """One fresh run as the search asks for it, steered, drained and held as a real one is."""

    def __init__(self, engine: Wavering, rng: Generator, pace: Pace) -> None:
        self._engine, self._pace = engine, pace
        self._queue, self._steering = Queue(engine, rng), Steering(1_000)
        self._pass(1_000, pace.look_s)
        self._since_s: float | None = self._queue.now_s
        while self._queue.now_s < pace.warm_up_most_s or self._steering.backlog_s < LEAST_S:
            self._steer()

    @property
    def took_s(self) -> float:
        """How long it took up to now."""
        return self._pace.start_and_stop_s + self._queue.now_s

    def work(self) -> Work:
        since_s = self._queue.now_s if self._since_s is None else self._since_s
        self._steer()
        while self._steering.backlog_s < LEAST_S:
            self._steer()
        filled_by_s = self._queue.now_s + FILLED_WITHIN_S
        while self._queue.now_s < filled_by_s and (
            self._steering.backlog_s < TARGET_S or self._queue.now_s < since_s + OVERLOADED_FOR_S
        ):
            self._steer()
        looks, backlogs_s = [self._queue.look()], [self._steering.backlog_s]
        while looks[-1].at_s - looks[0].at_s < self._pace.work_s:
            looks.append(self._steer())
            backlogs_s.append(self._steering.backlog_s)
        at_s, counted = [look.at_s for look in looks], [look.counted for look in looks]
        batches = max(1, round(self._pace.work_s / self._pace.batch_s))
        edges = np.linspace(at_s[0], at_s[-1], batches + 1)
        rates = np.diff(np.interp(edges, at_s, counted)) / np.diff(edges)
        idle = float(np.mean([left_s == 0 for left_s in backlogs_s]))
        tells = np.array([one for one in self._queue.tells if at_s[0] <= one[0] <= at_s[-1]])
        at_ms, moments_per_s = moments(1000 * tells[:, 0], tells[:, 1])
        return Work(
            *(tuple(rates.tolist()), min(backlogs_s), max(backlogs_s), idle),
            edges_ms=tuple(at_ms.tolist()),
            moments_per_s=tuple(moments_per_s.tolist()),
        )

    def hold(self, per_s: int, bound_ms: float) -> Held:
        queue, pace, cycle_ms = self._queue, self._pace, 1000 * self._engine.cycle_s
        self._since_s = None
        drained_by_s = queue.now_s + DRAINED_WITHIN_S
        while queue.due - queue.told > DRAINED_S * per_s and queue.now_s < drained_by_s:
            self._pass(DRAIN_SHARE * per_s, LOOK_EVERY_S)
        self._pass(per_s, pace.settle_s)
        ages_s: list[float] = []
        bound_s = widened_ms(bound_ms, cycle_ms) / 1000
        above_s, from_s = 0.0, queue.now_s
        while queue.now_s < from_s + pace.hold_s:
            queue.step()
            ages_s.append((queue.due - queue.told) / per_s)
            above_s += STEP_S * (ages_s[-1] > bound_s)
            looks = not len(ages_s) % round(LOOK_AT_LAG_EVERY_S / STEP_S)
            if looks and above_s > (1 - QUANTILE) * pace.hold_s:
                return Held(math.inf, cycle_ms)
        return Held(1000 * float(np.quantile(ages_s, QUANTILE)), cycle_ms)

    def _steer(self) -> Look:
        look = self._queue.look()
        self._pass(self._steering.next_per_s(look), LOOK_EVERY_S)
        return look

    def _pass(self, offered_per_s: float, seconds: float) -> None:
        self._queue.offered_per_s = offered_per_s
        for _ in range(round(seconds / STEP_S)):
            self._queue.step()


class FluidRuns:
    """Runs as the search asks for them, with the time that they would take."""

    def __init__(self, engine: Wavering, rng: Generator, pace: Pace = PACE) -> None:
        self._engine, self._rng, self._pace = engine, rng, pace
        self._runs: list[FluidRun] = []

    @property
    def took_s(self) -> float:
        """All of them."""
        return sum(run.took_s for run in self._runs)

    @contextmanager
    def fresh(self) -> Iterator[FluidRun]:
        self._runs.append(FluidRun(self._engine, self._rng, self._pace))
        yield self._runs[-1]

    def has_time_to_hold(self) -> bool:
        return self._pace.has_time_to_hold(self.took_s)


@dataclass(frozen=True)
class Searched:
    """What came of one search, rates as parts of the true capacity."""

    error: float
    covers: bool
    held: tuple[float | None, ...]
    minutes: float
    is_whole: bool


def searched(engine: Wavering, rng: Generator, pace: Pace = PACE) -> Searched:
    """One search for the limit of a made-up engine."""
    runs = FluidRuns(engine, rng, pace)
    found = find(runs)
    assert found is not None
    mean = engine.mean_per_s
    return Searched(
        error=found.capacity.per_s / mean - 1,
        covers=found.capacity.low <= mean <= found.capacity.high,
        held=tuple(None if one.held is None else one.held / mean for one in found.sustained),
        minutes=runs.took_s / 60,
        is_whole=found.is_whole,
    )


KINDS = {
    "10 % noise": Wavering(),
    "5 % noise": Wavering(noise=0.05),
    "10 % noise, pauses of 1 s every 30 s": Wavering(pause_s=1.0),
    "10 % noise, pauses of 3 s every 40 s": Wavering(pause_s=3.0, pause_every_s=40.0),
    "20 % noise": Wavering(noise=0.2),
}


def table(searches: int) -> Table:
    """A row a kind of engine."""
    made = Table(
        *("engine", "bias, %", "sd, %", "95 % of errors within, %", "interval holds it, %"),
        *(f"sustainable at {bound / 1000:g} s: mean ± sd" for bound in BOUNDS_MS),
        *("whole, %", "minutes: median, most"),
    )
    for name, engine in KINDS.items():
        rng = np.random.default_rng(20261122)
        of = [searched(engine, rng) for _ in range(searches)]
        errors = 100 * np.array([one.error for one in of])
        rates = [
            np.array([held for one in of if (held := one.held[n]) is not None])
            for n in range(len(BOUNDS_MS))
        ]
        minutes = [one.minutes for one in of]
        made.add_row(
            *(name, f"{errors.mean():+.1f}", f"{errors.std():.1f}"),
            f"{np.quantile(np.abs(errors), 0.95):.1f}",
            f"{100 * np.mean([one.covers for one in of]):.0f}",
            *(f"{rate.mean():.2f} ± {rate.std():.2f} ({len(rate)})" for rate in rates),
            f"{100 * np.mean([one.is_whole for one in of]):.0f}",
            f"{np.median(minutes):.1f}, {max(minutes):.1f}",
        )
    return made


if __name__ == "__main__":
    Console(width=180).print(table(int(sys.argv[1]) if len(sys.argv) > 1 else SEARCHES))
