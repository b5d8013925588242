"""Are the views right? On a stack whose load is paused: let the engine drain, read every view back,
and compare it with the sources."""

import csv
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import duckdb

from racetrack.clock import now_ms
from racetrack.engines.contract import Engine, NoSuchView
from racetrack.errors import RacetrackError
from racetrack.probes.settled import Settled
from racetrack.stack.contract import Stack
from racetrack.verified_record import Miscounted, Verified, ViewFinding, ViewStatus, WrongRow
from racetrack.verify import mysql, normal, sources, topics
from racetrack.verify.compare import RELATIVE_ERROR, Compared, Finding, compare
from racetrack.workload import View, Workload, find_workload

# How long an engine may take to count what was there when the load was paused.
DRAIN_WITHIN_S = 60.0
# A view may be behind its neighbours: one that is wrong is read again for so long.
AGAIN_WITHIN_S = 10.0
LOOK_EVERY_S = 0.25
KEPT_FINDINGS = 1_000
SHOWN_FINDINGS = 5


class Verification:
    """One verification of one engine."""

    def __init__(
        self,
        engine: Engine,
        stack: Stack,
        settled: Settled,
        folder: Path,
        say: Callable[[str], None],
    ) -> None:
        """`folder` gets a CSV file for each view that is wrong; `say` is called at every look with
        what goes on, and may raise to end it."""
        self._engine, self._stack, self._settled = engine, stack, settled
        self._folder, self._say = folder, say
        self._workload = find_workload(stack.settings.workload)
        self._findings: dict[str, ViewFinding] = {}

    def run(self) -> Verified:
        """Verify every view.

        Raises:
            RacetrackError: a source could not be read.
        """
        with (
            tempfile.TemporaryDirectory(prefix="racetrack-verify-") as spill,
            sources.open_database(self._workload, Path(spill)) as db,
        ):
            self._take_tables(db)
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
                views={view.name: self._findings[view.name] for view in self._workload.views},
            )

    def _take_tables(self, db: duckdb.DuckDBPyConnection) -> None:
        for name, rows in mysql.read_tables(self._stack, self._workload).items():
            view = self._workload.view(name)
            sources.take_table(db, view, rows)
            sources.expect(db, self._workload, view)

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
            if view.name != self._workload.progress:
                return compare(db, view, held, 0).right
            normal.of_engine(db, held, view, "held")
        except NoSuchView:
            return True  # there is nothing to wait for; said as such in the result
        except RacetrackError:
            return False  # it may come; if not, the result says why
        counted = dict(db.execute('SELECT "partition", total FROM held').fetchall())
        # One that counted some twice never has just these; it may have so many and not be through.
        return all(counted.get(n, 0) >= end for n, end in enumerate(self._settled.end_offsets))

    def _take_topics(self, db: duckdb.DuckDBPyConnection) -> None:
        self._say(f"reading {sum(self._settled.end_offsets):,} {self._workload.topic.event}s")
        where = self._stack.endpoints.kafka
        topics.take(db, where, self._workload.topic, self._settled.end_offsets)
        for topic in self._workload.topics:
            topics.take_all(db, where, topic)

    def _judge_all(self, db: duckdb.DuckDBPyConnection) -> None:
        """Judge every view, and those that are wrong again until they are right or time is up."""
        for view in self._workload.views:
            if not view.window:
                self._say(f"computing {view.name}")
                sources.expect(db, self._workload, view)
        self._judge_each(db, self._workload.views)
        give_up_s = time.monotonic() + AGAIN_WITHIN_S
        while wrong := [v for v in self._workload.views if self._findings[v.name].is_wrong]:
            if time.monotonic() > give_up_s:
                return
            time.sleep(LOOK_EVERY_S)
            self._judge_each(db, wrong)

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
                sources.expect(db, self._workload, view)
            compared = compare(db, view, held, KEPT_FINDINGS)
        except NoSuchView:
            return ViewFinding(status=ViewStatus.ABSENT)
        except RacetrackError as error:
            return ViewFinding(status=ViewStatus.UNREADABLE, reason=str(error))
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
        row = db.execute(f"SELECT count(*) FROM source.{table}").fetchone()  # noqa: S608
        counts[table] = row[0] if row else 0
    return counts


def _peak_rss_gib() -> float:
    """The most memory that this process has ever had resident; Linux counts in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
