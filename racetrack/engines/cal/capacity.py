"""Capacity of the calibration engine over time, with random noise and pauses of known means.

The noise is a factor: an Ornstein–Uhlenbeck process around 1, constant for STEP_S at a time and
clipped to the range 0 to 2, so that its mean is exactly 1. The times between pauses are
exponentially distributed. The long-run mean is `InjectedDefect.mean_capacity_per_s`.
"""

import math
from collections.abc import Iterator
from random import Random

from racetrack.results.defects import InjectedDefect

# Seconds between two changes of the noise; at most a tenth of its correlation time (settings.py).
STEP_S = 0.05


class Capacity:
    """Number of events that the engine could have counted since its start, if there had always
    been a backlog."""

    def __init__(self, defect: InjectedDefect, seed: int) -> None:
        self._stretches = stretches(defect, seed)
        self._from_s, self._until_s, self._per_s = 0.0, 0.0, 0.0
        self._work = 0.0  # the part until _from_s, in events

    def work_by(self, at_s: float) -> float:
        """Return the integral of the capacity from the start to `at_s` (seconds since the start).
        Calls must be in the order of time."""
        while at_s > self._until_s:
            self._work += self._per_s * (self._until_s - self._from_s)
            self._from_s = self._until_s
            self._until_s, self._per_s = next(self._stretches)
        return self._work + self._per_s * (at_s - self._from_s)


def stretches(defect: InjectedDefect, seed: int) -> Iterator[tuple[float, float]]:
    """Yield stretches of constant capacity, endlessly: the end of the stretch in seconds since the
    start, and the capacity in events per second."""
    # Noise and pauses have independent random numbers, so the pauses do not depend on the noise.
    pauses = _pauses(defect, Random(f"{seed} pauses"))  # noqa: S311
    at_s, (begins_s, ends_s) = 0.0, next(pauses)
    for until_s, level in _noise(defect, Random(f"{seed} noise")):  # noqa: S311
        while at_s < until_s:
            paused = at_s >= begins_s
            at_s = min(until_s, ends_s if paused else begins_s)
            yield at_s, 0.0 if paused else level * defect.capacity_per_s
            if at_s >= ends_s:
                begins_s, ends_s = next(pauses)


def _noise(defect: InjectedDefect, chance: Random) -> Iterator[tuple[float, float]]:
    """Yield the noise in steps: the end of a step in seconds since the start, and the factor by
    which the capacity is multiplied until then."""
    if not defect.capacity_noise_pct:
        yield math.inf, 1.0
    sd, kept = defect.capacity_noise_pct / 100, math.exp(-STEP_S / defect.capacity_noise_tau_s)
    fresh = sd * math.sqrt(1 - kept**2)
    swing, step = chance.gauss(0, sd), 0
    while True:
        step += 1
        yield step * STEP_S, 1 + max(-1.0, min(swing, 1.0))
        swing = kept * swing + chance.gauss(0, fresh)


def _pauses(defect: InjectedDefect, chance: Random) -> Iterator[tuple[float, float]]:
    """Yield the start and the end of each pause, in seconds since the start."""
    if not defect.pause_ms:
        yield math.inf, math.inf
    pause_s = defect.pause_ms / 1000
    ends_s = 0.0
    while True:
        begins_s = ends_s + chance.expovariate(1 / (defect.pause_every_s - pause_s))
        ends_s = begins_s + pause_s
        yield begins_s, ends_s
