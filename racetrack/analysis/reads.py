"""Reads: how long an answer took, and how old it was; what the words mean is in docs/views.md."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, cycle, islice
from pathlib import Path

import numpy as np

from racetrack import poisson
from racetrack.analysis import views
from racetrack.analysis.csv_rows import whole_rows
from racetrack.analysis.lag import Floats, when
from racetrack.analysis.quantiles import quantiles
from racetrack.results.figures import Answers
from racetrack.results.folder import read_run
from racetrack.results.run import TracedViewRecord, Window

READS_FILE = "reads.csv"
BETWEEN = ";"


@dataclass(frozen=True)
class Read:
    """A row of `reads.csv`: when it was due, asked and answered, epoch milliseconds. `held` is what
    the answer says of the marks of each partition in turn: none without marks, or without an
    answer."""

    due_ms: int
    asked_ms: int
    answered_ms: int
    query: str
    rows: int
    held: tuple[int, ...]
    error: str


def read(folder: Path) -> list[Read]:
    """The reads of a run folder in their order; none where nobody read."""
    return [
        Read(
            due_ms=int(row["due_ms"]),
            asked_ms=int(row["asked_ms"]),
            answered_ms=int(row["answered_ms"]),
            query=row["query"],
            rows=int(row["rows"] or 0),
            held=tuple(map(int, filter(None, row["held"].split(BETWEEN)))),
            error=row["error"],
        )
        for row in whole_rows(folder / READS_FILE)
    ]


def answers(folder: Path, partitions: int, window: Window) -> tuple[Answers, ...]:
    """What became of those reads that were due in the window, by query. If none was ever
    answered, nobody knows which were due: then each query has none."""
    run, reads = read_run(folder), read(folder)
    per_s = run.settings.get("reads_per_second")
    if not (reads and isinstance(per_s, int | float)):
        return tuple(_of(query.name, 0, (), np.empty(0)) for query in run.queries)
    marks = views.read(folder)
    traced = {view.name: view for view in run.traced_views}
    has = {one.query for one in reads}  # the engine may not have every view
    due = Counter(_asked_in(reads, per_s, window))
    within = [one for one in reads if window.start_ms <= one.due_ms < window.end_ms]
    found = []
    for query in run.queries:
        mine = [one for one in within if one.query == query.name]
        if query.name in has:
            by = traced.get(query.traced_view or "")
            aged_ms = ages_ms(by, marks, partitions, mine) if by and marks else np.empty(0)
            found.append(_of(query.name, due[query.name], mine, aged_ms))
    return tuple(found)


def _asked_in(reads: Sequence[Read], per_s: float, window: Window) -> Iterator[str]:
    """The query of each read that was due in the window, also of those that were never asked,
    because an answer was waited for until the end of the run."""
    turns = list(dict.fromkeys(one.query for one in reads))
    schedule = poisson.due_s(per_s)
    first_ms = reads[0].due_ms - 1000 * next(schedule)
    known = [one.due_ms for one in reads]
    later = (round(first_ms + 1000 * since_s) for since_s in islice(schedule, len(reads) - 1, None))
    for due_ms, query in zip(chain(known, later), cycle(turns), strict=False):
        if due_ms >= window.end_ms:
            return
        if due_ms >= window.start_ms:
            yield query


def ages_ms(
    view: TracedViewRecord, marks: views.Marks, partitions: int, reads: Sequence[Read]
) -> Floats:
    """How old each answer was when it was there: the age of the oldest mark that was due and not in
    it; 0 if there was none."""
    there = [one for one in reads if one.held]
    answered_ms = np.array([one.answered_ms for one in there], dtype=np.float64)
    oldest_ms = np.full(len(there), np.inf)
    for partition in range(partitions):
        due = views.due_curve(view, marks, partition, partitions)
        said = np.array([one.held[partition] for one in there], dtype=np.float64)
        held = np.maximum(views.how_many(said, due, view.is_time), 0)
        oldest_ms = np.minimum(oldest_ms, when(due)(held + 1))
    found: Floats = np.maximum(answered_ms - oldest_ms, 0)
    return found


def _of(name: str, due: int, reads: Sequence[Read], aged_ms: Floats) -> Answers:
    good = [one for one in reads if not one.error]
    failed = [one.error for one in reads if one.error]
    took_ms = np.full(due, np.inf)
    took_ms[: len(good)] = [one.answered_ms - one.due_ms for one in good]
    return Answers(
        query=name,
        due=due,
        answered=len(good),
        errors=len(failed),
        first_error=failed[0] if failed else None,
        rows_max=max((one.rows for one in good), default=None),
        time=quantiles(took_ms),
        service_time=quantiles(np.array([one.answered_ms - one.asked_ms for one in good])),
        age=quantiles(aged_ms),
    )
