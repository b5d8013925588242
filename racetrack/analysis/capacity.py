"""Capacity: the rate at which an engine works when there is always more to do. Pure functions."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from racetrack.analysis import compare
from racetrack.analysis.age import age
from racetrack.analysis.curves import Curves
from racetrack.analysis.lag import Floats, counted, recorded_until_ms, trusted
from racetrack.analysis.silence import update_times_ms

# An engine may be short of work for so much of the time: a moment when two clocks look at once.
IDLE_SHARE = 0.01
# A partition's marks are a second apart, so how far a view has come is known so well over minutes.
MARKS_TELL = 0.02
# The cores' speed changes within seconds.
MOMENT_S = 10.0


@dataclass(frozen=True)
class Work:
    """What an engine did in a window in which it was to have a backlog all the time.

    `batches_per_s` is the rate of each batch, pageviews per second. `youngest_s` and `oldest_s` are
    the least and the greatest age of its backlog. `idle_share` is the part of the time in which it
    had counted all that was published of some partition, and so may have waited for more.
    `moments_per_s` are the rates between each two of `edges_ms`, epoch milliseconds: see `moments`.
    """

    batches_per_s: tuple[float, ...]
    youngest_s: float
    oldest_s: float
    idle_share: float
    edges_ms: tuple[float, ...] = ()
    moments_per_s: tuple[float, ...] = ()

    @property
    def per_s(self) -> float:
        """The rate over the whole window: the batches are of one length."""
        return statistics.fmean(self.batches_per_s)

    @property
    def is_capacity(self) -> bool:
        """Whether there was always more to do."""
        return self.idle_share <= IDLE_SHARE


@dataclass(frozen=True)
class Estimate:
    """A capacity with its 95 % interval, pageviews per second."""

    per_s: float
    low: float
    high: float


def work(curves: Curves, start_ms: float, end_ms: float, batch_s: float) -> Work:
    """The engine's work between its first and its last update in the window, in equal batches of
    about `batch_s`. Between two updates the count is taken to grow evenly. Work wavers over
    seconds: batches of less than 30 s are not independent of each other.

    Raises:
        ValueError: there are not two updates.
    """
    curves = trusted(curves)
    end_ms = min(end_ms, recorded_until_ms(curves))
    updates = update_times_ms(curves)
    updates = updates[(updates >= start_ms) & (updates <= end_ms)]
    if len(updates) < 2:
        raise ValueError("the engine told of no work in this window")
    total = np.sum([counted(curve, updates, "right") for curve in curves.processed], axis=0)
    seconds = (updates[-1] - updates[0]) / 1000
    edges = np.linspace(updates[0], updates[-1], max(1, round(seconds / batch_s)) + 1)
    rates = np.diff(np.interp(edges, updates, total)) / np.diff(edges) * 1000
    moment_edges, moments_per_s = moments(updates, total)
    told = age(curves, float(updates[0]), float(updates[-1]))
    return Work(
        batches_per_s=tuple(rates.tolist()),
        youngest_s=float(told.lowest_ms.min()) / 1000,
        oldest_s=float(told.highest_ms.max()) / 1000,
        idle_share=_idle_share(curves, updates),
        edges_ms=tuple(moment_edges.tolist()),
        moments_per_s=tuple(moments_per_s.tolist()),
    )


def moments(updates_ms: Floats, total: Floats) -> tuple[Floats, Floats]:
    """Where moments of MOMENT_S or a little more begin and end, and the rate of each, per second.
    Each is from one update to another: how the count grew between two, nobody knows, and what moves
    it within seconds would seem to move it less than it does.
    """
    edges = [0]
    for n, at_ms in enumerate(updates_ms):
        if at_ms - updates_ms[edges[-1]] >= 1000 * MOMENT_S:
            edges.append(n)
    at_ms = updates_ms[edges]
    return at_ms, np.diff(total[edges]) / np.diff(at_ms) * 1000


def slowest(count: Work, views: Mapping[str, Work]) -> tuple[str | None, Work]:
    """What an engine really works: that of its count, or of the view that works least, with its
    name, if that is less by more than marks can tell and it always had more to do."""
    behind = {name: of for name, of in views.items() if of.is_capacity}
    name = min(behind, key=lambda name: behind[name].per_s, default=None)
    if name is None or behind[name].per_s >= count.per_s * (1 - MARKS_TELL):
        return None, count
    return name, behind[name]


def _idle_share(curves: Curves, updates: Floats) -> float:
    """An update that leaves nothing of a partition to do makes the time up to the next one idle. At
    least as many were published as the last look before it said."""
    idle = np.zeros(len(updates), dtype=bool)
    for published, processed in zip(curves.published, curves.processed, strict=True):
        idle |= counted(processed, updates, "right") >= counted(published, updates, "right")
    gaps = np.diff(updates)
    return float(gaps[idle[:-1]].sum() / gaps.sum())


def estimate(sessions: Sequence[Work]) -> Estimate:
    """The capacity of an engine from fresh sessions of equal length.

    Student's t over the batches of all sessions; widened to hold each session's own rate, since
    batches of one session say nothing of how sessions differ. One batch alone has no interval.

    Raises:
        ValueError: there is no session.
    """
    rates = [rate for session in sessions for rate in session.batches_per_s]
    half = compare.mean(rates).half
    half = math.inf if half is None else half
    means = [session.per_s for session in sessions]
    mean = statistics.fmean(means)
    return Estimate(mean, min(mean - half, *means), max(mean + half, *means))
