"""When was lag back to normal after a fault: pure functions, and the files that they need.

Normal is what lag was at most in the BEFORE_S seconds before the fault (no earlier than the rate
was set), or FLOOR_MS if that is more. It is back at the first moment from which it stays normal
until HOLD_S seconds have passed with the service running again. Lag is the age of the oldest that
is due and not there yet: of pageviews, not counted by the engine (as in docs/verdict.md, just
before each update, which is when it is largest); of purchases, not in the topic that Debezium
writes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from racetrack.analysis import curves, views
from racetrack.analysis.curves import Floats, recorded_until_ms, trusted
from racetrack.analysis.lag import lag_series
from racetrack.results.figures import FaultRecovery, Recovery
from racetrack.results.run import FaultLog

BEFORE_S, HOLD_S = 10.0, 5.0
FLOOR_MS = 2_000.0


@dataclass(frozen=True, eq=False)
class LagHistory:
    """Lag over time: epoch milliseconds and milliseconds, of one length."""

    at_ms: Floats
    lag_ms: Floats


def recovery(series: LagHistory, from_ms: float, at_ms: float, until_ms: float) -> Recovery:
    """How lag came back after a fault from `at_ms` to `until_ms`, at a rate set at `from_ms`."""
    before = (series.at_ms >= max(from_ms, at_ms - BEFORE_S * 1000)) & (series.at_ms < at_ms)
    # Without end is what was due before the recording began: how late that was, nobody knows.
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


def pageviews(folder: Path, from_ms: float) -> LagHistory:
    """The lag of pageviews since a time, from `curves.csv`."""
    told = trusted(curves.read(folder))
    series = lag_series(told, from_ms, recorded_until_ms(told))
    return LagHistory(series.at_ms, np.maximum(series.lag_ms, series.stale_ms))


def purchases(folder: Path) -> LagHistory | None:
    """The lag of purchases in their topic; None in a run that did not follow them."""
    told = views.read_inserts(folder)
    return None if told is None else LagHistory(told.at_ms, told.lag_in_topic_ms)


def is_over(recoveries: Sequence[FaultRecovery]) -> bool:
    """Whether all lags of `recoveries` are back."""
    return all(lag.after_s is not None for each in recoveries for lag in each.lags.values())


def recoveries(folder: Path, faults: FaultLog) -> tuple[FaultRecovery, ...]:
    """For each fault of `run.json` that has passed: the fault, and how both lags came back."""
    series = {"pageviews": pageviews(folder, faults.from_ms), "purchases": purchases(folder)}
    return tuple(
        FaultRecovery(
            fault=done.fault,
            **{
                name: recovery(of, faults.from_ms, done.at_ms, done.until_ms)
                for name, of in series.items()
                if of is not None
            },
        )
        for done in faults.done
        if done.until_ms is not None
    )
