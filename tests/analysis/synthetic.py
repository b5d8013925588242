"""Curves as a run would have recorded them, with a known truth: rows, not lags, are made up.

A run is told by three clocks: when number n was handed over, published and counted. Each is a
function of the due time; an engine then counts, at each of its updates, everything that it is
through with.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from racetrack.analysis.curves import FILE, HEADER, NAMES, Curve, Curves

Floats = NDArray[np.float64]

START_MS = 1_790_000_000_000
SAMPLE_MS = 100.0
WARM_UP_MS = 5_000.0


@dataclass(frozen=True, eq=False)
class Waves:
    """What a lag does beside its trend: milliseconds since the window's start, what is added to the
    lag then (linear between these times), and when the engine says nothing (from, until)."""

    at_ms: Floats
    added_ms: Floats
    silent_ms: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Race:
    """What happens in a run; milliseconds since the window's start, rates in pageviews/s.

    `leak` is how many ms the engine falls behind in a ms. Noise is the standard deviation of the
    lag at an update, independent from update to update.
    """

    window_s: float = 30.0
    warm_up_ms: float = WARM_UP_MS
    recorded_after_ms: float = 1_000.0
    partitions: int = 4
    rate_per_s: float = 4_000.0
    cycle_ms: float = 1_000.0
    delay_ms: float = 500.0
    noise_ms: float = 100.0
    leak: float = 0.0
    pause_at_ms: float | None = None
    pause_ms: float = 0.0
    catch_up_factor: float = 2.0
    stalled_partition: int | None = None
    stalled_at_ms: float = 0.0
    slow_partition_cycle_ms: float | None = None
    generator_delay_ms: float = 2.0
    generator_leak: float = 0.0
    broker_delay_ms: float = 5.0
    broker_leak: float = 0.0
    waves: Waves | None = None

    @property
    def window(self) -> tuple[float, float]:
        """Start and end of the sampling window, epoch milliseconds."""
        return START_MS, START_MS + self.window_s * 1000


def curves(race: Race, rng: np.random.Generator) -> Curves:
    """What would stand in `curves.csv`, from the warm-up before the window on."""
    end_ms = race.window_s * 1000 + race.recorded_after_ms
    due_at = np.arange(-race.warm_up_ms, end_ms, SAMPLE_MS)
    asked_at = np.arange(-race.warm_up_ms, end_ms, SAMPLE_MS) + 37.0  # the harness' own rhythm
    handed = due_at - race.generator_delay_ms - race.generator_leak * np.maximum(due_at, 0)
    published = _through_broker(race, asked_at)
    updates = _updates(race, end_ms, race.cycle_ms, rng)
    through = _counted_up_to(race, updates, rng)
    phases = rng.random(race.partitions)

    def rows(at: Floats, schedule_ms: Floats) -> tuple[Curve, ...]:
        per_ms = race.rate_per_s / 1000 / race.partitions
        sent = np.maximum(schedule_ms + race.warm_up_ms, 0) * per_ms
        stamps = np.round(at) + START_MS
        return tuple(Curve(stamps, np.floor(sent + phase)) for phase in phases)

    processed = list(rows(updates, np.minimum(through, _through_broker(race, updates))))
    if race.stalled_partition is not None:
        stalled = processed[race.stalled_partition]
        alive = updates < race.stalled_at_ms
        processed[race.stalled_partition] = Curve(stalled.at_ms[alive], stalled.count[alive])
    if race.slow_partition_cycle_ms:
        slow = _updates(race, end_ms, race.slow_partition_cycle_ms, rng)
        up_to = np.minimum(_counted_up_to(race, slow, rng), _through_broker(race, slow))
        processed[0] = rows(slow, up_to)[0]
    return Curves(
        partitions=tuple(range(race.partitions)),
        due=rows(due_at, due_at),
        handed_over=rows(due_at, handed),
        published=rows(asked_at, published),
        processed=tuple(processed),
    )


def _through_broker(race: Race, at: Floats) -> Floats:
    """Up to which due time everything is published."""
    leak = race.generator_leak + race.broker_leak
    return at - race.generator_delay_ms - race.broker_delay_ms - leak * np.maximum(at, 0)


def _updates(race: Race, end_ms: float, cycle_ms: float, rng: np.random.Generator) -> Floats:
    """When the engine says something: each cycle, up to 2 % late, but not while it pauses."""
    first_ms = -race.warm_up_ms + rng.random() * cycle_ms
    at = np.arange(first_ms, end_ms, cycle_ms)
    at += rng.random(len(at)) * 0.02 * cycle_ms
    if race.pause_at_ms is not None:
        at = at[(at < race.pause_at_ms) | (at >= race.pause_at_ms + race.pause_ms)]
    for from_ms, until_ms in race.waves.silent_ms if race.waves else ():
        at = at[(at < from_ms) | (at >= until_ms)]
    return at


def _counted_up_to(race: Race, at: Floats, rng: np.random.Generator) -> Floats:
    """Up to which due time the engine has counted at these times."""
    lag = race.delay_ms + race.leak * np.maximum(at, 0)
    if race.pause_at_ms is not None:
        after = at - race.pause_at_ms - race.pause_ms
        caught_up = (race.catch_up_factor - 1) * after
        lag = lag + np.where(after >= 0, np.maximum(race.pause_ms - caught_up, 0), 0)
    if race.waves:
        lag = lag + np.interp(at, race.waves.at_ms, race.waves.added_ms)
    lag = lag + rng.normal(0, race.noise_ms, len(at))
    # Nobody takes back what was counted; nothing is counted before it is due.
    return np.asarray(np.maximum.accumulate(at - np.maximum(lag, 0)), dtype=np.float64)


def set_back(told: Curves, at_ms: float, by_ms: float) -> Curves:
    """The same run on a machine whose clock is set back at an epoch time: the harness and the
    engine stamp by it, the generator (its clock is monotonic) does not."""

    def stamped(curve: Curve) -> Curve:
        return Curve(np.where(curve.at_ms >= at_ms, curve.at_ms - by_ms, curve.at_ms), curve.count)

    return replace(
        told,
        published=tuple(map(stamped, told.published)),
        processed=tuple(map(stamped, told.processed)),
    )


def write(told: Curves, folder: Path) -> None:
    """Write `curves.csv` as a run would."""
    lines = [",".join(HEADER)]
    for name in NAMES:
        for partition, curve in zip(told.partitions, getattr(told, name), strict=True):
            lines += [
                f"{at:.0f},{name},{partition},{count:.0f}"
                for at, count in zip(curve.at_ms, curve.count, strict=True)
            ]
    (folder / FILE).write_text("\n".join(lines) + "\n")
