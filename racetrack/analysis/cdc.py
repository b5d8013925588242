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
from racetrack.results.figures import CdcWay
from racetrack.results.run import Window

FILE = "purchases.csv"
# What an insert waits for, one after the other.
STAGES = ("database", "cdc", "broker", "engine")


@dataclass(frozen=True, eq=False)
class Inserts:
    """Counts by time since the race began, ten rows a second; arrays of one length."""

    at_ms: Floats
    due: Floats  # and not refused
    done: Floats
    sent: Floats  # by CDC, to the broker
    captured: Floats  # in the topic

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
    # The topic has those of before the race, too: as many as make it never more than what was due.
    captured = columns["captured"] - np.max(columns["captured"] - due, initial=0.0)
    sent = _sent(columns["at_ms"], captured, columns["sent_ms"])
    return Inserts(
        columns["at_ms"], due, columns["done"], np.minimum(sent, columns["done"]), captured
    )


def _sent(at_ms: Floats, captured: Floats, sent_ms: Floats) -> Floats:
    """Return how many CDC had sent at each row, by when it sent the newest that was seen; as many
    as were captured where it sent none."""
    if not sent_ms.any():
        return captured
    known = sent_ms > 0
    return np.maximum(captured, np.interp(at_ms, sent_ms[known], captured[known]))


def lag_ms(at_ms: Floats, due: Floats, there: Floats) -> Floats:
    """The age of the oldest that is due and not there, at each row: up to a row's time too low."""
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


def backlog_by_stage(
    told: Inserts, held: Curve, start_ms: float, end_ms: float
) -> dict[str, float]:
    """Return the share of the backlog before each stage of the CDC path; empty without a backlog.
    The largest share is before the stage that limits the path."""
    within = (told.at_ms >= start_ms) & (told.at_ms <= end_ms)
    viewed = counted(held, told.at_ms, "right")
    come = [stage[within] for stage in (told.due, told.done, told.sent, told.captured, viewed)]
    waiting = [float(np.maximum(before - after, 0).sum()) for before, after in pairwise(come)]
    if not any(waiting):
        return {}
    return {of: each / sum(waiting) for of, each in zip(STAGES, waiting, strict=True)}


def _oldest(due: Floats, there: Floats) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """At each row: whether one waits, and the first row at which the oldest that does was due."""
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
    stages = (
        quantiles(at_most_ms(told.at_ms, told.due, there)[within])
        for there in (told.done, told.sent, told.captured)
    )
    in_database, sent, in_topic = stages
    if not (in_database and sent and in_topic):
        return None
    return CdcWay(
        inserts_per_s=round(per_s, 2), in_database=in_database, sent=sent, in_topic=in_topic
    )
