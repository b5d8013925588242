"""A fluid queue before an engine whose capacity wavers and pauses: searches for its limit, made up.

    python -m tests.run.fluid [SEARCHES]

prints the table of docs/measured.md: how far off the searches are, and how long they take.
"""

import math
import sys
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from rich.console import Console
from rich.table import Table
from scipy import signal

from racetrack.analysis.capacity import Work
from racetrack.run.phases import PACE, Pace
from racetrack.run.search import BOUNDS_MS, QUANTILE, Held, find
from racetrack.run.steering import LEAST_S, Look, Steering

STEP_S = 0.2
LOOK_EVERY_S = 1.0
START_AND_STOP_S = 25.0
WARM_UP_S = 40.0  # where nothing compiles: the time that bins take to be flat, and some
LONGEST_S = 600.0
SEARCHES = 1_000


@dataclass(frozen=True)
class Wavering:
    """An engine: its capacity while it works, in pageviews per second, wavers as AR(1) noise of
    `noise` (a part of it) that forgets with `tau_s`, and pauses for `pause_s`, `pause_every_s`
    after the last pause on average (exponentially); it tells of its count every `cycle_s`."""

    per_s: float = 20_000.0
    noise: float = 0.1
    tau_s: float = 8.0
    pause_s: float = 0.0
    pause_every_s: float = 30.0
    cycle_s: float = 1.0

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

    def step(self) -> None:
        """Let STEP_S pass."""
        self.now_s += STEP_S
        self.due += self.offered_per_s * STEP_S
        at_most = self.handed_over + self.most_handed_over_per_s * STEP_S
        self.handed_over = min(self.due, at_most)
        self.done = min(self.handed_over, self.done + next(self._room))
        if self.now_s >= self._tells_at_s:
            self.told, self._tells_at_s = self.done, self._tells_at_s + self._cycle_s

    def look(self) -> Look:
        """What there is to see of it."""
        return Look(self.now_s, int(self.due), int(self.told), 0.0)


class FluidRuns:
    """Runs as the search asks for them, with the time that they would take."""

    def __init__(self, engine: Wavering, rng: Generator, pace: Pace = PACE) -> None:
        self._engine, self._rng, self._pace = engine, rng, pace
        self.took_s = 0.0
        self._longest_s = 0.0

    def overload(self) -> Work:
        """Steered as a real run is."""
        queue, steering = Queue(self._engine, self._rng), Steering(1_000)
        looks: list[Look] = []
        backlogs_s: list[float] = []
        looks_at_s = 0.0
        while not looks or queue.now_s - looks[0].at_s < self._pace.session_s:
            queue.step()
            if queue.now_s >= looks_at_s:
                looks_at_s += LOOK_EVERY_S
                queue.offered_per_s = steering.next_per_s(queue.look())
                if looks or (queue.now_s >= WARM_UP_S and steering.backlog_s >= LEAST_S):
                    looks.append(queue.look())
                    backlogs_s.append(steering.backlog_s)
        self._pass(queue.now_s)
        at_s, counted = [look.at_s for look in looks], [look.counted for look in looks]
        batches = max(1, round(self._pace.session_s / self._pace.batch_s))
        edges = np.linspace(at_s[0], at_s[-1], batches + 1)
        rates = np.diff(np.interp(edges, at_s, counted)) / np.diff(edges)
        idle = float(np.mean([left_s == 0 for left_s in backlogs_s]))
        return Work(tuple(rates.tolist()), min(backlogs_s), max(backlogs_s), idle)

    def hold(self, pageviews_per_s: int) -> Held:
        """From an empty queue, which is what half the rate leaves."""
        queue = Queue(self._engine, self._rng)
        queue.offered_per_s = pageviews_per_s
        ages_s = []
        worst_s = max(BOUNDS_MS) / 1000
        above_s = 0.0
        until_s = self._pace.settle_s + self._pace.hold_s
        while queue.now_s < until_s:
            queue.step()
            if queue.now_s > self._pace.settle_s:
                ages_s.append((queue.due - queue.told) / pageviews_per_s)
                above_s += STEP_S * (ages_s[-1] > worst_s)
            if above_s > (1 - QUANTILE) * self._pace.hold_s:
                break
        self._pass(WARM_UP_S + queue.now_s)
        broken_off = queue.now_s < until_s
        p99_ms = math.inf if broken_off else 1000 * float(np.quantile(ages_s, QUANTILE))
        return Held(p99_ms, 1000 * self._engine.cycle_s)

    def has_time(self) -> bool:
        """As the real search reckons."""
        return self.took_s + self._longest_s <= 60 * self._pace.within_min

    def _pass(self, seconds: float) -> None:
        self.took_s += START_AND_STOP_S + seconds
        self._longest_s = START_AND_STOP_S + WARM_UP_S + self._pace.settle_s + self._pace.hold_s


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
    found = find(runs, pace.sessions)
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
