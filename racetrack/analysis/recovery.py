"""Recovery of lag after a fault or a spike of the load, and the largest backlog.

The normal lag of a run is the largest lag in the BEFORE_S seconds before the fault or spike,
excluding time before the rate was set, but at least FLOOR_MS. The lag has recovered at the first
time from which it stays at or below normal until HOLD_S seconds after the service was running
again, or after the spike.

Three lags are examined. The lag of events is defined in docs/verdict.md and taken just before
each update, where it is largest. The lag of views is that of the traced view that needs longest to
recover. The lag of purchases is the age of the oldest purchase that is due but not yet in
Debezium's topic.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from racetrack.analysis import curves, views
from racetrack.analysis.curves import Curves, Floats, counted, recorded_until_ms, trusted
from racetrack.analysis.lag import lag_series
from racetrack.results.figures import FaultRecovery, LoadEffect, Recovery
from racetrack.results.run import FaultLog, LoadLog

BEFORE_S, HOLD_S = 10.0, 5.0
FLOOR_MS = 2_000.0
# Time limit for the lag to become normal after the last fault. An engine that reads all input again
# needs minutes.
NORMAL_WITHIN_S = 300.0


@dataclass(frozen=True, eq=False)
class LagHistory:
    """Lag over time: arrays of equal length, with times in epoch milliseconds."""

    at_ms: Floats
    lag_ms: Floats

    def until(self, at_ms: float) -> "LagHistory":
        """Return the lag up to a time."""
        end = int(np.searchsorted(self.at_ms, at_ms, "right"))
        return LagHistory(self.at_ms[:end], self.lag_ms[:end])


def recovery(series: LagHistory, from_ms: float, at_ms: float, until_ms: float) -> Recovery:
    """Return the recovery from a fault that lasted from `at_ms` to `until_ms`. The lag before the
    fault, but not before `from_ms` (when the rate was set), counts as normal. All times are epoch
    milliseconds."""
    before = (series.at_ms >= max(from_ms, at_ms - BEFORE_S * 1000)) & (series.at_ms < at_ms)
    # Leave out infinite lags: the oldest uncounted event is from before the recording.
    known = before & np.isfinite(series.lag_ms)
    normal_ms = float(np.max(series.lag_ms[known], initial=FLOOR_MS))
    after = series.at_ms >= at_ms
    times_ms, lags_ms = series.at_ms[after], series.lag_ms[after]
    high_ms = times_ms[lags_ms > normal_ms]
    next_rows = np.searchsorted(times_ms, high_ms, "right")
    back_ms = None
    for since_ms in (at_ms, *times_ms[next_rows[next_rows < len(times_ms)]]):
        to_ms = max(since_ms, until_ms) + HOLD_S * 1000
        calm = not np.any((high_ms >= since_ms) & (high_ms <= to_ms))
        if calm and len(times_ms) and times_ms[-1] >= to_ms:
            back_ms = float(since_ms)
            break
    over_ms = np.inf if back_ms is None else max(back_ms, until_ms)
    worst = lags_ms[times_ms <= over_ms]
    worst_ms = float(np.max(worst, initial=0.0))
    return Recovery(
        normal_ms=round(normal_ms, 1),
        worst_ms=round(worst_ms, 1) if np.isfinite(worst_ms) else None,
        after_s=None if back_ms is None else round((back_ms - at_ms) / 1000, 3),
    )


def events(folder: Path, from_ms: float) -> LagHistory:
    """Return the lag of events from `from_ms` on, from `curves.csv`."""
    return _history(curves.read(folder), from_ms)


def _history(recorded: Curves, from_ms: float) -> LagHistory:
    recorded = trusted(recorded)
    series = lag_series(recorded, from_ms, recorded_until_ms(recorded))
    return LagHistory(series.at_ms, np.maximum(series.lag_ms, series.stale_ms))


def traced_views(folder: Path, partitions: Sequence[int], from_ms: float) -> list[LagHistory]:
    """Return the lag of each traced view from `from_ms` on."""
    return [_history(view, from_ms) for _, view in views.traced_curves(folder, partitions)]


def purchases(folder: Path) -> LagHistory | None:
    """Return the lag of purchases; None if the run did not record purchases."""
    inserts = views.read_inserts(folder)
    return None if inserts is None else LagHistory(inserts.at_ms, inserts.lag_in_topic_ms)


def is_over(faults: Sequence[FaultRecovery]) -> bool:
    """Return whether all lags have recovered from all faults."""
    return all(lag.after_s is not None for fault in faults for lag in fault.lags.values())


def recoveries(
    folder: Path, faults: FaultLog, paused_ms: float | None = None
) -> tuple[FaultRecovery, ...]:
    """Return the recovery of all lags from each fault in `faults` that has ended. Lags that became
    normal only after the load was paused, at `paused_ms`, have not recovered."""
    from_ms, of_purchases, count = faults.from_ms, purchases(folder), curves.read(folder)
    until_ms = math.inf if paused_ms is None else paused_ms
    series = {
        "events": [_history(count, from_ms)],
        "views": traced_views(folder, count.partitions, from_ms),
        "purchases": [of_purchases] if of_purchases else [],
    }
    return tuple(
        FaultRecovery(
            fault=done.fault,
            **{
                name: max(
                    (
                        recovery(history.until(until_ms), from_ms, done.at_ms, done.until_ms)
                        for history in histories
                    ),
                    key=lambda lag: math.inf if lag.after_s is None else lag.after_s,
                )
                for name, histories in series.items()
                if histories
            },
        )
        for done in faults.done
        if done.until_ms is not None
    )


def load_effect(folder: Path, load: LoadLog, paused_ms: float | None = None) -> LoadEffect:
    """Return the effect of a load profile up to the time at which the load was paused; if that is
    None, up to the end of the recording."""
    recorded = trusted(curves.read(folder))
    until_ms = recorded_until_ms(recorded) if paused_ms is None else paused_ms
    most = max_backlog(recorded, load.from_ms, until_ms)
    begin_ms, end_ms = load.peak_from_ms, load.peak_until_ms
    if begin_ms is None or end_ms is None:
        return LoadEffect(max_backlog_events=most)
    before_ms = max(load.from_ms, begin_ms - BEFORE_S * 1000)
    from_peak = recovery(events(folder, load.from_ms), load.from_ms, begin_ms, end_ms)
    after_s = from_peak.after_s
    return LoadEffect(
        max_backlog_events=most,
        max_backlog_before_events=max_backlog(recorded, before_ms, begin_ms),
        recovery=from_peak,
        after_peak_s=(
            None if after_s is None else max(0.0, round(after_s - (end_ms - begin_ms) / 1000, 3))
        ),
    )


def max_backlog(recorded: Curves, from_ms: float, until_ms: float) -> int:
    """Return the largest backlog in an interval (epoch milliseconds): the number of events that
    are due but not counted, over all partitions. The backlog is largest just before an update."""
    every = (*recorded.due, *recorded.processed)
    at_ms = np.unique(np.concatenate([curve.at_ms for curve in every]))
    at_ms = at_ms[(at_ms >= from_ms) & (at_ms <= until_ms)]
    waiting = np.zeros(len(at_ms))
    for due, processed in zip(recorded.due, recorded.processed, strict=True):
        waiting += np.interp(at_ms, due.at_ms, due.count) - counted(processed, at_ms, "left")
    return round(float(np.max(waiting, initial=0.0)))
