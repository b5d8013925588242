"""Searches on a machine whose cores others share by spells, made up: what they say at like speed.

    python -m tests.run.shared_cores [SETS]

prints the table of docs/limit.md: how far three searches agree as they are, and at like speed.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from racetrack.analysis.capacity import MOMENT_S, Work
from racetrack.analysis.compare import apart
from racetrack.analysis.like_speed import Likened, Observation, likened
from racetrack.run.phases import PACE
from racetrack.run.search import find
from tests.run.fluid import LONGEST_S, STEP_S, FluidRun, FluidRuns, Wavering

SETS, SEARCHES, CORES = 500, 3, 2
# As seen on a machine with such cores (docs/measured.md): a spell takes seconds, and the part of
# the time in which a core is shared changes from run to run.
SPELL_S, SHARED_LEAST, SHARED_MOST, SHARED_SPEED = 10.0, 0.1, 0.7, 0.73
# A core, looked at for a tenth of a millisecond, twice a second.
LOOKS_PER_S, LOOK_NOISE = 2, 0.05
FASTEST_MIB_PER_S = 880.0


@dataclass(frozen=True)
class Sharing(Wavering):
    """An engine that works as the cores' speed to the power `power`; `speeds` are parts of the
    fastest, one for each STEP_S, of each core."""

    power: float = 1.0
    speeds: tuple[tuple[float, ...], ...] = ()

    def steps(self, rng: Generator) -> NDArray[np.float64]:
        """As of one that has its cores for itself, times what the cores do."""
        speed: NDArray[np.float64] = np.mean(self.speeds, axis=0)
        return super().steps(rng) * speed**self.power


def spells(rng: Generator) -> tuple[float, ...]:
    """How fast a core is in each step of a run."""
    share = rng.uniform(SHARED_LEAST, SHARED_MOST)
    speeds = np.ones(int(LONGEST_S / STEP_S))
    at_s, is_shared = 0.0, rng.random() < share
    while at_s < LONGEST_S:
        usual_s = SPELL_S if is_shared else SPELL_S * (1 - share) / share
        until_s = at_s + rng.exponential(usual_s)
        if is_shared:
            speeds[int(at_s / STEP_S) : int(until_s / STEP_S)] = SHARED_SPEED
        at_s, is_shared = until_s, not is_shared
    return tuple(speeds.tolist())


class SharedRun(FluidRun):
    """A fresh run that keeps what it worked in short, with the cores' speed as it would be seen."""

    def __init__(self, engine: Sharing, rng: Generator) -> None:
        super().__init__(engine, rng, PACE)
        self._speeds, self._rng = np.array(engine.speeds), rng
        self.moments: list[tuple[float, float]] = []

    def work(self) -> Work:
        found = super().work()
        edges_s = [edge_ms / 1000 for edge_ms in found.edges_ms]
        for per_s, from_s, until_s in zip(found.moments_per_s, edges_s, edges_s[1:], strict=False):
            looks_s = np.arange(from_s, until_s, 1 / LOOKS_PER_S)
            looks = self._speeds[:, (looks_s / STEP_S).astype(int)]
            seen = looks * (1 + self._rng.normal(0, LOOK_NOISE, looks.shape))
            self.moments.append((per_s, float(seen.mean())))
        return found


class SharedRuns(FluidRuns):
    """Each run finds its cores shared in another way."""

    def __init__(self, engine: Sharing, rng: Generator) -> None:
        super().__init__(engine, rng)
        self._sharing, self.made = engine, list[SharedRun]()

    @contextmanager
    def fresh(self) -> Iterator[FluidRun]:
        speeds = tuple(spells(self._rng) for _ in range(CORES))
        run = SharedRun(replace(self._sharing, speeds=speeds), self._rng)
        self.made.append(run)
        self._runs.append(run)
        yield run


@dataclass(frozen=True)
class Told:
    """Three searches of one engine: what each found, and what all say at like speed; parts of what
    it works on cores for itself."""

    as_found: tuple[float, ...]
    likened: Likened


def told(engine: Sharing, rng: Generator) -> Told:
    """A set of searches. What was counted is as much as a run's rate says."""
    as_found, seen = [], list[Observation]()
    for search in range(SEARCHES):
        runs = SharedRuns(engine, rng)
        found = find(runs)
        assert found is not None
        as_found.append(found.capacity.per_s / engine.per_s)
        for run in runs.made:
            for number, (per_s, speed) in enumerate(run.moments):
                counted = run.took_s * engine.per_s / 2 + MOMENT_S * number * engine.per_s
                part = per_s / engine.per_s
                seen.append(Observation(search, part, FASTEST_MIB_PER_S * speed, counted))
    at_like_speed = likened(seen, FASTEST_MIB_PER_S)
    assert at_like_speed is not None
    return Told(tuple(as_found), at_like_speed)


KINDS = {
    "2 % noise, works as its cores do": Sharing(noise=0.02),
    "5 % noise, works as its cores do": Sharing(noise=0.05),
    "5 % noise, slows down more (power 1.5)": Sharing(noise=0.05, power=1.5),
    "5 % noise, power 1.5, updates every 5 s": Sharing(noise=0.05, power=1.5, cycle_s=5.0),
    "5 % noise, power 1.5, updates every 10 s": Sharing(noise=0.05, power=1.5, cycle_s=10.0),
    "10 % noise, power 1.5": Sharing(noise=0.1, power=1.5),
    "5 % noise, does not mind (power 0)": Sharing(noise=0.05, power=0.0),
}


def table(sets: int) -> Table:
    """A row a kind of engine."""
    made = Table(
        *("engine", "as found: apart, median, 95 %", "at like speed: apart, median, 95 %"),
        *("bias at like speed, %", "interval holds it, %", "power: mean ± sd"),
        "its interval holds it, %",
    )
    for name, engine in KINDS.items():
        rng = np.random.default_rng(20261125)
        of = [told(engine, rng) for _ in range(sets)]
        powers = np.array([one.likened.power.value for one in of])
        halves = np.array([one.likened.power.half for one in of])
        capacities = [one.likened.capacity for one in of]
        made.add_row(
            name,
            _median_and_most([apart(one.as_found) for one in of]),
            _median_and_most([apart(one.likened.per_s) for one in of]),
            f"{100 * (np.mean([one.per_s for one in capacities]) - 1):+.1f}",
            f"{100 * np.mean([one.low <= 1 <= one.high for one in capacities]):.0f}",
            f"{powers.mean():.2f} ± {powers.std():.2f}",
            f"{100 * np.mean(np.abs(powers - engine.power) <= halves):.0f}",
        )
    return made


def _median_and_most(parts: list[float]) -> str:
    return f"{100 * np.median(parts):.1f}, {100 * np.quantile(parts, 0.95):.1f}"


if __name__ == "__main__":
    Console(width=180).print(table(int(sys.argv[1]) if len(sys.argv) > 1 else SETS))
