"""How far inserts of the watched table have come on their way through CDC: due, in the database, in
their topic. From `purchases.csv`, which `racetrack/probes/purchases.py` writes."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from racetrack.analysis.csv_rows import whole_rows
from racetrack.analysis.lag import Floats
from racetrack.analysis.quantiles import quantiles
from racetrack.results_record import CdcWay
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
    waits, first = _oldest(due, there)
    return np.where(waits, at_ms - at_ms[first], 0.0) if len(at_ms) else at_ms


def at_most_ms(at_ms: Floats, due: Floats, there: Floats) -> Floats:
    """The same, up to a row's time too high: it became due after the row before."""
    waits, first = _oldest(due, there)
    return np.where(waits, at_ms - at_ms[np.maximum(first - 1, 0)], 0.0) if len(at_ms) else at_ms


def _oldest(due: Floats, there: Floats) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """At each row: whether one waits, and the first row at which the oldest that does was due."""
    if len(due):
        there = there - np.max(there - due)
    first = np.searchsorted(due, there, "right")
    return there < due, np.minimum(first, len(due) - 1)


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
    stages = (at_most_ms(told.at_ms, told.due, there) for there in (told.done, told.captured))
    in_database, in_topic = (quantiles(stage_ms[within]) for stage_ms in stages)
    if not (in_database and in_topic):
        return None
    return CdcWay(inserts_per_s=round(per_s, 2), in_database=in_database, in_topic=in_topic)
