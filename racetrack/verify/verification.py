"""Are the views right? On a stack whose load is paused: compare what CDC delivered with MySQL, let
the engine drain, read every view back, and compare it with what the topics hold."""
# ruff: noqa: S608 - SQL is put together from names of the workload only

import csv
import resource
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import duckdb
import pyarrow as pa

from racetrack.clock import now_ms
from racetrack.engines.contract import Engine, NoSuchView
from racetrack.errors import RacetrackError
from racetrack.probes.settled import Settled
from racetrack.results.verification import (
    CdcVerified,
    Miscounted,
    UnfitMessages,
    Verified,
    ViewFinding,
    ViewStatus,
    WrongRow,
)
from racetrack.stack.contract import Stack
from racetrack.verify import mysql, normal, sources, topics
from racetrack.verify.cdc import CdcTopics, open_topics
from racetrack.verify.compare import RELATIVE_ERROR, Compared, Finding, compare
from racetrack.workloads.contract import View, Workload, find_workload

# How long an engine may take to count what was there when the load was paused.
DRAIN_WITHIN_S = 60.0
# A view may be behind its neighbours: one that is wrong is read again for so long.
AGAIN_WITHIN_S = 10.0
LOOK_EVERY_S = 0.25
# Topics that differ from MySQL and get nothing new for so long will not come to equal it.
CDC_QUIET_S = 10.0
KEPT_FINDINGS = 1_000
SHOWN_FINDINGS = 5
# What a value that nobody expected may end in, in an engine's client, Arrow or DuckDB.
_NOT_DATA = (pa.ArrowException, duckdb.Error, ArithmeticError, ValueError, TypeError)


class Verification:
    """One verification of one engine."""

    def __init__(
        self,
        engine: Engine,
        stack: Stack,
        settled: Settled,
        folder: Path,
        say: Callable[[str], None],
        open_cdc: Callable[[Stack, Workload], CdcTopics] = open_topics,
    ) -> None:
        """`folder` gets a CSV file for each view that is wrong; `say` is called at every look with
        what goes on, and may raise to end it."""
        self._engine, self._stack, self._settled = engine, stack, settled
        self._folder, self._say, self._open_cdc = folder, say, open_cdc
        self._workload = find_workload(stack.settings.workload)
        self._findings: dict[str, ViewFinding] = {}
        self._unfit: dict[str, UnfitMessages] = {}
        # What each view that can't be computed lacks.
        self._not_computed: dict[str, str] = {}

    def run(self) -> Verified:
        """Verify every view.

        Raises:
            RacetrackError: a source could not be read.
        """
        with (
            tempfile.TemporaryDirectory(prefix="racetrack-verify-") as spill,
            sources.open_database(self._workload, Path(spill)) as db,
        ):
            cdc = self._verify_cdc(db)
            drained_after_s = self._drain(db)
            began_s = time.monotonic()
            self._take_topics(db)
            read_s = time.monotonic() - began_s
            self._judge_all(db)
            return Verified(
                drained_after_s=drained_after_s,
                drain_within_s=DRAIN_WITHIN_S,
                source_read_s=round(read_s, 2),
                took_s=round(time.monotonic() - began_s, 2),
                harness_peak_rss_gib=round(_peak_rss_gib(), 3),
                end_offsets=tuple(self._settled.end_offsets),
                source_rows=_source_rows(db, self._workload),
                relative_error=RELATIVE_ERROR,
                cdc=cdc,
                unfit=self._unfit,
                views={view.name: self._findings[view.name] for view in self._workload.views},
            )

    def _verify_cdc(self, db: duckdb.DuckDBPyConnection) -> CdcVerified | None:
        """Compare the topics of the tables with MySQL until they are equal or nothing more comes;
        then the topics are what the engine was given. One that reads none is given MySQL itself."""
        in_mysql = mysql.read_tables(self._stack, self._workload)
        tables = self._workload.table_views()
        if "debezium" not in self._engine.needs:
            for view in tables:
                self._in_mysql(db, view, in_mysql[view.name])
            return None
        with closing(self._open_cdc(self._stack, self._workload)) as cdc:
            caught_up_after_s, found = self._await_cdc(db, cdc, in_mysql)
            for view in tables:
                self._given(db, view, cdc)
            for table, unfit in cdc.unfit.items():
                name = self._workload.cdc_topic(table)
                self._unfit[name] = UnfitMessages(
                    count=len(unfit), first=tuple(unfit[:SHOWN_FINDINGS])
                )
        differing = [name for name, table in found.items() if table.is_wrong]
        unsent = mysql.statements_without_messages(self._stack, differing) if differing else []
        return CdcVerified(
            caught_up_after_s=caught_up_after_s, tables=found, statements=tuple(unsent)
        )

    def _await_cdc(
        self,
        db: duckdb.DuckDBPyConnection,
        cdc: CdcTopics,
        in_mysql: Mapping[str, mysql.Rows | str],
    ) -> tuple[float | None, dict[str, ViewFinding]]:
        """When all topics were seen to equal MySQL, and what was found of each table."""
        newest_s = time.monotonic()
        waiting = self._workload.table_views()
        found: dict[str, ViewFinding] = {}
        while True:
            if cdc.read_on() or not found:
                newest_s = time.monotonic()
                for view in waiting:
                    found[view.name] = self._judge_topic(db, view, cdc, in_mysql[view.name])
                waiting = [view for view in waiting if found[view.name].is_wrong]
            waited_s = time.monotonic() - self._settled.since_s
            if not waiting:
                return round(waited_s, 2), found
            if waited_s > DRAIN_WITHIN_S or time.monotonic() - newest_s > CDC_QUIET_S:
                return None, found
            self._say(f"waiting for CDC, {waited_s:.0f} s")
            time.sleep(LOOK_EVERY_S)

    def _judge_topic(
        self,
        db: duckdb.DuckDBPyConnection,
        view: View,
        cdc: CdcTopics,
        rows: mysql.Rows | str,
    ) -> ViewFinding:
        raw = self._folder / f"cdc_{view.name}.csv"
        raw.unlink(missing_ok=True)  # of an earlier look
        if reason := self._in_mysql(db, view, rows):
            return ViewFinding(status=ViewStatus.NOT_COMPARED, reason=reason)
        at_ms = now_ms()
        try:
            compared = compare(db, view, cdc.table(view), KEPT_FINDINGS)
        except (RacetrackError, *_NOT_DATA) as error:
            return ViewFinding(status=ViewStatus.NOT_COMPARED, reason=normal.short(error))
        if not compared.right:
            _write(raw, view, compared.findings)
        return _for_record(compared, at_ms, at_ms)

    def _in_mysql(
        self, db: duckdb.DuckDBPyConnection, view: View, rows: mysql.Rows | str
    ) -> str | None:
        """Make `source.` and `expected.<table>` of MySQL's rows; or why that can't be done."""
        self._not_computed.pop(view.name, None)
        try:
            if isinstance(rows, str):
                raise normal.NotComputed(rows)
            sources.take_table(db, view, rows)
            sources.expect(db, self._workload, view)
        except normal.NotComputed as error:
            self._not_computed[view.name] = str(error)
        return self._not_computed.get(view.name)

    def _given(self, db: duckdb.DuckDBPyConnection, view: View, cdc: CdcTopics) -> None:
        """Make `source.` and `expected.<table>` of what its topic has."""
        self._not_computed.pop(view.name, None)
        db.execute(
            f"DROP TABLE IF EXISTS source.{view.name}; DROP TABLE IF EXISTS expected.{view.name}"
        )
        try:
            sources.take_delivered(db, view, cdc.table(view))
            sources.expect(db, self._workload, view)
        except (RacetrackError, *_NOT_DATA) as error:
            self._not_computed[view.name] = normal.short(error)

    def _drain(self, db: duckdb.DuckDBPyConnection) -> float | None:
        """Wait until the engine has all of the sources, by what it counts and by the tables that it
        holds; how many seconds after the pause that was seen, None if not in time."""
        workload = self._workload
        behind = [workload.view(workload.progress), *workload.table_views()]
        while behind := [view for view in behind if not self._caught_up(db, view)]:
            waited_s = time.monotonic() - self._settled.since_s
            if waited_s > DRAIN_WITHIN_S:
                return None
            self._say(f"letting the engine drain, {waited_s:.0f} s")
            time.sleep(LOOK_EVERY_S)
        return round(time.monotonic() - self._settled.since_s, 2)

    def _caught_up(self, db: duckdb.DuckDBPyConnection, view: View) -> bool:
        try:
            held = self._engine.read_view(self._stack, view.name)
            if view.name in self._not_computed:
                return True
            if view.name != self._workload.progress:
                return compare(db, view, held, 0).right
            normal.of_engine(db, held, view, "held")
        except NoSuchView:
            return True  # there is nothing to wait for; said as such in the result
        except normal.NotComputed:
            return True  # there is nothing to compare it with; said as such in the result
        except (RacetrackError, *_NOT_DATA):
            return False  # it may come; if not, the result says why
        counted = dict(db.execute('SELECT "partition", total FROM held').fetchall())
        # One that counted some twice never has just these; it may have so many and not be through.
        return all(counted.get(n, 0) >= end for n, end in enumerate(self._settled.end_offsets))

    def _take_topics(self, db: duckdb.DuckDBPyConnection) -> None:
        self._say(f"reading {sum(self._settled.end_offsets):,} {self._workload.topic.event}s")
        where = self._stack.endpoints.kafka
        main = self._workload.topic
        self._note_unfit(main.name, topics.take(db, where, main, self._settled.end_offsets))
        for topic in self._workload.topics:
            self._note_unfit(topic.name, topics.take_all(db, where, topic))

    def _note_unfit(self, topic: str, unfit: topics.Unfit) -> None:
        if unfit.count:
            self._unfit[topic] = UnfitMessages(count=unfit.count, first=tuple(unfit.first))

    def _judge_all(self, db: duckdb.DuckDBPyConnection) -> None:
        """Judge every view, and those that are wrong again until they are right or time is up."""
        for view in self._workload.views:
            if not view.window:
                self._say(f"computing {view.name}")
                self._expect(db, view)
        self._judge_each(db, self._workload.views)
        give_up_s = time.monotonic() + AGAIN_WITHIN_S
        while wrong := [v for v in self._workload.views if self._findings[v.name].is_wrong]:
            if time.monotonic() > give_up_s:
                return
            time.sleep(LOOK_EVERY_S)
            self._judge_each(db, wrong)

    def _expect(self, db: duckdb.DuckDBPyConnection, view: View) -> None:
        if view.name in self._not_computed:
            return
        try:
            sources.expect(db, self._workload, view)
        except normal.NotComputed as error:
            self._not_computed[view.name] = str(error)

    def _judge_each(self, db: duckdb.DuckDBPyConnection, views: Sequence[View]) -> None:
        for view in views:
            self._say(f"comparing {view.name}")
            before, found = self._findings.get(view.name), self._judge(db, view)
            self._findings[view.name] = _with_change(before, found)

    def _judge(self, db: duckdb.DuckDBPyConnection, view: View) -> ViewFinding:
        raw = self._folder / f"{view.name}.csv"
        raw.unlink(missing_ok=True)  # of an earlier look
        from_ms = now_ms()
        try:
            held = self._engine.read_view(self._stack, view.name)
            until_ms = now_ms()
            if view.window:
                from_ms -= self._engine.clock_slack_ms(self._stack.settings)
                sources.between(db, from_ms, until_ms)
                self._expect(db, view)
            if reason := self._not_computed.get(view.name):
                raise normal.NotComputed(reason)
            compared = compare(db, view, held, KEPT_FINDINGS)
        except NoSuchView:
            return ViewFinding(status=ViewStatus.ABSENT)
        except normal.NotComputed as error:
            return ViewFinding(status=ViewStatus.NOT_COMPARED, reason=str(error))
        except (RacetrackError, *_NOT_DATA) as error:
            return ViewFinding(status=ViewStatus.UNREADABLE, reason=normal.short(error))
        if not compared.right:
            _write(raw, view, compared.findings)
        return _for_record(compared, from_ms, until_ms)


def _with_change(before: ViewFinding | None, found: ViewFinding) -> ViewFinding:
    """With what an earlier look at the same view says of it: has the engine counted on since?"""
    if not (before and before.miscounted and found.miscounted):
        return found
    earlier = before.miscounted
    changed = (earlier.twice, earlier.lost) != (found.miscounted.twice, found.miscounted.lost)
    still = {"still_counting": changed or earlier.still_counting}
    return found.model_copy(update={"miscounted": found.miscounted.model_copy(update=still)})


def _for_record(compared: Compared, from_ms: int, until_ms: int) -> ViewFinding:
    found = ViewFinding(
        status=ViewStatus.RIGHT if compared.right else ViewStatus.WRONG,
        compared=compared.compared,
        missing=compared.missing,
        extra=compared.extra,
        different=compared.different,
        first=tuple(
            WrongRow.model_validate(asdict(finding))
            for finding in compared.findings[:SHOWN_FINDINGS]
        ),
        from_ms=from_ms,
        until_ms=until_ms,
    )
    if not compared.miscounted:
        return found
    told = Miscounted(**asdict(compared.miscounted), still_counting=False)
    return found.model_copy(update={"miscounted": told})


def _write(path: Path, view: View, findings: Sequence[Finding]) -> None:
    """`finding`, then each column twice: as the sources say, and as the engine has it."""
    path.parent.mkdir(exist_ok=True)
    sides = ("source", "engine")
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["finding", *(f"{side} {name}" for name in view.columns for side in sides)])
        for found in findings:
            both = ((found.source or {}).get, (found.engine or {}).get)
            rows.writerow([found.finding, *(get(n) for n in view.columns for get in both)])


def _source_rows(db: duckdb.DuckDBPyConnection, workload: Workload) -> dict[str, int]:
    counts = {}
    of_topics = [topic.table for topic in (workload.topic, *workload.topics)]
    for table in (*workload.tables, *of_topics):
        try:
            row = db.execute(f"SELECT count(*) FROM source.{table}").fetchone()
        except duckdb.CatalogException:
            row = None  # it could not be taken, which its finding says
        counts[table] = row[0] if row else 0
    return counts


def _peak_rss_gib() -> float:
    """The most memory that this process has ever had resident; Linux counts in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
