"""Age of views: traced views, query answers, and inserts on the CDC path. docs/views.md defines the
terms.

Tracer events are turned into curves like those of pageviews, so the same rules give the lag and the
verdict of a view: `due` counts the tracer events due, `processed` those that the view holds.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, cycle, islice, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from racetrack import poisson
from racetrack.analysis.curves import Curve, Curves, Floats, counted, times_of
from racetrack.analysis.lag import age, quantiles
from racetrack.analysis.raw import complete_rows
from racetrack.results.figures import Answers, CdcLag, Verdict, VerdictKind, ViewLag
from racetrack.results.folder import read_run
from racetrack.results.run import TracedViewRecord, Window

TRACER_EVENTS_FILE, VIEWS_FILE = "tracer_events.csv", "views.csv"
READS_FILE, INSERTS_FILE = "reads.csv", "purchases.csv"
SHARES = (0.5, 0.9, 0.99, 1.0)
# Tracer events have timestamps in whole milliseconds, and so do their records.
STAMP_MS = 2.0
# Worst first.
ORDER = (
    VerdictKind.FELL_BEHIND,
    VerdictKind.GENERATOR_BOUND,
    VerdictKind.BROKER_BOUND,
    VerdictKind.UNDECIDED,
    VerdictKind.KEPT_UP,
)
# Separates the partitions in a cell of `reads.csv`.
SEPARATOR = ";"
# Stages of the CDC path in order, each with its own backlog.
STAGES = ("database", "cdc", "broker", "engine")


@dataclass(frozen=True, eq=False)
class TracerEvents:
    """Records of tracer events.

    `at_ms`, `newest` and `due_ms` have one length: at each time, the number of the newest tracer
    event (1 for the first) and its due time; epoch milliseconds. `view_rows` has the rows (at_ms,
    value) by view and partition, in order.
    """

    at_ms: Floats
    newest: Floats
    due_ms: Floats
    view_rows: dict[tuple[str, int], list[tuple[int, int]]]


def read_tracer_events(folder: Path) -> TracerEvents | None:
    """Return the tracer events of a run folder; None if there were none."""
    rows = complete_rows(folder / TRACER_EVENTS_FILE)
    if not rows:
        return None
    columns = ("at_ms", "newest", "due_ms")
    table = np.array([[row[name] for name in columns] for row in rows], dtype=np.float64)
    view_rows: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for row in complete_rows(folder / VIEWS_FILE):
        key = row["view"], int(row["partition"])
        view_rows[key].append((int(row["at_ms"]), int(row["value"])))
    return TracerEvents(table[:, 0], table[:, 1], table[:, 2], dict(view_rows))


def traced_curves(folder: Path, partitions: Sequence[int]) -> list[tuple[TracedViewRecord, Curves]]:
    """Return the curves of each traced view that showed a tracer event."""
    if not (events := read_tracer_events(folder)):
        return []
    views = read_run(folder).traced_views
    found = [(view, curves_of(view, events, partitions)) for view in views]
    return [(view, curves) for view, curves in found if any(len(c.at_ms) for c in curves.processed)]


def curves_of(view: TracedViewRecord, events: TracerEvents, partitions: Sequence[int]) -> Curves:
    """Return the tracer events of a view as curves, by partition.

    Handed-over and published equal due, so the whole lag is that of the engine. The delays of
    generator and broker are in the verdict on the count.
    """
    due = tuple(
        due_curve(view, events, number, len(partitions)) for number in range(len(partitions))
    )
    processed = tuple(
        _held_curve(events.view_rows.get((view.name, partition), []), curve, view.is_time)
        for partition, curve in zip(partitions, due, strict=True)
    )
    return Curves(tuple(partitions), due, due, due, processed)


def as_pageviews(view: Curves, count: Curves) -> Curves:
    """Return the curves of the count with `processed` replaced by that of a view: at each update,
    the view holds the pageviews due before its oldest missing tracer event."""
    processed = []
    for events, held, due in zip(view.due, view.processed, count.due, strict=True):
        oldest_ms = np.minimum(times_of(events, held.count + 1), held.at_ms)
        processed.append(Curve(held.at_ms, np.interp(oldest_ms, due.at_ms, due.count)))
    return replace(count, processed=tuple(processed))


def number_of(parity: int | None, nth: int, partition: int, partitions: int) -> int:
    """Return the number (0-based) of the nth tracer event (0-based) of a view's partition."""
    pair, which = divmod(nth, 2) if parity is None else (nth, parity)
    return 2 * (pair * partitions + partition) + which


def due_curve(
    view: TracedViewRecord, events: TracerEvents, partition: int, partitions: int
) -> Curve:
    """Return the due times of a partition's tracer events as a curve, exact for
    `curves.times_of`, which adds half a count. It ends at the last row, with no further event."""
    every = np.arange(int(events.newest[-1]))
    mine = every // 2 % partitions == partition
    if view.parity is not None:
        mine &= every % 2 == view.parity
    numbers = every[mine] + 1
    due_ms = _due_times_ms(events, numbers)
    counts = np.arange(len(numbers)) + 0.5
    end_ms = max(float(events.at_ms[-1]), float(np.max(due_ms, initial=0.0)))
    just_below_next = np.nextafter(len(numbers) + 0.5, 0.0)
    return Curve(np.append(due_ms, end_ms), np.append(counts, just_below_next))


def _due_times_ms(events: TracerEvents, numbers: NDArray[np.int64]) -> Floats:
    """Return the due times of tracer events. The rate is constant, so interpolation is exact, also
    before the first row."""
    first, first_ms = events.newest[0], events.due_ms[0]
    later = events.newest > first
    if not later.any():
        return np.where(numbers < first, -np.inf, first_ms)
    row = int(np.argmax(later))
    between_ms = (events.due_ms[row] - first_ms) / (events.newest[row] - first)
    before_ms = first_ms - (first - numbers) * between_ms
    known_ms = np.interp(numbers, events.newest, events.due_ms)
    return np.where(numbers < first, before_ms, known_ms)


def _held_curve(rows: list[tuple[int, int]], due: Curve, is_time: bool) -> Curve:
    table = np.array(rows, dtype=np.float64).reshape(-1, 2)
    return Curve(table[:, 0], events_held(table[:, 1], due, is_time))


def events_held(values: Floats, due: Curve, is_time: bool) -> Floats:
    """Return the number of tracer events that a row holds, by its value: that number itself, or the
    newest due time (`racetrack.engines.contract.Seen`)."""
    if not is_time:
        return values
    # The last row of `due` is not a tracer event.
    return np.searchsorted(due.at_ms[:-1], values + STAMP_MS, "right").astype(np.float64)


def view_lag(
    view: TracedViewRecord, curves: Curves, verdict: Verdict, start_ms: float, end_ms: float
) -> ViewLag:
    """Return a view's lag in the window of the run, with its verdict, which may have another
    window."""
    ages = age(curves, start_ms, end_ms)
    at_most = dict(zip(SHARES, ages.quantiles_ms(SHARES), strict=True))
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
    """Return the view that decides a run: the one with the worst verdict, if it is worse than that
    of the count. None if the count decides, as it does if generator or broker was the bottleneck.
    """
    if count.kind in (VerdictKind.GENERATOR_BOUND, VerdictKind.BROKER_BOUND):
        return None
    worst = min(views, key=lambda name: ORDER.index(views[name].kind), default=None)
    if worst is None or ORDER.index(views[worst].kind) >= ORDER.index(count.kind):
        return None
    return worst


@dataclass(frozen=True)
class Read:
    """Row of `reads.csv`; due, asked and answered in epoch milliseconds. `held` has the value of
    each partition in the answer, empty without tracer events or without an answer."""

    due_ms: int
    asked_ms: int
    answered_ms: int
    query: str
    rows: int
    held: tuple[int, ...]
    error: str


def read_reads(folder: Path) -> list[Read]:
    """Return the reads of a run folder in order; empty if no client read."""
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
    """Return the answers to the reads due in the window, by query. If no read was ever answered,
    the due times are unknown, and each query has 0 reads due."""
    run, reads = read_run(folder), read_reads(folder)
    per_s = run.settings.get("reads_per_second")
    if not (reads and isinstance(per_s, int | float)):
        return tuple(_answers_to(query.name, 0, (), np.empty(0)) for query in run.queries)
    events = read_tracer_events(folder)
    traced = {view.name: view for view in run.traced_views}
    answerable = {read.query for read in reads}  # the engine may lack a view
    due = Counter(_queries_due(reads, per_s, window))
    within = [read for read in reads if window.start_ms <= read.due_ms < window.end_ms]
    found = []
    for query in run.queries:
        if query.name in answerable:
            mine = [read for read in within if read.query == query.name]
            view = traced.get(query.traced_view or "")
            aged_ms = ages_ms(view, events, partitions, mine) if view and events else np.empty(0)
            found.append(_answers_to(query.name, due[query.name], mine, aged_ms))
    return tuple(found)


def _queries_due(reads: Sequence[Read], per_s: float, window: Window) -> Iterator[str]:
    """Yield the query of each read due in the window, including those never sent because the client
    waited for an answer until the end of the run."""
    queries = list(dict.fromkeys(read.query for read in reads))
    schedule = poisson.due_s(per_s)
    first_ms = reads[0].due_ms - 1000 * next(schedule)
    known = [read.due_ms for read in reads]
    later = (round(first_ms + 1000 * since_s) for since_s in islice(schedule, len(reads) - 1, None))
    for due_ms, query in zip(chain(known, later), cycle(queries), strict=False):
        if due_ms >= window.end_ms:
            return
        if due_ms >= window.start_ms:
            yield query


def ages_ms(
    view: TracedViewRecord, events: TracerEvents, partitions: int, reads: Sequence[Read]
) -> Floats:
    """Return the age of each answer on arrival, milliseconds: that of the oldest tracer event due
    and missing; 0 without one."""
    answered = [read for read in reads if read.held]
    answered_ms = np.array([read.answered_ms for read in answered], dtype=np.float64)
    oldest_ms = np.full(len(answered), np.inf)
    for partition in range(partitions):
        due = due_curve(view, events, partition, partitions)
        values = np.array([read.held[partition] for read in answered], dtype=np.float64)
        held = np.maximum(events_held(values, due, view.is_time), 0)
        oldest_ms = np.minimum(oldest_ms, times_of(due, held + 1))
    found: Floats = np.maximum(answered_ms - oldest_ms, 0)
    return found


def _answers_to(name: str, due: int, reads: Sequence[Read], aged_ms: Floats) -> Answers:
    good = [read for read in reads if not read.error]
    errors = [read.error for read in reads if read.error]
    took_ms = np.full(due, np.inf)
    took_ms[: len(good)] = [read.answered_ms - read.due_ms for read in good]
    return Answers(
        query=name,
        due=due,
        answered=len(good),
        errors=len(errors),
        first_error=errors[0] if errors else None,
        rows_max=max((read.rows for read in good), default=None),
        time=quantiles(took_ms),
        service_time=quantiles(np.array([read.answered_ms - read.asked_ms for read in good])),
        age=quantiles(aged_ms),
    )


@dataclass(frozen=True, eq=False)
class Inserts:
    """Cumulative inserts of the watched table at each stage of the CDC path; arrays of one length,
    ten rows per second."""

    at_ms: Floats
    due: Floats  # without refused ones
    done: Floats  # committed in the database
    sent: Floats  # by Debezium to the broker
    captured: Floats  # in the topic

    @property
    def lag_in_topic_ms(self) -> Floats:
        """Age of the oldest insert that is due and not in the topic."""
        return oldest_age_min_ms(self.at_ms, self.due, self.captured)


def read_inserts(folder: Path) -> Inserts | None:
    """Return the inserts of a run folder; None if the run did not record them."""
    rows = complete_rows(folder / INSERTS_FILE)
    if not rows:
        return None
    columns = {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}
    due = columns["due"] - columns["refused"]
    # The topic has rows from before the run: subtract as many as needed to never exceed due.
    captured = columns["captured"] - np.max(columns["captured"] - due, initial=0.0)
    sent = _sent(columns["at_ms"], captured, columns["sent_ms"])
    return Inserts(
        at_ms=columns["at_ms"],
        due=due,
        done=columns["done"],
        sent=np.minimum(sent, columns["done"]),
        captured=captured,
    )


def _sent(at_ms: Floats, captured: Floats, sent_ms: Floats) -> Floats:
    """Return the number that Debezium had sent at each row, by the time at which it sent the newest
    captured one; `captured` if that time is unknown."""
    if not sent_ms.any():
        return captured
    known = sent_ms > 0
    return np.maximum(captured, np.interp(at_ms, sent_ms[known], captured[known]))


def oldest_age_min_ms(at_ms: Floats, due: Floats, arrived: Floats) -> Floats:
    """Return the age of the oldest insert due and not arrived, at each row: up to the time between
    two rows too low."""
    waits, first = _oldest(due, arrived)
    return np.where(waits, at_ms - at_ms[first], 0.0) if len(at_ms) else at_ms


def oldest_age_max_ms(at_ms: Floats, due: Floats, arrived: Floats) -> Floats:
    """Return the same, up to the time between two rows too high: it became due after the row
    before."""
    waits, first = _oldest(due, arrived)
    return np.where(waits, at_ms - at_ms[np.maximum(first - 1, 0)], 0.0) if len(at_ms) else at_ms


def _oldest(due: Floats, arrived: Floats) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Return whether an insert waits at each row, and the first row at which the oldest was due."""
    first = np.searchsorted(due, arrived, "right")
    return arrived < due, np.minimum(first, len(due) - 1)


def inserts_in_view(inserts: Inserts, view: Curves) -> Curve:
    """Return the number of inserts in a view after each update: those due before its oldest missing
    tracer event."""
    rows_ms = np.unique(np.concatenate([held.at_ms for held in view.processed]))
    oldest_ms = rows_ms
    for events, held in zip(view.due, view.processed, strict=True):
        missing = counted(held, rows_ms, "right") + 1
        oldest_ms = np.minimum(oldest_ms, times_of(events, missing))
    return Curve(rows_ms, np.interp(oldest_ms, inserts.at_ms, inserts.due))


def inserts_as_curves(inserts: Inserts, held: Curve) -> Curves:
    """Return due inserts and those in a view as curves of one partition, with all stages as one."""
    due = (Curve(inserts.at_ms, inserts.due),)
    return Curves((0,), due, due, due, (held,))


def backlog_by_stage(
    inserts: Inserts, held: Curve, start_ms: float, end_ms: float
) -> dict[str, float]:
    """Return the share of the backlog before each stage of the CDC path; empty without a backlog.
    The largest share is before the stage that limits the path."""
    within = (inserts.at_ms >= start_ms) & (inserts.at_ms <= end_ms)
    in_view = counted(held, inserts.at_ms, "right")
    stages = (inserts.due, inserts.done, inserts.sent, inserts.captured, in_view)
    counts = [stage[within] for stage in stages]
    waiting = [float(np.maximum(before - after, 0).sum()) for before, after in pairwise(counts)]
    if not any(waiting):
        return {}
    return {stage: each / sum(waiting) for stage, each in zip(STAGES, waiting, strict=True)}


def cdc_path(folder: Path, window: Window) -> CdcLag | None:
    """Return the ages at the stages of the CDC path in the window; None if the run did not record
    them."""
    inserts = read_inserts(folder)
    if inserts is None:
        return None
    within = (inserts.at_ms >= window.start_ms) & (inserts.at_ms <= window.end_ms)
    if np.count_nonzero(within) < 2:
        return None
    at_ms, due = inserts.at_ms[within], inserts.due[within]
    per_s = 1000 * float(due[-1] - due[0]) / float(at_ms[-1] - at_ms[0])
    in_database, sent, in_topic = (
        quantiles(oldest_age_max_ms(inserts.at_ms, inserts.due, arrived)[within])
        for arrived in (inserts.done, inserts.sent, inserts.captured)
    )
    if not (in_database and sent and in_topic):
        return None
    return CdcLag(
        inserts_per_s=round(per_s, 2), in_database=in_database, sent=sent, in_topic=in_topic
    )
