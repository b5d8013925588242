"""How far inserts of the watched table have come on their way through CDC: due, in the database, in
their topic. From `purchases.csv`, which `racetrack/probes/purchases.py` writes."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from racetrack.analysis.csv_rows import whole_rows
from racetrack.analysis.lag import Floats
from racetrack.results_record import CdcWay, Quantiles
from racetrack.run_record import Window

FILE = "purchases.csv"


@dataclass(frozen=True, eq=False)
class Inserts:
    """Counts by time, ten rows a second; arrays of one length. `captured` counts those of before
    the race too."""

    at_ms: Floats
    due: Floats  # and not refused
    done: Floats
    captured: Floats

    @property
    def lag_in_database_ms(self) -> Floats:
        """The age of the oldest that is due and not committed, at each row."""
        return lag_ms(self.at_ms, self.due, self.done)

    @property
    def lag_in_topic_ms(self) -> Floats:
        """The age of the oldest that is due and not in the topic that the engine reads."""
        return lag_ms(self.at_ms, self.due, self.captured)


def read(folder: Path) -> Inserts | None:
    """Those of a run folder; None in a run that did not follow them."""
    rows = whole_rows(folder / FILE)
    if not rows:
        return None
    columns = {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}
    due = columns["due"] - columns["refused"]
    return Inserts(columns["at_ms"], due, columns["done"], columns["captured"])


def lag_ms(at_ms: Floats, due: Floats, there: Floats) -> Floats:
    """The age of the oldest that is due and not there, at each row: up to a row's time too low.

    What is there may count those of before the race too; as many are taken off as make it never
    more than what was due.
    """
    if not len(at_ms):
        return at_ms
    there = there - np.max(there - due)
    first = np.searchsorted(due, there, "right")  # the first row where one more was due
    waiting = there < due
    came_ms = at_ms[np.minimum(first, len(at_ms) - 1)]
    return np.where(waiting, at_ms - came_ms, 0.0)


def way(folder: Path, window: Window) -> CdcWay | None:
    """How old the stages of the way were in the window; None in a run that did not follow them."""
    told = read(folder)
    if told is None:
        return None
    within = (told.at_ms >= window.start_ms) & (told.at_ms <= window.end_ms)
    if np.count_nonzero(within) < 2:
        return None
    at_ms, due = told.at_ms[within], told.due[within]
    per_s = 1000 * float(due[-1] - due[0]) / float(at_ms[-1] - at_ms[0])
    return CdcWay(
        inserts_per_s=round(per_s, 2),
        in_database=_quantiles(told.lag_in_database_ms[within]),
        in_topic=_quantiles(told.lag_in_topic_ms[within]),
    )


def _quantiles(lags_ms: Floats) -> Quantiles:
    p50_ms, p99_ms = np.quantile(lags_ms, (0.5, 0.99), method="inverted_cdf")
    return Quantiles(p50_ms=float(p50_ms), p99_ms=float(p99_ms))
