"""Capacity: the throughput at saturation, and the CPU time per million events."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from racetrack.analysis import views
from racetrack.analysis.curves import (
    Curves,
    Floats,
    counted,
    read,
    recorded_until_ms,
    trusted,
    update_times_ms,
)
from racetrack.analysis.intervals import summary
from racetrack.analysis.raw import Reading, increase
from racetrack.results.folder import read_run
from racetrack.results.run import SATURATION, Window
from racetrack.workloads.contract import find_workload, workload_of

# Throughput is correlated over seconds, so shorter batches are not independent.
BATCH_S = 30.0
# A smaller idle fraction can't be distinguished from 0, because end offsets are sampled.
IDLE_SHARE = 0.01
# Tracer events are a second apart, which limits the resolution of a traced view's throughput.
TRACER_RESOLUTION = 0.02


@dataclass(frozen=True)
class Work:
    """Throughput of an engine or a view in a window at saturation.

    `batches_per_s` is the throughput in each batch (part of the window), events per second.
    `idle_share` is the fraction of the window in which at least one partition had no backlog.
    """

    batches_per_s: tuple[float, ...]
    idle_share: float

    @property
    def per_s(self) -> float:
        """Mean throughput over the window, events per second."""
        return statistics.fmean(self.batches_per_s)

    @property
    def is_capacity(self) -> bool:
        """True if there was always a backlog, so that the throughput is the capacity."""
        return self.idle_share <= IDLE_SHARE


def work(curves: Curves, start_ms: float, end_ms: float, batch_s: float) -> Work:
    """Return the throughput between the first and the last update in the window, divided into equal
    batches of about `batch_s` seconds. Between updates the count is interpolated linearly.

    Raises:
        ValueError: the window has fewer than two updates.
    """
    curves = trusted(curves)
    end_ms = min(end_ms, recorded_until_ms(curves))
    updates = update_times_ms(curves)
    updates = updates[(updates >= start_ms) & (updates <= end_ms)]
    if len(updates) < 2:
        raise ValueError("the engine reported fewer than two updates in this window")
    total = np.sum([counted(curve, updates, "right") for curve in curves.processed], axis=0)
    seconds = (updates[-1] - updates[0]) / 1000
    edges = np.linspace(updates[0], updates[-1], max(1, round(seconds / batch_s)) + 1)
    rates = np.diff(np.interp(edges, updates, total)) / np.diff(edges) * 1000
    return Work(
        batches_per_s=tuple(rates.tolist()),
        idle_share=_idle_share(curves, updates),
    )


def slowest(count: Work, views: Mapping[str, Work]) -> tuple[str | None, Work]:
    """Return the name and the work of the slowest traced view, or None and `count` if no view is
    slower than the engine's count. A view must have had a backlog at all times and be slower by
    more than TRACER_RESOLUTION."""
    behind = {name: view_work for name, view_work in views.items() if view_work.is_capacity}
    name = min(behind, key=lambda name: behind[name].per_s, default=None)
    if name is None or behind[name].per_s >= count.per_s * (1 - TRACER_RESOLUTION):
        return None, count
    return name, behind[name]


@dataclass(frozen=True)
class MeasuredWork:
    """Throughput at saturation. `view` is the name of the slowest traced view; None if the engine's
    count was slowest."""

    work: Work
    view: str | None = None


def measured(
    folder: Path, count: Curves, topic: str, window: Window, batch_s: float
) -> MeasuredWork:
    """Return the throughput of a run in a window: that of the engine's count, or of a traced view
    that is slower. Views without events of `topic`, the main topic, are left out, because the load
    gives them no backlog.

    Raises:
        ValueError: there are too few updates.
    """
    within, followed = (window.start_ms, window.end_ms, batch_s), {}
    for view, view_curves in views.traced_curves(folder, count.partitions):
        if view.source == topic:
            try:
                followed[view.name] = work(views.as_events(view_curves, count), *within)
            except ValueError as error:
                raise ValueError(f"in the view {view.name}, {error}") from error
    name, slow = slowest(work(count, *within), followed)
    return MeasuredWork(slow, name)


def _idle_share(curves: Curves, updates: Floats) -> float:
    """Return the fraction of time after updates that left some partition without a backlog.

    An update is compared with the last end offset sampled before it. The true end offset may be
    higher, so the result is an upper bound.
    """
    idle = np.zeros(len(updates), dtype=bool)
    for published, processed in zip(curves.published, curves.processed, strict=True):
        idle |= counted(processed, updates, "right") >= counted(published, updates, "right")
    gaps = np.diff(updates)
    return float(gaps[idle[:-1]].sum() / gaps.sum())


@dataclass(frozen=True)
class Capacity:
    """Throughput at saturation with its 95 % interval, whose ends may be infinite."""

    per_s: float
    low: float
    high: float


def estimate(sessions: Sequence[Work]) -> Capacity:
    """Return the capacity from one or more fresh runs of equal length.

    The interval is Student's t interval over all batches, extended to contain the mean of each run,
    because batches of the same run do not show how much runs differ.

    Raises:
        ValueError: there is no run.
    """
    rates = [rate for session in sessions for rate in session.batches_per_s]
    half = summary(rates).half
    half = math.inf if half is None else half
    means = [session.per_s for session in sessions]
    mean = statistics.fmean(means)
    return Capacity(per_s=mean, low=min(mean - half, *means), high=max(mean + half, *means))


def of_folders(folders: Sequence[Path]) -> Capacity | None:
    """Return the capacity from the windows at saturation of run folders; None if there are too few
    updates in one of them."""
    sessions = []
    for folder in folders:
        run = read_run(folder)
        topic = find_workload(workload_of(run.settings)).topic.name
        for window in run.windows:
            if window.name == SATURATION and window.start_ms and window.end_ms:
                within = Window(start_ms=window.start_ms, end_ms=window.end_ms)
                sessions.append((folder, topic, within))
    try:
        works = [
            measured(folder, read(folder), topic, within, BATCH_S).work
            for folder, topic, within in sessions
        ]
    except ValueError:
        return None
    return estimate(works) if works else None


def cpu_s_per_million(
    usage: Mapping[str, Sequence[Reading]], start_ms: float, end_ms: float, counted: float
) -> dict[str, float]:
    """Return the CPU seconds of each service between two times (epoch milliseconds), divided by the
    millions of events `counted` in that time; empty if `counted` is 0.

    CPU time is interpolated linearly between readings.
    """
    if counted <= 0:
        return {}
    ends_ms = start_ms, end_ms
    return {
        service: round(
            increase(
                [reading.at_ms for reading in readings],
                [reading.cpu_s for reading in readings],
                *ends_ms,
            )
            / (counted / 1e6),
            3,
        )
        for service, readings in usage.items()
    }
