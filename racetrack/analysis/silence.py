"""Engines that say little: how often one tells of an update, and whether it did so afterwards."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from racetrack.analysis.curves import Curves

# An engine's rhythm may change with the load, so it is taken from what was just before.
RHYTHM_FROM_MS = 30_000.0
# An update's rows come within a few milliseconds; no engine has a cycle as short as this.
STEP_MS = 5.0
# After so much silence a view is stale whatever its rhythm.
LONG_MS = 10_000.0


@dataclass(frozen=True)
class Silence:
    """What is known around a window.

    `rhythm_ms` is the usual time between two updates before it, None if there were no two.
    `longest_ms` is the longest time without one up to the window's end, from the last one before
    the window on. `next_update_s` is how long after the window's end the next one came, None if
    none did. `recorded_s` is how long the recording went on after it.
    """

    rhythm_ms: float | None
    longest_ms: float
    next_update_s: float | None
    recorded_s: float

    @property
    def is_for_good(self) -> bool:
        """Whether it told of nothing any more though it was given time."""
        return self.next_update_s is None and self.recorded_s >= LONG_MS / 1000


def update_times_ms(curves: Curves) -> NDArray[np.float64]:
    """When each update of the engine was there whole, in order."""
    return update_steps(curves)[1]


@lru_cache(maxsize=1)
def update_steps(curves: Curves) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """When each update of the engine began, and when it was there whole.

    Some engines tell of each partition with a time of its own. Rows that follow each other within
    STEP_MS belong to one update, unless a partition comes again: then that is the next one.
    A verdict asks for them several times over, so those of the last curves are kept.
    """
    at_ms = np.concatenate([curve.at_ms for curve in curves.processed])
    numbers = [np.full(len(c.at_ms), n) for n, c in enumerate(curves.processed)]
    order = np.argsort(at_ms, kind="stable")
    begun: list[float] = []
    whole: list[float] = []
    seen: set[int] = set()
    for at, partition in zip(
        at_ms[order].tolist(), np.concatenate(numbers)[order].tolist(), strict=True
    ):
        gap_ms = at - whole[-1] if whole else np.inf
        if gap_ms > STEP_MS or (gap_ms > 0 and partition in seen):
            begun.append(at)
            whole.append(at)
            seen = set()
        whole[-1] = at
        seen.add(partition)
    return np.array(begun), np.array(whole)


def around(curves: Curves, start_ms: float, end_ms: float, recorded_until_ms: float) -> Silence:
    """What the updates before and after a window say."""
    updates = update_times_ms(curves)
    after = updates[updates > end_ms]
    first = max(0, int(np.searchsorted(updates, start_ms)) - 1)
    until_end = np.append(updates[first : len(updates) - len(after)], end_ms)
    return Silence(
        rhythm_ms(updates, start_ms),
        float(np.max(np.diff(until_end), initial=0.0)),
        float(after[0] - end_ms) / 1000 if len(after) else None,
        max(0.0, recorded_until_ms - end_ms) / 1000,
    )


def rhythm_ms(updates: NDArray[np.float64], until_ms: float) -> float | None:
    """The median over time of the gaps between updates: half of the time was spent in gaps of at
    least this length. None without a gap."""
    before = updates[updates <= until_ms]
    ends, gaps = before[1:], np.diff(before)
    recent = np.sort(gaps[ends > until_ms - RHYTHM_FROM_MS])
    if not len(recent):
        return None
    reached = np.cumsum(recent)
    return float(recent[np.searchsorted(reached, reached[-1] / 2)])
