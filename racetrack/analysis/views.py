"""Age of traced views, of query answers, and of inserts on the CDC path. docs/views.md defines the
terms.

Lag and verdict of a view are computed by the same rules as those of the engine's count: the tracer
events of a view are converted into curves, in which `due` counts the tracer events that are due and
`processed` counts the tracer events that the view contains.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, cycle, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from racetrack import poisson
from racetrack.analysis.curves import Curve, Curves, Floats, times_of
from racetrack.analysis.lag import age, percentiles, quantiles
from racetrack.analysis.raw import rows_of
from racetrack.results.figures import (
    BOUND_BY_OTHERS,
    Answers,
    CdcLag,
    Verdict,
    VerdictKind,
    ViewLag,
)
from racetrack.results.folder import finite_number, read_run, shared_file
from racetrack.results.run import TracedViewRecord, Window

TRACER_EVENTS_FILE, VIEWS_FILE = "tracer_events.csv", "views.csv"
READS_FILE, INSERTS_FILE = "reads.csv", "purchases.csv"
# The times of tracer events and of their records are rounded to milliseconds.
STAMP_MS = 2.0
# Verdicts, the worst first.
ORDER = (
    VerdictKind.FELL_BEHIND,
    VerdictKind.GENERATOR_BOUND,
    VerdictKind.BROKER_BOUND,
    VerdictKind.HARNESS_BOUND,
    VerdictKind.UNDECIDED,
    VerdictKind.KEPT_UP,
)
# Separates the values of the partitions in a cell of `reads.csv`.
SEPARATOR = ";"


@dataclass(frozen=True, eq=False)
class TracerEvents:
    """Records of tracer events.

    `at_ms`, `newest` and `due_ms` are the columns of `tracer_events.csv`: at time `at_ms`, the
    newest tracer event had the number `newest` (from 1) and was due at `due_ms`. `view_rows`
    contains the rows (at_ms, value) of `views.csv` by view and partition. Times are epoch
    milliseconds.
    """

    at_ms: Floats
    newest: Floats
    due_ms: Floats
    view_rows: dict[tuple[str, int], list[tuple[int, int]]]


def read_tracer_events(folder: Path) -> TracerEvents | None:
    """Return the tracer events of a run folder; None if the run had none."""
    columns = ("at_ms", "newest", "due_ms")
    rows = rows_of(
        shared_file(folder, TRACER_EVENTS_FILE),
        lambda row: [finite_number(row[name]) for name in columns],
    )
    if not rows:
        return None
    table = np.array(rows, dtype=np.float64)
    view_rows: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)

    def take(row: Mapping[str, str]) -> None:
        key = row["view"], int(row["partition"])
        view_rows[key].append((int(row["at_ms"]), int(row["value"])))

    rows_of(folder / VIEWS_FILE, take)
    return TracerEvents(table[:, 0], table[:, 1], table[:, 2], dict(view_rows))


def traced_curves(folder: Path, partitions: Sequence[int]) -> list[tuple[TracedViewRecord, Curves]]:
    """Return the curves of each traced view in which at least one tracer event appeared."""
    if not (events := read_tracer_events(folder)):
        return []
    views = read_run(folder).traced_views
    traced = [(view, curves_of(view, events, partitions)) for view in views]
    return [
        (view, curves) for view, curves in traced if any(len(c.at_ms) for c in curves.processed)
    ]


def curves_of(view: TracedViewRecord, events: TracerEvents, partitions: Sequence[int]) -> Curves:
    """Return the tracer events of a view as curves, by partition.

    The curves `handed_over` and `published` are copies of `due`, so the whole lag is attributed to
    the engine. The verdict on the engine's count covers the delays of generator and broker.
    """
    due = tuple(
        due_curve(view, events, number, len(partitions)) for number in range(len(partitions))
    )
    processed = tuple(
        _view_curve(events.view_rows.get((view.name, partition), []), curve, view.is_time)
        for partition, curve in zip(partitions, due, strict=True)
    )
    return Curves(tuple(partitions), due, due, due, processed)


def as_events(view: Curves, count: Curves) -> Curves:
    """Return the event curves `count` with `processed` replaced by the estimated number of
    events in a view. After each update, the view is assumed to contain exactly the events
    that were due before its oldest missing tracer event."""
    processed = []
    for events, seen, due in zip(view.due, view.processed, count.due, strict=True):
        oldest_ms = np.minimum(times_of(events, seen.count + 1), seen.at_ms)
        processed.append(Curve(seen.at_ms, np.interp(oldest_ms, due.at_ms, due.count)))
    return replace(count, processed=tuple(processed))


def number_of(parity: int | None, nth: int, partition: int, partitions: int) -> int:
    """Return the number of the nth tracer event that a view receives in a partition. A view with a
    parity (0 or 1) receives only even or odd numbers, one without receives all. Both `nth` and the
    result count from 0."""
    pair, which = divmod(nth, 2) if parity is None else (nth, parity)
    return 2 * (pair * partitions + partition) + which


def due_curve(
    view: TracedViewRecord, events: TracerEvents, partition: int, partitions: int
) -> Curve:
    """Return the due times of a partition's tracer events as a curve from which `curves.times_of`
    returns them exactly: the counts are shifted by the half that `times_of` adds. The last row
    marks the end of the recording and is not an event."""
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
    """Return the due times of the tracer events with these numbers. The rate is constant, so linear
    interpolation is exact, and so is extrapolation before the first row."""
    first, first_ms = events.newest[0], events.due_ms[0]
    later = events.newest > first
    if not later.any():
        return np.where(numbers < first, -np.inf, first_ms)
    row = int(np.argmax(later))
    between_ms = (events.due_ms[row] - first_ms) / (events.newest[row] - first)
    before_ms = first_ms - (first - numbers) * between_ms
    known_ms = np.interp(numbers, events.newest, events.due_ms)
    return np.where(numbers < first, before_ms, known_ms)


def _view_curve(rows: list[tuple[int, int]], due: Curve, is_time: bool) -> Curve:
    table = np.array(rows, dtype=np.float64).reshape(-1, 2)
    return Curve(table[:, 0], events_in_row(table[:, 1], due, is_time))


def events_in_row(values: Floats, due: Curve, is_time: bool) -> Floats:
    """Return the number of tracer events that a row of a view contains, given the row's value. The
    value is that number itself or, if `is_time`, the due time of the newest tracer event (see
    `racetrack.engines.contract.Seen`)."""
    if not is_time:
        return values
    # The last row of `due` is not a tracer event.
    return np.searchsorted(due.at_ms[:-1], values + STAMP_MS, "right").astype(np.float64)


def view_lag(
    view: TracedViewRecord, curves: Curves, verdict: Verdict, start_ms: float, end_ms: float
) -> ViewLag:
    """Return a view's lag in the window of the run, with the view's verdict."""
    return ViewLag(
        name=view.name,
        source=view.source,
        tracer_events_per_s=round(verdict.throughput.offered_per_s, 2),
        error_ms=spacing_ms(curves, start_ms, end_ms),
        updates=verdict.updates,
        kind=verdict.kind,
        reason=verdict.reason,
        **percentiles(age(curves, start_ms, end_ms)),
    )


def spacing_ms(curves: Curves, start_ms: float, end_ms: float) -> float | None:
    """Return the mean time between two tracer events that were due in the window, over all
    partitions; None for fewer than two. Their rate is constant."""
    # The last row of `due` is not a tracer event.
    due_ms = np.concatenate([curve.at_ms[:-1] for curve in curves.due])
    within = due_ms[(due_ms >= start_ms) & (due_ms <= end_ms)]
    return round(float(np.ptp(within)) / (len(within) - 1), 1) if len(within) > 1 else None


def deciding(count: Verdict, views: Mapping[str, Verdict]) -> str | None:
    """Return the view whose verdict decides the run: the one with the worst verdict, if that is
    worse than the verdict on the engine's count. Otherwise, and if the generator or the broker was
    the bottleneck, return None: the verdict on the count decides.
    """
    if count.kind in BOUND_BY_OTHERS:
        return None
    worst = min(views, key=lambda name: ORDER.index(views[name].kind), default=None)
    if worst is None or ORDER.index(views[worst].kind) >= ORDER.index(count.kind):
        return None
    return worst


@dataclass(frozen=True)
class Read:
    """Row of `reads.csv`. The query was due, sent and answered at `due_ms`, `sent_ms` and
    `answered_ms` (epoch milliseconds). `tracer_values` contains the value of each
    partition; it is empty if the query failed or its view has no tracer events."""

    due_ms: int
    sent_ms: int
    answered_ms: int
    query: str
    rows: int
    tracer_values: tuple[int, ...]
    error: str


def read_reads(folder: Path) -> list[Read]:
    """Return the reads of a run folder in order; an empty list if the run had no view reader."""
    return rows_of(
        folder / READS_FILE,
        lambda row: Read(
            due_ms=int(row["due_ms"]),
            sent_ms=int(row["sent_ms"]),
            answered_ms=int(row["answered_ms"]),
            query=row["query"],
            rows=int(row["rows"] or 0),
            tracer_values=tuple(map(int, filter(None, row["tracer_values"].split(SEPARATOR)))),
            error=row["error"],
        ),
    )


def read_answers(folder: Path, partitions: int, window: Window) -> tuple[Answers, ...]:
    """Return statistics of the reads that were due in the window, by query. If no read was ever
    answered, the due times are unknown, and each query has 0 reads due."""
    run, reads = read_run(folder), read_reads(folder)
    per_s = run.settings.get("reads_per_second")
    if not (reads and isinstance(per_s, int | float)):
        return tuple(_answers_to(query.name, 0, (), np.empty(0)) for query in run.queries)
    events = read_tracer_events(folder)
    traced = {view.name: view for view in run.traced_views}
    # Other queries are left out, since the engine may lack their view.
    answerable = {read.query for read in reads}
    due = Counter(_queries_due(reads, per_s, window))
    within = [read for read in reads if window.start_ms <= read.due_ms < window.end_ms]
    answers = []
    for query in run.queries:
        if query.name in answerable:
            mine = [read for read in within if read.query == query.name]
            view = traced.get(query.traced_view or "")
            aged_ms = ages_ms(view, events, partitions, mine) if view and events else np.empty(0)
            answers.append(_answers_to(query.name, due[query.name], mine, aged_ms))
    return tuple(answers)


def _queries_due(reads: Sequence[Read], per_s: float, window: Window) -> Iterator[str]:
    """Yield the query of each read that was due in the window. Includes reads that were never sent,
    because the reader was still waiting for an earlier answer when the run ended."""
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
    """Return the age of each answer when it arrived, in milliseconds: the age of the oldest tracer
    event that was due but missing in the answer; 0 if none was missing."""
    answered = [read for read in reads if read.tracer_values]
    answered_ms = np.array([read.answered_ms for read in answered], dtype=np.float64)
    oldest_ms = np.full(len(answered), np.inf)
    for partition in range(partitions):
        due = due_curve(view, events, partition, partitions)
        values = np.array([read.tracer_values[partition] for read in answered], dtype=np.float64)
        seen = np.maximum(events_in_row(values, due, view.is_time), 0)
        oldest_ms = np.minimum(oldest_ms, times_of(due, seen + 1))
    answer_ages_ms: Floats = np.maximum(answered_ms - oldest_ms, 0)
    return answer_ages_ms


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
        service_time=quantiles(np.array([read.answered_ms - read.sent_ms for read in good])),
        age=quantiles(aged_ms),
    )


@dataclass(frozen=True, eq=False)
class Inserts:
    """Cumulative number of inserts into the watched table at each stage of the CDC path; arrays of
    equal length, with ten rows per second."""

    at_ms: Floats
    due: Floats  # without refused inserts
    done: Floats  # committed in the database
    sent: Floats  # by Debezium to the broker
    captured: Floats  # in the topic

    @property
    def lag_in_topic_ms(self) -> Floats:
        """Age of the oldest insert that is due but not in the topic, at each row."""
        return oldest_age_min_ms(self.at_ms, self.due, self.captured)


def read_inserts(folder: Path) -> Inserts | None:
    """Return the inserts of a run folder; None if the run did not record them."""
    names = ("at_ms", "due", "refused", "done", "captured", "sent_ms")
    rows = rows_of(
        shared_file(folder, INSERTS_FILE),
        lambda row: [finite_number(row[name]) for name in names],
    )
    if not rows:
        return None
    columns = dict(zip(names, np.array(rows).T, strict=True))
    due = columns["due"] - columns["refused"]
    # The topic contains inserts from before the run. Their number is unknown, so subtract the least
    # number for which `captured` never exceeds `due`.
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
    """Return the number of inserts that Debezium had sent by the time of each row. It is
    interpolated from the times at which Debezium sent the captured inserts; if these are unknown,
    return `captured`."""
    if not sent_ms.any():
        return captured
    known = sent_ms > 0
    return np.maximum(captured, np.interp(at_ms, sent_ms[known], captured[known]))


def oldest_age_min_ms(at_ms: Floats, due: Floats, arrived: Floats) -> Floats:
    """Return a lower bound of the age of the oldest insert that is due but has not arrived, at each
    row. The true age is higher by less than the time between two rows."""
    waits, first = _oldest(due, arrived)
    return np.where(waits, at_ms - at_ms[first], 0.0) if len(at_ms) else at_ms


def oldest_age_max_ms(at_ms: Floats, due: Floats, arrived: Floats) -> Floats:
    """Return an upper bound of the age that `oldest_age_min_ms` bounds from below: the insert
    became due after the row before the one at which it is first counted. The true age is lower by
    less than the time between two rows."""
    waits, first = _oldest(due, arrived)
    return np.where(waits, at_ms - at_ms[np.maximum(first - 1, 0)], 0.0) if len(at_ms) else at_ms


def _oldest(due: Floats, arrived: Floats) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Return, for each row, whether an insert is waiting, and the first row at which the oldest
    waiting insert was due."""
    first = np.searchsorted(due, arrived, "right")
    return arrived < due, np.minimum(first, len(due) - 1)


def cdc_path(folder: Path, window: Window) -> CdcLag | None:
    """Return the lag of the CDC path: the rate of the inserts, and a lag for each stage. The lag of
    a stage at a given time is the age of the oldest insert that has not yet passed the stage;
    quantiles are over the window. None if the run did not record enough inserts."""
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
