"""How far inserts of the watched table have come on their way through CDC: due, in the database, in
their topic. From `purchases.csv`, which `racetrack/probes/purchases.py` writes."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from racetrack.analysis.csv_rows import whole_rows
from racetrack.analysis.curves import Curve, Curves
from racetrack.analysis.lag import Floats, counted, when
from racetrack.analysis.quantiles import quantiles
from racetrack.results_record import CdcWay
from racetrack.run_record import Window

FILE = "purchases.csv"
# What an insert waits for, one after the other.
STAGES = ("database", "cdc and broker", "engine")


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


def in_view(told: Inserts, view: Curves) -> Curve:
    """How many inserts a view held after each of its updates, by its marks: those that were due
    before the oldest mark that it lacked."""
    rows_ms = np.unique(np.concatenate([seen.at_ms for seen in view.processed]))
    oldest_ms = rows_ms
    for marks, seen in zip(view.due, view.processed, strict=True):
        oldest_ms = np.minimum(oldest_ms, when(marks)(counted(seen, rows_ms, "right") + 1))
    return Curve(rows_ms, np.interp(oldest_ms, told.at_ms, told.due))


def as_curves(told: Inserts, held: Curve) -> Curves:
    """What was due, and what a view held of it: one way with nothing in between, so that all of its
    stages are judged as one."""
    due = (Curve(told.at_ms, told.due),)
    return Curves((0,), due, due, due, (held,))


def waited(told: Inserts, held: Curve, start_ms: float, end_ms: float) -> dict[str, float]:
    """For what those waited in the window that were due and not in the view: the share of each
    stage, by their number. The most wait for the stage that limits the way. Empty if none did."""
    within = (told.at_ms >= start_ms) & (told.at_ms <= end_ms)
    captured = told.captured - _of_before(told.due, told.captured)
    come = [told.due, told.done, captured, counted(held, told.at_ms, "right")]
    there = [np.maximum(stage[within], 0) for stage in come]
    mean = (
        [float(np.mean(np.maximum(a - b, 0))) for a, b in pairwise(there)] if within.any() else []
    )
    return (
        {of: each / sum(mean) for of, each in zip(STAGES, mean, strict=True)} if any(mean) else {}
    )


def _of_before(due: Floats, there: Floats) -> float:
    """How many of what is there are of before the race: as many as make it never more than due."""
    return float(np.max(there - due, initial=0.0)) if len(due) else 0.0


def _oldest(due: Floats, there: Floats) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """At each row: whether one waits, and the first row at which the oldest that does was due."""
    there = there - _of_before(due, there)
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
