"""How old views are: traced views, reads by a client, and inserts on the CDC path. docs/views.md
defines the terms.

Tracer events are turned into curves like those of pageviews, so the same rules give the lag and the
verdict of a view: due is when a tracer event was due, processed is how many the view held.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, cycle, islice, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from racetrack import poisson
from racetrack.analysis.curves import Curve, Curves, Floats, counted, when
from racetrack.analysis.lag import age, quantiles
from racetrack.analysis.raw import complete_rows
from racetrack.results.figures import Answers, CdcWay, Verdict, VerdictKind, ViewLag
from racetrack.results.folder import read_run
from racetrack.results.run import TracedViewRecord, Window

MARKS_FILE, VIEWS_FILE = "tracer_events.csv", "views.csv"
SHARES = (0.5, 0.9, 0.99, 1.0)
# The stamps of marks are whole milliseconds, and so are those by which they were recorded.
STAMP_MS = 2.0
# Worst first.
ORDER = (
    VerdictKind.FELL_BEHIND,
    VerdictKind.GENERATOR_BOUND,
    VerdictKind.BROKER_BOUND,
    VerdictKind.UNDECIDED,
    VerdictKind.KEPT_UP,
)
READS_FILE = "reads.csv"
SEPARATOR = ";"
INSERTS_FILE = "purchases.csv"
# What an insert waits for, one after the other.
STAGES = ("database", "cdc", "broker", "engine")


@dataclass(frozen=True, eq=False)
class TracerEvents:
    """What was recorded of the marks.

    `at_ms`, `newest` and `due_ms` are of one length: at each time, the number of the newest mark
    (1 for the first), and when that was due; epoch milliseconds. `seen` has, by view and partition,
    what its row said: (at_ms, value), in order.
    """

    at_ms: Floats
    newest: Floats
    due_ms: Floats
    seen: dict[tuple[str, int], list[tuple[int, int]]]


def read_tracer_events(folder: Path) -> TracerEvents | None:
    """The marks of a run folder; None where there were none."""
    rows = [(r["at_ms"], r["newest"], r["due_ms"]) for r in complete_rows(folder / MARKS_FILE)]
    if not rows:
        return None
    table = np.array(rows, dtype=np.float64)
    seen: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for row in complete_rows(folder / VIEWS_FILE):
        told = int(row["at_ms"]), int(row["value"])
        seen[row["view"], int(row["partition"])].append(told)
    return TracerEvents(table[:, 0], table[:, 1], table[:, 2], dict(seen))


def traced_curves(folder: Path, partitions: Sequence[int]) -> list[tuple[TracedViewRecord, Curves]]:
    """The curves of each traced view of the run that was seen; none without marks."""
    if not (marks := read_tracer_events(folder)):
        return []
    traced = read_run(folder).traced_views
    found = [(view, curves_of(view, marks, partitions)) for view in traced]
    return [(view, curves) for view, curves in found if any(len(c.at_ms) for c in curves.processed)]


def curves_of(view: TracedViewRecord, marks: TracerEvents, partitions: Sequence[int]) -> Curves:
    """The view's marks as curves: counts are of those that show in it, by partition.

    Generator and broker have no part in them, so the lag is all the engine's: what they add to it
    stands in the verdict on the count.
    """
    due = tuple(
        due_curve(view, marks, number, len(partitions)) for number in range(len(partitions))
    )
    held = tuple(
        _held(marks.seen.get((view.name, partition), []), curve, view.is_time)
        for partition, curve in zip(partitions, due, strict=True)
    )
    return Curves(tuple(partitions), due, due, due, held)


def as_pageviews(view: Curves, count: Curves) -> Curves:
    """The curves of the count with a view's in place of `processed`: at each update the view holds
    those pageviews of a partition that were due before the oldest mark that it lacks."""
    held = []
    for marks, seen, due in zip(view.due, view.processed, count.due, strict=True):
        oldest_ms = np.minimum(when(marks)(seen.count + 1), seen.at_ms)
        held.append(Curve(seen.at_ms, np.interp(oldest_ms, due.at_ms, due.count)))
    return replace(count, processed=tuple(held))


def number_of(turn: int | None, nth: int, partition: int, partitions: int) -> int:
    """The number (0-based) of the nth mark (0-based) that shows in a view's row of a partition."""
    pair, which = divmod(nth, 2) if turn is None else (nth, turn)
    return 2 * (pair * partitions + partition) + which


def due_curve(
    view: TracedViewRecord, marks: TracerEvents, partition: int, partitions: int
) -> Curve:
    """Such that number k of them is due exactly at its time (`lag.when` adds a half), and that it
    is known until the last row that no further one was."""
    every = np.arange(int(marks.newest[-1]))
    mine = every // 2 % partitions == partition
    if view.parity is not None:
        mine &= every % 2 == view.parity
    numbers = every[mine] + 1
    due_ms = _when_due(marks, numbers)
    counts = np.arange(len(numbers)) + 0.5
    end_ms = max(float(marks.at_ms[-1]), float(np.max(due_ms, initial=0.0)))
    not_quite = np.nextafter(len(numbers) + 0.5, 0.0)
    return Curve(np.append(due_ms, end_ms), np.append(counts, not_quite))


def _when_due(marks: TracerEvents, numbers: NDArray[np.int64]) -> Floats:
    """Of one rate the numbers grow evenly with time, so those between two rows are told exactly;
    and those before the first one too, since the rate was one until then."""
    first, first_ms = marks.newest[0], marks.due_ms[0]
    later = marks.newest > first
    if not later.any():
        return np.where(numbers < first, -np.inf, first_ms)
    row = int(np.argmax(later))
    between_ms = (marks.due_ms[row] - first_ms) / (marks.newest[row] - first)
    before_ms = first_ms - (first - numbers) * between_ms
    known_ms = np.interp(numbers, marks.newest, marks.due_ms)
    return np.where(numbers < first, before_ms, known_ms)


def _held(seen: list[tuple[int, int]], due: Curve, is_time: bool) -> Curve:
    table = np.array(seen, dtype=np.float64).reshape(-1, 2)
    return Curve(table[:, 0], how_many(table[:, 1], due, is_time))


def how_many(values: Floats, due: Curve, is_time: bool) -> Floats:
    """TracerEvents that a row held, by what it said (`racetrack.engines.contract.Seen`)."""
    if not is_time:
        return values
    # The last row of `due` is no mark.
    return np.searchsorted(due.at_ms[:-1], values + STAMP_MS, "right").astype(np.float64)


def view_lag(
    view: TracedViewRecord, told: Curves, verdict: Verdict, start_ms: float, end_ms: float
) -> ViewLag:
    """Return a view's lag in the run's window, with the verdict on it, which may be of another
    window."""
    aged = age(told, start_ms, end_ms)
    at_most = dict(zip(SHARES, aged.quantiles_ms(SHARES), strict=True))
    return ViewLag(
        name=view.name,
        source=view.source,
        tracer_events_per_s=round(verdict.throughput.offered_per_s, 2),
        updates=verdict.updates,
        kind=verdict.kind,
        reason=verdict.reason,
        lag_p50_ms=at_most[0.5],
        lag_p90_ms=at_most[0.9],
        lag_p99_ms=at_most[0.99],
        lag_max_ms=at_most[1.0],
    )


def deciding(count: Verdict, views: Mapping[str, Verdict]) -> str | None:
    """Return the view that decides a run: the worst of those with a worse verdict than the count;
    None if the count does. Where generator or broker was the bottleneck, the count does."""
    if count.kind in (VerdictKind.GENERATOR_BOUND, VerdictKind.BROKER_BOUND):
        return None
    worst = min(views, key=lambda name: ORDER.index(views[name].kind), default=None)
    if worst is None or ORDER.index(views[worst].kind) >= ORDER.index(count.kind):
        return None
    return worst


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


def read_reads(folder: Path) -> list[Read]:
    """The reads of a run folder in their order; none where nobody read."""
    return [
        Read(
            due_ms=int(row["due_ms"]),
            asked_ms=int(row["asked_ms"]),
            answered_ms=int(row["answered_ms"]),
            query=row["query"],
            rows=int(row["rows"] or 0),
            held=tuple(map(int, filter(None, row["held"].split(SEPARATOR)))),
            error=row["error"],
        )
        for row in complete_rows(folder / READS_FILE)
    ]


def read_answers(folder: Path, partitions: int, window: Window) -> tuple[Answers, ...]:
    """What became of those reads that were due in the window, by query. If none was ever
    answered, nobody knows which were due: then each query has none."""
    run, reads = read_run(folder), read_reads(folder)
    per_s = run.settings.get("reads_per_second")
    if not (reads and isinstance(per_s, int | float)):
        return tuple(_answers_to(query.name, 0, (), np.empty(0)) for query in run.queries)
    marks = read_tracer_events(folder)
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
            found.append(_answers_to(query.name, due[query.name], mine, aged_ms))
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
    view: TracedViewRecord, marks: TracerEvents, partitions: int, reads: Sequence[Read]
) -> Floats:
    """How old each answer was when it was there: the age of the oldest mark that was due and not in
    it; 0 if there was none."""
    there = [one for one in reads if one.held]
    answered_ms = np.array([one.answered_ms for one in there], dtype=np.float64)
    oldest_ms = np.full(len(there), np.inf)
    for partition in range(partitions):
        due = due_curve(view, marks, partition, partitions)
        said = np.array([one.held[partition] for one in there], dtype=np.float64)
        held = np.maximum(how_many(said, due, view.is_time), 0)
        oldest_ms = np.minimum(oldest_ms, when(due)(held + 1))
    found: Floats = np.maximum(answered_ms - oldest_ms, 0)
    return found


def _answers_to(name: str, due: int, reads: Sequence[Read], aged_ms: Floats) -> Answers:
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
        return stage_age_min_ms(self.at_ms, self.due, self.captured)


def read_inserts(folder: Path) -> Inserts | None:
    """Those of a run folder; None in a run that did not follow them."""
    rows = complete_rows(folder / INSERTS_FILE)
    if not rows:
        return None
    columns = {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}
    due = columns["due"] - columns["refused"]
    # The topic has those of before the race, too: as many as make it never more than what was due.
    captured = columns["captured"] - np.max(columns["captured"] - due, initial=0.0)
    sent = _sent_by_row(columns["at_ms"], captured, columns["sent_ms"])
    return Inserts(
        columns["at_ms"], due, columns["done"], np.minimum(sent, columns["done"]), captured
    )


def _sent_by_row(at_ms: Floats, captured: Floats, sent_ms: Floats) -> Floats:
    """Return how many CDC had sent at each row, by when it sent the newest that was seen; as many
    as were captured where it sent none."""
    if not sent_ms.any():
        return captured
    known = sent_ms > 0
    return np.maximum(captured, np.interp(at_ms, sent_ms[known], captured[known]))


def stage_age_min_ms(at_ms: Floats, due: Floats, there: Floats) -> Floats:
    """The age of the oldest that is due and not there, at each row: up to a row's time too low."""
    waits, first = _oldest(due, there)
    return np.where(waits, at_ms - at_ms[first], 0.0) if len(at_ms) else at_ms


def stage_age_max_ms(at_ms: Floats, due: Floats, there: Floats) -> Floats:
    """The same, up to a row's time too high: it became due after the row before."""
    waits, first = _oldest(due, there)
    return np.where(waits, at_ms - at_ms[np.maximum(first - 1, 0)], 0.0) if len(at_ms) else at_ms


def inserts_in_view(told: Inserts, view: Curves) -> Curve:
    """How many inserts a view held after each of its updates, by its marks: those that were due
    before the oldest mark that it lacked."""
    rows_ms = np.unique(np.concatenate([seen.at_ms for seen in view.processed]))
    oldest_ms = rows_ms
    for marks, seen in zip(view.due, view.processed, strict=True):
        oldest_ms = np.minimum(oldest_ms, when(marks)(counted(seen, rows_ms, "right") + 1))
    return Curve(rows_ms, np.interp(oldest_ms, told.at_ms, told.due))


def inserts_as_curves(told: Inserts, held: Curve) -> Curves:
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


def cdc_path(folder: Path, window: Window) -> CdcWay | None:
    """How old the stages of the way were in the window; None in a run that did not follow them."""
    told = read_inserts(folder)
    if told is None:
        return None
    within = (told.at_ms >= window.start_ms) & (told.at_ms <= window.end_ms)
    if np.count_nonzero(within) < 2:
        return None
    at_ms, due = told.at_ms[within], told.due[within]
    per_s = 1000 * float(due[-1] - due[0]) / float(at_ms[-1] - at_ms[0])
    stages = (
        quantiles(stage_age_max_ms(told.at_ms, told.due, there)[within])
        for there in (told.done, told.sent, told.captured)
    )
    in_database, sent, in_topic = stages
    if not (in_database and sent and in_topic):
        return None
    return CdcWay(
        inserts_per_s=round(per_s, 2), in_database=in_database, sent=sent, in_topic=in_topic
    )
