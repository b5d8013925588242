"""PostgreSQL as a baseline: plain views over tables that a small consumer fills from Kafka.

Progress is published with NOTIFY in the transactions that insert events, so it arrives when they
are committed.
"""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from racetrack.clock import now_ms
from racetrack.config import Settings
from racetrack.engines.contract import Progress, Seen, Summary
from racetrack.engines.pg.elsewhere import ELSEWHERE
from racetrack.engines.pg.settings import PostgresSettings
from racetrack.engines.shared.pgwire import Server
from racetrack.engines.shared.sql_engine import SqlEngine
from racetrack.engines.shared.tracer import only_more, tracer_rows_in_sql
from racetrack.errors import RacetrackError, UsageError
from racetrack.results.classes import Classes
from racetrack.stack.applicability import why_without_effect
from racetrack.stack.contract import Stack
from racetrack.workloads.contract import TracedView, Workload, find_workload

ASK_EVERY_S = 1.0
LOOK_EVERY_S = 0.5  # how often to check `stop`; notifications are read as they arrive
PROGRESS = "SELECT partition, total, max_received_at FROM {view} ORDER BY partition"
IS_LOADED = "SELECT to_regclass('feed_positions') IS NOT NULL"
SUMMARY = "SELECT total, max_received_at FROM {view}"

COMPUTED = "PostgreSQL's views are computed when they are read"
NOTHING_READ = f"{COMPUTED}, and no view was read during the measurement."
ON_READING = (
    f"{NOTHING_READ} The CPU time is only that of inserting rows into tables and indexes, while"
    " engines that keep views up to date also compute the views."
)
READ_BY_READER = "the view reader read some of them (READS_PER_SECOND)"
READ_FOR_TRACERS = "the tracer rows of traced views were read, at most once a second"
ON_TRIGGERS = (
    "POSTGRES_TRIGGERS: triggers count each item's pageviews in a table. This makes item_summary"
    " and the top lists cheaper to read, and inserting rows more expensive."
)
SHARED = (
    "Resident memory counts PostgreSQL's shared buffers several times, once for each process that"
    " has used them. PSS counts them once."
)


class PostgreSQL(SqlEngine):
    """See `racetrack.engines.contract.Engine`."""

    name = "pg"
    title = "PostgreSQL"
    order = 6
    needs = ("registry", "debezium")
    runtimes = ("native", "compose", "kubernetes")
    services = ("postgres", "pgfeed")
    kafka_elsewhere = True
    script_ending = ".pg.sql"
    version_part = "postgres"
    elsewhere = ELSEWHERE
    makes = "VIEW|TABLE"
    one_key_at_a_time = True

    def server_here(self, settings: Settings) -> Server:
        """Return the address of PostgreSQL in the stack."""
        own = PostgresSettings.of(settings)
        where = make_conninfo(
            host=settings.reach_address,
            port=own.postgres_port,
            user="shop",
            password=own.postgres_password.get_secret_value(),
            dbname="shop",
        )
        return Server.at(where, "POSTGRES_PORT")

    def check(self, stack: Stack) -> None:
        """Check that POSTGRES_TRIGGERS has an effect if it is set.

        Raises:
            UsageError: it has none.
        """
        if PostgresSettings.of(stack.settings).postgres_triggers and (
            why := why_without_effect("POSTGRES_TRIGGERS", stack.settings.workload)
        ):
            raise UsageError(f"POSTGRES_TRIGGERS has no effect: {why}. Unset it.")

    def classes(self, settings: Settings) -> Classes:
        """Return that plain views are computed when they are read, even if triggers count the
        pageviews of items. Tables and positions in the topics remain after a kill, except those
        that are unlogged, in a container or in a pod."""
        own = PostgresSettings.of(settings)
        counts = own.postgres_triggers
        is_lost = own.postgres_unlogged or settings.runtime in ("compose", "kubernetes")
        return Classes(
            results="served",
            after_a_kill=(
                "reads all input again"
                if is_lost and not self.runs_elsewhere(settings)
                else "resumes"
            ),
            work="partly when read" if counts else "when read",
            views="declarative",
            changes="follows changes",
        )

    def load_demo(self, stack: Stack) -> None:
        """Run the script in psql. The consumer starts when the script is committed."""
        own = PostgresSettings.of(stack.settings)
        given = {"triggers": own.postgres_triggers, "unlogged": own.postgres_unlogged}
        variables = {name: "on" if is_on else "off" for name, is_on in given.items()}
        self.run_script(self.server(stack.settings), stack.settings, variables)

    def reload_demo(self, stack: Stack) -> None:
        """Load the demo again if the restarted database is empty."""
        ((is_loaded,),) = self.demo(stack.settings).execute(IS_LOADED)
        if not is_loaded:
            self.load_demo(stack)

    def versions(self, stack: Stack) -> Mapping[str, str]:
        """Return the version of a PostgreSQL that the user provides."""
        if not self.runs_elsewhere(stack.settings):
            return {}
        ((version,),) = self.server(stack.settings).execute("SHOW server_version")
        return {self.version_part: str(version)}

    def updates(self, stack: Stack, stop: threading.Event) -> Iterator[Summary | Progress]:
        """Yield the current rows of the two progress views, then the notifications of each
        transaction."""
        server, workload = self.demo(stack.settings), find_workload(stack.settings.workload)
        views = {workload.progress: PROGRESS, workload.summary: SUMMARY}
        with server.connect() as connection:
            for view in views:
                connection.execute(f"LISTEN {view}".encode())
            for view, query in views.items():
                for row in connection.execute(query.format(view=view).encode()).fetchall():
                    yield update_of(workload, view, " ".join(map(str, row)), now_ms())
            while True:
                last_look = stop.is_set()
                for view, payload in _notified(connection):
                    yield update_of(workload, view, payload, now_ms())
                if last_look:
                    return

    def seen(
        self, stack: Stack, traced: Sequence[TracedView], stop: threading.Event
    ) -> Iterator[Seen]:
        """Yield the tracer rows from queries of the views, one after the other, at most every
        ASK_EVERY_S seconds: each query computes its view, which takes CPU time in PostgreSQL."""
        return only_more(_answers(self.demo(stack.settings), stack.settings, traced, stop))

    def clock_slack_ms(self, settings: Settings) -> int:
        """Return 0: a view is computed when it is read, so its time window ends at that moment. If
        the user provides PostgreSQL, return the possible difference of its clock."""
        return super().clock_slack_ms(settings) if self.runs_elsewhere(settings) else 0

    def caveats(self, settings: Settings) -> list[str]:
        """Return warnings about costs that PostgreSQL's figures omit or count twice."""
        read = [
            *([READ_BY_READER] if settings.reads_per_second else []),
            *([READ_FOR_TRACERS] if settings.tracer_events_per_second else []),
        ]
        elsewhere = self.runs_elsewhere(settings)
        computed = NOTHING_READ if elsewhere else ON_READING
        if read:
            computed = (
                f"{COMPUTED}. In this run {', and '.join(read)}. Views that were not read took no"
                " CPU time."
            )
        kept = [ON_TRIGGERS] if PostgresSettings.of(settings).postgres_triggers else []
        return [computed, *kept, *([] if elsewhere else [SHARED])]

    def usage_hints(self, stack: Stack) -> list[str]:
        """Return the command of psql, and what to type there."""
        if self.runs_elsewhere(stack.settings):
            first = "; ".join(ELSEWHERE.statements_before())
            return [
                f"SQL: psql '{self.server(stack.settings).conninfo}' -v triggers=off",
                f"In it: {first};",
                f"       \\i {self.script(stack.settings)}",
            ]
        password = PostgresSettings.of(stack.settings).postgres_password.get_secret_value()
        return [
            f"SQL: PGPASSWORD={password} psql '{self.server(stack.settings).conninfo}'",
            f"In it: \\i {self.script(stack.settings)}",
        ]


def _answers(
    server: Server, settings: Settings, traced: Sequence[TracedView], stop: threading.Event
) -> Iterator[Seen]:
    queries = {
        view.name: tracer_rows_in_sql(view, view.keys(settings), one_key_at_a_time=True).encode()
        for view in traced
    }
    with server.connect() as connection:
        while not stop.is_set():
            next_s = time.monotonic() + ASK_EVERY_S
            for name, query in queries.items():
                for partition, value in _answer(connection, query):
                    yield Seen(now_ms(), name, partition, int(value))
            stop.wait(next_s - time.monotonic())


def _answer(connection: "psycopg.Connection[Any]", query: bytes) -> list[tuple[int, int]]:
    try:
        return connection.execute(query).fetchall()
    except psycopg.Error as error:
        raise RacetrackError(f"PostgreSQL does not answer {query.decode()!r}: {error}") from error


def update_of(workload: Workload, view: str, payload: str, now_ms: int) -> Summary | Progress:
    """Return the update in a notification about a progress view; `feed/consumer.py` sends them.

    Raises:
        RacetrackError: the notification has another format.
    """
    numbers = [int(word) for word in payload.split() if word.isdecimal()]
    if view == workload.progress and len(numbers) == 3:
        return Progress(now_ms, *numbers)
    if view == workload.summary and len(numbers) == 2:
        total, max_received_at_ms = numbers
        return Summary(now_ms, total, max_received_at_ms, now_ms - max_received_at_ms)
    raise RacetrackError(f"PostgreSQL sent an invalid notification: {view}: {payload!r}")


def _notified(connection: "psycopg.Connection[Any]") -> Iterator[tuple[str, str]]:
    """Yield notifications as they arrive, for LOOK_EVERY_S."""
    try:
        for notice in connection.notifies(timeout=LOOK_EVERY_S):
            yield notice.channel, notice.payload
    except psycopg.Error as error:
        raise RacetrackError(f"PostgreSQL no longer reports its progress: {error}") from error


ENGINE = PostgreSQL()
