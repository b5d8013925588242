"""Synthetic runs: the curves that a run with a known lag would record.

A run is defined by when each event was handed over, published and processed, as functions of its
due time. At each update, the engine counts everything processed by then.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racetrack.analysis.curves import FILE, HEADER, NAMES, Curve, Curves

Floats = NDArray[np.float64]

START_MS = 1_790_000_000_000
SAMPLE_MS = 100.0
WARM_UP_MS = 5_000.0


@dataclass(frozen=True, eq=False)
class Waves:
    """Variation of a lag around its trend; all times in milliseconds since the window's start.

    At `at_ms[i]` the lag is higher by `added_ms[i]`; between these times it is interpolated. In the
    intervals (from, until) of `silent_ms` the engine makes no updates.
    """

    at_ms: Floats
    added_ms: Floats
    silent_ms: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class SyntheticRun:
    """Parameters of a run. Fields named `…_at_ms` count from the window's start; rates are in
    events per second.

    `leak` is the growth of the lag in ms per ms. The lag at each update has random noise with the
    standard deviation `noise_ms`, independent of other updates.
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


def curves(run: SyntheticRun, rng: np.random.Generator) -> Curves:
    """Return the curves that the run would record, warm-up included."""
    end_ms = run.window_s * 1000 + run.recorded_after_ms
    due_at = np.arange(-run.warm_up_ms, end_ms, SAMPLE_MS)
    asked_at = due_at + 37.0  # the harness samples at other times than the generator
    handed = due_at - run.generator_delay_ms - run.generator_leak * np.maximum(due_at, 0)
    published = _through_broker(run, asked_at)
    updates = _updates(run, end_ms, run.cycle_ms, rng)
    through = _counted_up_to(run, updates, rng)
    phases = rng.random(run.partitions)

    def rows(at: Floats, schedule_ms: Floats) -> tuple[Curve, ...]:
        per_ms = run.rate_per_s / 1000 / run.partitions
        sent = np.maximum(schedule_ms + run.warm_up_ms, 0) * per_ms
        stamps = np.round(at) + START_MS
        return tuple(Curve(stamps, np.floor(sent + phase)) for phase in phases)

    processed = list(rows(updates, np.minimum(through, _through_broker(run, updates))))
    if run.stalled_partition is not None:
        stalled = processed[run.stalled_partition]
        alive = updates < run.stalled_at_ms
        processed[run.stalled_partition] = Curve(stalled.at_ms[alive], stalled.count[alive])
    if run.slow_partition_cycle_ms:
        slow = _updates(run, end_ms, run.slow_partition_cycle_ms, rng)
        up_to = np.minimum(_counted_up_to(run, slow, rng), _through_broker(run, slow))
        processed[0] = rows(slow, up_to)[0]
    return Curves(
        partitions=tuple(range(run.partitions)),
        due=rows(due_at, due_at),
        handed_over=rows(due_at, handed),
        published=rows(asked_at, published),
        processed=tuple(processed),
    )


def _through_broker(run: SyntheticRun, at: Floats) -> Floats:
    """Return, for each time in `at`, the due time up to which all events have been published."""
    leak = run.generator_leak + run.broker_leak
    return at - run.generator_delay_ms - run.broker_delay_ms - leak * np.maximum(at, 0)


def _updates(run: SyntheticRun, end_ms: float, cycle_ms: float, rng: np.random.Generator) -> Floats:
    """Return the times of updates: one per cycle, up to 2 % of a cycle late, none in a pause."""
    first_ms = -run.warm_up_ms + rng.random() * cycle_ms
    at = np.arange(first_ms, end_ms, cycle_ms)
    at += rng.random(len(at)) * 0.02 * cycle_ms
    if run.pause_at_ms is not None:
        at = at[(at < run.pause_at_ms) | (at >= run.pause_at_ms + run.pause_ms)]
    for from_ms, until_ms in run.waves.silent_ms if run.waves else ():
        at = at[(at < from_ms) | (at >= until_ms)]
    return at


def _counted_up_to(run: SyntheticRun, at: Floats, rng: np.random.Generator) -> Floats:
    """Return, for each time in `at`, the due time up to which the engine has counted."""
    lag = run.delay_ms + run.leak * np.maximum(at, 0)
    if run.pause_at_ms is not None:
        after = at - run.pause_at_ms - run.pause_ms
        caught_up = (run.catch_up_factor - 1) * after
        lag = lag + np.where(after >= 0, np.maximum(run.pause_ms - caught_up, 0), 0)
    if run.waves:
        lag = lag + np.interp(at, run.waves.at_ms, run.waves.added_ms)
    lag = lag + rng.normal(0, run.noise_ms, len(at))
    # Counts never fall, and nothing is counted before it is due.
    return np.asarray(np.maximum.accumulate(at - np.maximum(lag, 0)), dtype=np.float64)


def changed(recorded: Curves, change: Callable[[Curve], Curve], *names: str) -> Curves:
    """Return the curves after applying a change to the curves with these names."""
    of: dict[str, Any] = {name: tuple(map(change, getattr(recorded, name))) for name in names}
    return replace(recorded, **of)


def set_back(recorded: Curves, at_ms: float, by_ms: float) -> Curves:
    """Return the curves as if the machine's clock had been set back by `by_ms` at epoch `at_ms`.

    That changes the times of harness and engine; the generator uses a monotonic clock.
    """

    def stamped(curve: Curve) -> Curve:
        return Curve(np.where(curve.at_ms >= at_ms, curve.at_ms - by_ms, curve.at_ms), curve.count)

    return changed(recorded, stamped, "published", "processed")


def write(recorded: Curves, folder: Path) -> None:
    """Write `curves.csv` as a run does."""
    lines = [",".join(HEADER)]
    for name in NAMES:
        for partition, curve in zip(recorded.partitions, getattr(recorded, name), strict=True):
            lines += [
                f"{at:.0f},{name},{partition},{count:.0f}"
                for at, count in zip(curve.at_ms, curve.count, strict=True)
            ]
    (folder / FILE).write_text("\n".join(lines) + "\n")
