"""Verifies a stack while its load is paused: compares the CDC topics with MySQL, waits until the
engine has drained, reads every view, and compares it with the expected rows, which are computed
from the topics.
"""
# ruff: noqa: S608 - the SQL contains names of the workload only

import csv
import re
import resource
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa

from racetrack.clock import now_ms
from racetrack.engines.contract import Engine, NoSuchView
from racetrack.errors import RacetrackError
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.probes.loadgen import Settled
from racetrack.probes.positions import followed
from racetrack.results.verification import (
    CdcVerified,
    UnfitMessages,
    Verified,
    ViewFinding,
    ViewStatus,
    WrongRow,
)
from racetrack.stack.contract import Stack
from racetrack.verify import sources, tables
from racetrack.verify.compare import (
    RELATIVE_ERROR,
    Compared,
    NotComputed,
    compare,
    normalize_engine,
    short,
)
from racetrack.verify.tables import CdcTopics, Rows, open_topics
from racetrack.workloads.contract import SourceTopic, View, Workload, workload_in

# Time limit for the engine to process everything published before the pause.
DRAIN_WITHIN_S = 60.0
# Some views may be updated later than others, so a wrong view is read again for this long.
AGAIN_WITHIN_S = 10.0
LOOK_EVERY_S = 0.25
CHECK_EVERY_S = 1.0  # interval between checks of the stack while engines drain
# If CDC topics differ from MySQL and receive no message for this long, the difference is final.
CDC_QUIET_S = 10.0
KEPT_FINDINGS = 1_000
SHOWN_FINDINGS = 5
# Errors that an engine's client, Arrow or DuckDB may raise for unexpected values.
_NOT_DATA = (pa.ArrowException, duckdb.Error, ArithmeticError, ValueError, TypeError)


@dataclass(frozen=True)
class Inputs:
    """Functions that read the sources with which the views are compared."""

    read_tables: Callable[[Stack, Workload], Mapping[str, Rows | str]] = tables.read_tables
    open_cdc: Callable[[Stack, Workload], CdcTopics] = open_topics
    statements_without_messages: Callable[[Stack, Sequence[str]], Sequence[str]] = (
        tables.statements_without_messages
    )
    take_topic: Callable[
        [duckdb.DuckDBPyConnection, KafkaEndpoint, SourceTopic, Sequence[int]], sources.Unfit
    ] = sources.take_topic
    take_whole_topic: Callable[
        [duckdb.DuckDBPyConnection, KafkaEndpoint, SourceTopic], sources.Unfit
    ] = sources.take_whole_topic


@dataclass(frozen=True)
class Limits:
    """Time limits of a verification, in seconds; the constants explain them."""

    drain_within_s: float = DRAIN_WITHIN_S
    again_within_s: float = AGAIN_WITHIN_S
    cdc_quiet_s: float = CDC_QUIET_S
    look_every_s: float = LOOK_EVERY_S


class Verification:
    """One verification of one engine."""

    def __init__(
        self,
        engine: Engine,
        stack: Stack,
        settled: Settled,
        folder: Path,
        say: Callable[[str], None],
        inputs: Inputs | None = None,
        limits: Limits | None = None,
    ) -> None:
        """Prepare a verification. A CSV file for each wrong view is written into `folder`. `say` is
        called with the progress at every check, and may raise to end the verification."""
        self._engine, self._stack, self._settled = engine, stack, settled
        self._folder, self._say = folder, say
        self._inputs, self._limits = inputs or Inputs(), limits or Limits()
        self._workload = workload_in(stack.settings)
        has_updates = stack.settings.updates_per_second > 0
        self._first_rows_of = engine.ignores_updates_of if has_updates else ()
        self._findings: dict[str, ViewFinding] = {}
        self._unfit: dict[str, UnfitMessages] = {}
        # View -> the reason why its expected rows can't be computed.
        self._not_computed: dict[str, str] = {}
        self._closing, self._stopped = ExitStack(), threading.Event()
        self._db: duckdb.DuckDBPyConnection
        self._cdc: CdcVerified | None = None
        self._drained_after_s: float | None = None

    def run(self) -> Verified:
        """Verify every view.

        Raises:
            RacetrackError: a source could not be read.
        """
        with self:
            self.drain()
            return self.judge()

    def __enter__(self) -> "Verification":
        """Open the database in which the views are compared."""
        spill = self._closing.enter_context(tempfile.TemporaryDirectory(prefix="racetrack-verify-"))
        database = sources.open_database(self._workload, Path(spill))
        self._db = self._closing.enter_context(database)
        sources.set_variables(self._db, self._workload, self._stack.settings)
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def drain(self) -> None:
        """Verify the CDC topics, and wait until the engine has processed all input.

        Raises:
            RacetrackError: a source could not be read.
        """
        self._cdc = self._verify_cdc()
        self._drained_after_s = self._drain()

    def judge(self) -> Verified:
        """Compare every view with the sources. Call `drain` before.

        Raises:
            RacetrackError: a source could not be read.
        """
        began_s = time.monotonic()
        self._take_topics()
        read_s = time.monotonic() - began_s
        self._judge_all()
        return Verified(
            drained_after_s=self._drained_after_s,
            drain_within_s=self._limits.drain_within_s,
            source_read_s=round(read_s, 2),
            took_s=round(time.monotonic() - began_s, 2),
            harness_peak_rss_gib=round(_peak_rss_gib(), 3),
            end_offsets=tuple(self._settled.end_offsets),
            source_rows=_source_rows(self._db, self._workload),
            relative_error=RELATIVE_ERROR,
            cdc=self._cdc,
            unfit=self._unfit,
            first_rows_of=self._first_rows_of,
            views={view.name: self._finding(view) for view in self._workload.views},
        )

    def stop(self) -> None:
        """Let `drain` end with an error. Any thread may call this."""
        self._stopped.set()

    def _look_later(self, progress: str) -> None:
        self._say(progress)
        if self._stopped.wait(self._limits.look_every_s):
            raise RacetrackError("The verification was stopped.")

    def _verify_cdc(self) -> CdcVerified | None:
        """Compare the CDC topics with MySQL's tables until both are equal, or until the topics
        receive no more messages.

        Afterwards `source` contains the rows of the topics, which are the engine's input. If the
        engine does not use CDC, `source` contains MySQL's rows, and the result is None. Of a table
        whose updates the engine ignores, `source` then contains the rows that the engine read.
        Without tables, there is nothing to do."""
        if not self._workload.tables:
            return None
        in_mysql = self._inputs.read_tables(self._stack, self._workload)
        table_views = self._workload.table_views()
        if "debezium" not in self._engine.needs:
            for view in table_views:
                if view.name in self._first_rows_of:
                    self._from(view, partial(self._engine.read_view, self._stack, view.name))
                else:
                    self._in_mysql(view, in_mysql[view.name])
            return None
        with closing(self._inputs.open_cdc(self._stack, self._workload)) as cdc:
            caught_up_after_s, cdc_tables = self._await_cdc(cdc, in_mysql)
            for view in table_views:
                self._from(view, partial(cdc.table, view))
            for table, unfit in cdc.unfit.items():
                name = self._workload.cdc_topic(table)
                self._unfit[name] = UnfitMessages(
                    count=len(unfit), first=tuple(unfit[:SHOWN_FINDINGS])
                )
        differing = [name for name, table in cdc_tables.items() if table.is_wrong]
        find_unsent = self._inputs.statements_without_messages
        unsent = find_unsent(self._stack, differing) if differing else []
        return CdcVerified(
            caught_up_after_s=caught_up_after_s, tables=cdc_tables, statements=tuple(unsent)
        )

    def _await_cdc(
        self, cdc: CdcTopics, in_mysql: Mapping[str, Rows | str]
    ) -> tuple[float | None, dict[str, ViewFinding]]:
        """Return the seconds from the pause until all topics equalled MySQL (None if they never
        did), and the result of each table."""
        newest_s = time.monotonic()
        waiting = self._workload.table_views()
        findings: dict[str, ViewFinding] = {}
        while True:
            if cdc.read_on() or not findings:
                newest_s = time.monotonic()
                for view in waiting:
                    findings[view.name] = self._judge_topic(view, cdc, in_mysql[view.name])
                waiting = [view for view in waiting if findings[view.name].is_wrong]
            waited_s = time.monotonic() - self._settled.since_s
            if not waiting:
                return round(waited_s, 2), findings
            quiet_s = time.monotonic() - newest_s
            if waited_s > self._limits.drain_within_s or quiet_s > self._limits.cdc_quiet_s:
                return None, findings
            self._look_later(f"waiting for CDC, {waited_s:.0f} s")

    def _judge_topic(self, view: View, cdc: CdcTopics, rows: Rows | str) -> ViewFinding:
        raw = self._folder / f"cdc_{view.name}.csv"
        raw.unlink(missing_ok=True)  # an earlier comparison may have written it
        if reason := self._in_mysql(view, rows):
            return ViewFinding(status=ViewStatus.NOT_COMPARED, reason=reason)
        at_ms = now_ms()
        try:
            compared = compare(self._db, view, cdc.table(view), KEPT_FINDINGS)
        except (RacetrackError, *_NOT_DATA) as error:
            return ViewFinding(status=ViewStatus.NOT_COMPARED, reason=short(error))
        if not compared.right:
            _write(raw, view, compared.findings)
        return _for_record(compared, at_ms, at_ms)

    def _in_mysql(self, view: View, rows: Rows | str) -> str | None:
        """Create `source.<table>` and `expected.<table>` from MySQL's rows. Return None, or the
        reason why that is impossible."""
        self._not_computed.pop(view.name, None)
        try:
            if isinstance(rows, str):
                raise NotComputed(rows)
            sources.take_table(self._db, view, rows)
            sources.expect(self._db, self._workload, view)
        except NotComputed as error:
            self._not_computed[view.name] = str(error)
        return self._not_computed.get(view.name)

    def _from(self, view: View, read: Callable[[], pa.Table]) -> None:
        """Create `source.<table>` and `expected.<table>` for the view of a MySQL table, from the
        rows that its CDC topic delivered, or that the engine has."""
        self._not_computed.pop(view.name, None)
        self._db.execute(
            f"DROP TABLE IF EXISTS source.{view.name}; DROP TABLE IF EXISTS expected.{view.name}"
        )
        try:
            sources.take_delivered(self._db, view, read())
            sources.expect(self._db, self._workload, view)
        except (RacetrackError, *_NOT_DATA) as error:
            self._not_computed[view.name] = short(error)

    def _drain(self) -> float | None:
        """Wait until the engine has processed all input, judged by its progress and by its views of
        the tables. Return the seconds since the pause, or None after DRAIN_WITHIN_S."""
        workload = self._workload
        views = [workload.view(workload.progress)] if workload.progress else []
        behind: list[Callable[[], bool]] = [
            partial(self._caught_up, view) for view in (*views, *workload.table_views())
        ]
        with ExitStack() as closing:
            if workload.positions:
                counts = closing.enter_context(followed(self._engine, self._stack))
                behind.append(lambda: self._reaches_the_end(counts()))
            while behind := [has_caught_up for has_caught_up in behind if not has_caught_up()]:
                waited_s = time.monotonic() - self._settled.since_s
                if waited_s > self._limits.drain_within_s:
                    return None
                self._look_later(f"letting the engine drain, {waited_s:.0f} s")
            return round(time.monotonic() - self._settled.since_s, 2)

    def _reaches_the_end(self, counts: Sequence[int]) -> bool:
        """Return whether the engine's counts reach the end offsets. An engine that counts messages
        twice may exceed them."""
        ends = self._settled.end_offsets
        return all(count >= end for count, end in zip(counts, ends, strict=True))

    def _caught_up(self, view: View) -> bool:
        try:
            engine_rows = self._engine.read_view(self._stack, view.name)
            if view.name in self._not_computed:
                return True
            if view.name != self._workload.progress:
                return compare(self._db, view, engine_rows, 0).right
            normalize_engine(self._db, engine_rows, view, "engine_rows")
        except NoSuchView:
            return True  # there is no view to wait for; `_judge` reports that
        except NotComputed:
            return True  # the expected rows are unknown; `_judge` reports that
        except (RacetrackError, *_NOT_DATA):
            return False  # try again; if the error persists, `_judge` reports it
        counted = dict(self._db.execute('SELECT "partition", total FROM engine_rows').fetchall())
        partitions = range(len(self._settled.end_offsets))
        return self._reaches_the_end([counted.get(n, 0) for n in partitions])

    def _take_topics(self) -> None:
        self._say(f"reading {sum(self._settled.end_offsets):,} {self._workload.topic.event}s")
        where = self._stack.endpoints.kafka
        main = self._workload.topic
        unfit = self._inputs.take_topic(self._db, where, main, self._settled.end_offsets)
        self._note_unfit(main.name, unfit)
        for topic in self._workload.topics:
            self._note_unfit(topic.name, self._inputs.take_whole_topic(self._db, where, topic))

    def _note_unfit(self, topic: str, unfit: sources.Unfit) -> None:
        if unfit.count:
            self._unfit[topic] = UnfitMessages(count=unfit.count, first=tuple(unfit.first))

    def _judge_all(self) -> None:
        """Compare every view. Compare wrong views again until they are right or AGAIN_WITHIN_S has
        passed."""
        for view in self._workload.views:
            if not view.window:
                self._say(f"computing {view.name}")
                self._expect(view)
        self._judge_each(self._workload.views)
        give_up_s = time.monotonic() + self._limits.again_within_s
        while wrong := [v for v in self._workload.views if self._findings[v.name].is_wrong]:
            if time.monotonic() > give_up_s:
                return
            time.sleep(self._limits.look_every_s)
            self._judge_each(wrong)

    def _finding(self, view: View) -> ViewFinding:
        """Return the result of a view. An engine is not blamed for a difference if messages that
        parsers read differently may be its cause."""
        finding = self._findings[view.name]
        topics = [self._workload.topic, *self._workload.topics]
        tables = {topic.table: topic.name for topic in topics if topic.name in self._unfit}
        unfit = [tables[table] for table in tables if self._reads(view.name, table)]
        if finding.status is not ViewStatus.WRONG or not unfit:
            return finding
        reason = f"messages of {', '.join(unfit)} are unfit, and engines read those differently"
        return ViewFinding(status=ViewStatus.NOT_COMPARED, reason=reason)

    def _reads(self, view: str, table: str) -> bool:
        """Whether a view depends on a table of `source`, directly or through other views."""
        sql = (self._workload.sql / f"{view}.sql").read_text()
        others = re.findall(r"expected\.(\w+)", sql)
        return f"source.{table}" in sql or any(self._reads(other, table) for other in others)

    def _expect(self, view: View) -> None:
        if view.name in self._not_computed:
            return
        try:
            sources.expect(self._db, self._workload, view)
        except NotComputed as error:
            self._not_computed[view.name] = str(error)

    def _judge_each(self, views: Sequence[View]) -> None:
        for view in views:
            self._say(f"comparing {view.name}")
            before, finding = self._findings.get(view.name), self._judge(view)
            self._findings[view.name] = _with_change(before, finding)

    def _judge(self, view: View) -> ViewFinding:
        raw = self._folder / f"{view.name}.csv"
        raw.unlink(missing_ok=True)  # an earlier comparison may have written it
        from_ms = now_ms()
        try:
            engine_rows = self._engine.read_view(self._stack, view.name)
            until_ms = now_ms()
            if view.window:
                from_ms -= self._engine.clock_slack_ms(self._stack.settings)
                sources.between(self._db, from_ms, until_ms)
                self._expect(view)
            if reason := self._not_computed.get(view.name):
                raise NotComputed(reason)
            compared = compare(self._db, view, engine_rows, KEPT_FINDINGS)
        except NoSuchView:
            return ViewFinding(status=ViewStatus.ABSENT)
        except NotComputed as error:
            return ViewFinding(status=ViewStatus.NOT_COMPARED, reason=str(error))
        except (RacetrackError, *_NOT_DATA) as error:
            return ViewFinding(status=ViewStatus.UNREADABLE, reason=short(error))
        if not compared.right:
            _write(raw, view, compared.findings)
        return _for_record(compared, from_ms, until_ms)


def verify_together(
    verifications: Mapping[str, Verification], check: Callable[[], None]
) -> dict[str, Verified]:
    """Verify engines that share their input. While they drain, each is watched by a thread of its
    own. If they were watched one after the other, the wait for one engine would count as drain time
    of the next. `check` is called again and again, and may raise to end the verification.

    Raises:
        RacetrackError: a source could not be read.
    """
    running = verifications.values()
    with ExitStack() as opened, ThreadPoolExecutor(len(running), "drain") as threads:
        drains = [
            threads.submit(opened.enter_context(verification).drain) for verification in running
        ]
        try:
            while wait(drains, CHECK_EVERY_S, FIRST_EXCEPTION).not_done:
                check()
                if failed := [drain for drain in drains if drain.done() and drain.exception()]:
                    failed[0].result()
        except BaseException:
            for verification in running:
                verification.stop()
            raise
        for drain in drains:
            drain.result()
        return {name: verification.judge() for name, verification in verifications.items()}


def _with_change(before: ViewFinding | None, finding: ViewFinding) -> ViewFinding:
    """Mark the counting errors of a view as `still_counting` if they have changed since an earlier
    comparison."""
    if not (before and before.miscounted and finding.miscounted):
        return finding
    earlier = before.miscounted
    changed = (earlier.twice, earlier.lost) != (finding.miscounted.twice, finding.miscounted.lost)
    still = {"still_counting": changed or earlier.still_counting}
    return finding.model_copy(update={"miscounted": finding.miscounted.model_copy(update=still)})


def _for_record(compared: Compared, from_ms: int, until_ms: int) -> ViewFinding:
    finding = ViewFinding(
        status=ViewStatus.RIGHT if compared.right else ViewStatus.WRONG,
        compared=compared.compared,
        missing=compared.missing,
        extra=compared.extra,
        different=compared.different,
        first=tuple(compared.findings[:SHOWN_FINDINGS]),
        from_ms=from_ms,
        until_ms=until_ms,
    )
    # Fields that are never set are not written, so `miscounted` is only set if it is known.
    update = {"miscounted": compared.miscounted} if compared.miscounted else {}
    return finding.model_copy(update=update)


def _write(path: Path, view: View, findings: Sequence[WrongRow]) -> None:
    """Write findings as CSV: `finding`, then each column of the view twice, with the expected and
    the engine's value."""
    path.parent.mkdir(exist_ok=True)
    sides = ("source", "engine")
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["finding", *(f"{side} {name}" for name in view.columns for side in sides)])
        for finding in findings:
            both = ((finding.source or {}).get, (finding.engine or {}).get)
            rows.writerow([finding.finding, *(get(n) for n in view.columns for get in both)])


def _source_rows(db: duckdb.DuckDBPyConnection, workload: Workload) -> dict[str, int]:
    counts = {}
    of_topics = [topic.table for topic in (workload.topic, *workload.topics)]
    for table in (*workload.tables, *of_topics):
        try:
            row = db.execute(f"SELECT count(*) FROM source.{table}").fetchone()
        except duckdb.CatalogException:
            row = None  # the table could not be read; its finding reports that
        counts[table] = row[0] if row else 0
    return counts


def _peak_rss_gib() -> float:
    """Return the peak resident memory of this process in GiB; Linux reports it in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
