"""Capacity: the throughput at saturation, and the CPU time per million events."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from racetrack.analysis.curves import (
    Curves,
    Floats,
    counted,
    recorded_until_ms,
    trusted,
    update_times_ms,
)
from racetrack.analysis.intervals import summary
from racetrack.analysis.lag import age
from racetrack.analysis.raw import Reading, increase
from racetrack.results.search import Capacity

# A smaller idle fraction can't be distinguished from 0, because end offsets are sampled.
IDLE_SHARE = 0.01
# Tracer events are a second apart, which limits the resolution of a traced view's throughput.
TRACER_RESOLUTION = 0.02


@dataclass(frozen=True)
class Work:
    """Throughput of an engine or a view in a window at saturation.

    `batches_per_s` is the throughput in each batch (part of the window), events per second.
    `backlog_min_s` and `backlog_max_s` are the extremes of the age of the oldest uncounted event.
    `idle_share` is the fraction of the window in which at least one partition had no backlog.
    """

    batches_per_s: tuple[float, ...]
    backlog_min_s: float
    backlog_max_s: float
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

    Throughput is correlated over seconds, so batches shorter than 30 s are not independent.

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
    ages = age(curves, float(updates[0]), float(updates[-1]))
    return Work(
        batches_per_s=tuple(rates.tolist()),
        backlog_min_s=float(ages.lowest_ms.min()) / 1000,
        backlog_max_s=float(ages.highest_ms.max()) / 1000,
        idle_share=_idle_share(curves, updates),
    )


def slowest(count: Work, views: Mapping[str, Work]) -> tuple[str | None, Work]:
    """Return the name and the work of the slowest traced view, or None and `count` if no view is
    slower than the engine's count. A view must have had a backlog at all times and be slower by
    more than TRACER_RESOLUTION."""
    behind = {name: of for name, of in views.items() if of.is_capacity}
    name = min(behind, key=lambda name: behind[name].per_s, default=None)
    if name is None or behind[name].per_s >= count.per_s * (1 - TRACER_RESOLUTION):
        return None, count
    return name, behind[name]


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
            increase([one.at_ms for one in readings], [one.cpu_s for one in readings], *ends_ms)
            / (counted / 1e6),
            3,
        )
        for service, readings in usage.items()
    }
