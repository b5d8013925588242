"""Recovery of lag after a fault.

Normal is the largest lag in the BEFORE_S seconds before the fault (not before the rate was set), or
FLOOR_MS if that is more. Lag has recovered at the first time from which it stays normal until
HOLD_S seconds have passed with the service running again. The lag of pageviews is that of
docs/verdict.md, just before each update, where it is largest; the lag of purchases is the age of
the oldest that is due and not in Debezium's topic.
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
    """Return the recovery from a fault between `at_ms` and `until_ms`, at a rate set at `from_ms`;
    epoch milliseconds."""
    before = (series.at_ms >= max(from_ms, at_ms - BEFORE_S * 1000)) & (series.at_ms < at_ms)
    # A lag is infinite if the pageview was due before the recording began.
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
    """Return the lag of pageviews since a time, from `curves.csv`."""
    recorded = trusted(curves.read(folder))
    series = lag_series(recorded, from_ms, recorded_until_ms(recorded))
    return LagHistory(series.at_ms, np.maximum(series.lag_ms, series.stale_ms))


def purchases(folder: Path) -> LagHistory | None:
    """Return the lag of purchases in their topic; None if the run did not record them."""
    inserts = views.read_inserts(folder)
    return None if inserts is None else LagHistory(inserts.at_ms, inserts.lag_in_topic_ms)


def is_over(faults: Sequence[FaultRecovery]) -> bool:
    """Return whether all lags have recovered."""
    return all(lag.after_s is not None for each in faults for lag in each.lags.values())


def recoveries(folder: Path, faults: FaultLog) -> tuple[FaultRecovery, ...]:
    """Return the recovery of both lags from each fault of `run.json` that is over."""
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
