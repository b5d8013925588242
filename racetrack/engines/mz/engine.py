"""Materialize: the demo goes in through psql, progress comes by SUBSCRIBE, delay by a query.

All SQL that only Materialize understands stands here and in the scripts, such as scripts/demo.sql.
It runs in the stack, or elsewhere: where MZ_URL says. There its objects get a schema of their own,
dropped at the end.
"""

import os
import re
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psutil

from racetrack.clock import now_ms
from racetrack.config import Settings
from racetrack.engines.contract import Access, Engine, Progress, Reader, Seen, Summary
from racetrack.engines.mz.settings import MaterializeSettings
from racetrack.engines.shared.marks import only_more, value_in_sql
from racetrack.engines.shared.pgwire import CopyOut, Poll, Server, wait_for
from racetrack.errors import RacetrackError, SetupError, UsageError
from racetrack.stack.contract import Stack
from racetrack.workloads.contract import TracedView, find_workload

if TYPE_CHECKING:
    import psycopg

SERVICE = "materialized"
ASK_EVERY_S = 1.0

# The published query; its time was in seconds, and is in milliseconds here. It is answered as of
# mz_now(), however long that takes: an answer's own delay is not in dt_ms, but in when it comes.
SUMMARY = """
SELECT total, to_timestamp(max_received_at::double precision / 1000) AS max_received_at,
    mz_now()::text::numeric - max_received_at AS dt_ms, max_received_at AS max_received_at_ms
FROM {summary}"""
PROGRESS = """
COPY (SUBSCRIBE (SELECT partition, total, max_received_at FROM {progress})
    WITH (PROGRESS)) TO STDOUT"""
VERSION = "SELECT mz_version()"
# psql prints the banner as a notice, and it would stand before what a failing statement said.
NO_BANNER = "--welcome_message=off"
SCHEMAS = "SELECT nspname FROM pg_catalog.pg_namespace WHERE nspname ~ '^racetrack_'"

# One name for all that this process makes elsewhere: no two runs share it, and whoever finds it
# later can tell whose it was.
SCHEMA = f"racetrack_{time.strftime('%Y%m%d_%H%M%S', time.gmtime())}_{os.getpid()}"

IMAGE = (
    "Materialize's image was measured. Its documentation says of it: “Not indicative of true"
    " Materialize performance. Services are bundled in a single container.” To measure another"
    " Materialize, set MZ_URL."
)
ELSEWHERE = (
    "Materialize was not started by this run, but found at MZ_URL: its version, workers and memory"
    " are its own, and others may use it too."
)
NOT_KNOWN_TO_BE_HERE = (
    "Where it ran is not known to be this machine (MZ_PID names no processes): its results came"
    " over a network, perhaps, and from other cores."
)


class Materialize(Engine):
    """See `racetrack.engines.contract.Engine`."""

    name = "mz"
    title = "Materialize"
    order = 2
    needs = ("registry", "debezium")
    services = (SERVICE,)
    runtimes = ("compose",)
    script_ending = ".sql"
    version_part = "materialize"
    is_published = True

    def __init__(self, script: Path | None = None) -> None:
        """`script` takes the place of the workload's."""
        self._script = script

    def script(self, settings: Settings) -> Path:
        """Return the workload's script, or the one that replaces it."""
        return self._script or super().script(settings)

    def services_in(self, settings: Settings) -> tuple[str, ...]:
        """None if it runs elsewhere."""
        return () if _is_elsewhere(settings) else self.services

    def check(self, stack: Stack) -> None:
        """Is there a Materialize, and what is needed to speak to it?"""
        settings = MaterializeSettings.of(stack.settings)
        if shutil.which("psql") is None:
            raise SetupError("psql is not installed. On Debian: apt-get install postgresql-client.")
        if not _is_elsewhere(settings):
            if settings.mz_pid:
                raise UsageError("MZ_PID is for a Materialize that runs elsewhere: set MZ_URL too.")
            if stack.runtime == "native" or settings.airgap:
                raise UsageError(
                    "Materialize has no packages, so neither the native runtime nor an image made"
                    " here has it. Use its own image (RUNTIME=compose, with a Docker engine that"
                    " may pull it), or one that runs elsewhere:"
                    " MZ_URL=postgres://user@host:port/database."
                )
            return
        _own_processes(settings)
        registry = urlsplit(_registry(stack))
        if registry.scheme not in {"http", "https"} or registry.path.strip("/"):
            raise UsageError(
                f"MZ_SCHEMA_REGISTRY_URL: {_registry(stack)} won't do. Materialize wants a URL"
                " without a path, such as http://host:8081."
            )
        try:
            _server(settings).execute("SELECT 1")
        except RacetrackError as error:
            raise UsageError(f"MZ_URL: {error}\nStart it, or set MZ_URL to where it is.") from error

    def namespace(self, settings: Settings) -> str:
        """Return a schema of this run alone, if Materialize runs elsewhere."""
        return SCHEMA if _is_elsewhere(settings) else ""

    def processes(self, stack: Stack) -> Mapping[str, list[int]]:
        """Elsewhere, those that MZ_PID names and their descendants; none if it names none."""
        if not _is_elsewhere(stack.settings):
            return super().processes(stack)
        own = _own_processes(stack.settings)
        return {SERVICE: own} if own else {}

    def load_demo(self, stack: Stack) -> None:
        """Run the script in psql; elsewhere, in a new schema."""
        new = [f"CREATE SCHEMA {SCHEMA}", f"SET search_path = {SCHEMA}"]
        addresses = {"kafka": _kafka(stack), "registry": _registry(stack)}
        before = new if _is_elsewhere(stack.settings) else []
        server = _server(stack.settings).with_option(NO_BANNER)
        script = self.script(stack.settings)
        server.run_script(script, stack.settings.stack_name, addresses, before)

    def updates(self, stack: Stack, stop: threading.Event) -> Iterator[Summary | Progress]:
        """Yield the summary once a second, and each partition's progress when Materialize reports
        it."""
        server, workload = _demo(stack.settings), find_workload(stack.settings.workload)
        with server.connect() as following, server.connect() as asking:
            changes = Changes()
            told = CopyOut(following, PROGRESS.format(progress=workload.progress))
            summary = Poll(asking, SUMMARY.format(summary=workload.summary), ASK_EVERY_S)
            while True:
                last_look = stop.is_set()
                for line in told.take():
                    yield from progress(changes.take(line), now_ms())
                for row in summary.take():
                    yield _summary(row, now_ms())
                if last_look:
                    return
                wait_for([told.socket, summary.socket])

    def seen(
        self, stack: Stack, traced: Sequence[TracedView], stop: threading.Event
    ) -> Iterator[Seen]:
        """Yield the rows of a SUBSCRIBE on each view when their time is complete: no reader sees
        them earlier."""
        return only_more(_marks_rows(stack.settings, traced, stop))

    def reader(self, access: Access) -> AbstractContextManager[Reader]:
        """Open a connection for queries."""
        server = replace(_server(access.settings), schema=access.namespace)
        return server.reader(self._made(access.settings))

    def _made(self, settings: Settings) -> list[str]:
        """Return the names of what the script makes."""
        text = self.script(settings).read_text()
        return re.findall(r"^CREATE (?:MATERIALIZED VIEW|VIEW|SOURCE) (\w+)", text, re.M)

    def unload(self, stack: Stack) -> None:
        """Drop the schema, if there is one."""
        if not _is_elsewhere(stack.settings):
            return
        drop = f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE"
        server = _server(stack.settings)
        try:
            server.execute(drop)
        except RacetrackError as error:
            raise RacetrackError(
                f"What the demo made could not be removed: {error}\nDo it by hand: {drop};"
            ) from error

    def remarks(self, stack: Stack) -> list[str]:
        """Elsewhere: where its objects are, and what an earlier run may have left there."""
        if not _is_elsewhere(stack.settings):
            return []
        server = _server(stack.settings)
        schemas = sorted(row[0] for row in server.execute(SCHEMAS))
        return [
            f"its objects are in the schema {SCHEMA} at {server}, and will be dropped",
            *(
                f"also there: {schema}, of a run that goes on, or was killed. If it was:"
                f" DROP SCHEMA {schema} CASCADE;"
                for schema in schemas
                if schema != SCHEMA
            ),
        ]

    def versions(self, stack: Stack) -> Mapping[str, str]:
        """Return the versions that Materialize reports."""
        ((version,),) = _demo(stack.settings).execute(VERSION)
        return {"materialize": str(version)}

    def caveats(self, settings: Settings) -> list[str]:
        """Report how this Materialize was run."""
        if not _is_elsewhere(settings):
            return [IMAGE]
        return (
            [ELSEWHERE]
            if MaterializeSettings.of(settings).mz_pid
            else [ELSEWHERE, NOT_KNOWN_TO_BE_HERE]
        )

    def usage_hints(self, stack: Stack) -> list[str]:
        """psql, and what to type there."""
        return [
            f"SQL: psql '{_server(stack.settings).conninfo}'",
            f"In it: \\set kafka '{_kafka(stack)}'",
            f"       \\set registry '{_registry(stack)}'",
            f"       \\i {self.script(stack.settings)}",
        ]


class Changes:
    """What a SUBSCRIBE tells, line by line: kept until Materialize says that a time is complete.

    A change of a row is a line that takes the old one away and one that brings the new one, in any
    order.
    """

    def __init__(self) -> None:
        self._pending: dict[int, list[tuple[int, ...]]] = {}

    def take(self, line: str) -> list[tuple[int, ...]]:
        """One line: mz_timestamp, progressed, diff, and the query's columns, with tabs between
        them. If it completes a time, the rows that came since, by their times."""
        at, progressed, diff, *columns = line.split("\t")
        if progressed == "t":
            complete = sorted(time_ms for time_ms in self._pending if time_ms < int(at))
            return [row for time_ms in complete for row in sorted(self._pending.pop(time_ms))]
        if int(diff) > 0:
            self._pending.setdefault(int(at), []).append(tuple(map(int, columns)))
        return []


def progress(rows: Sequence[tuple[int, ...]], now_ms: int) -> Iterator[Progress]:
    """Return the newest of each partition, from rows of PROGRESS."""
    newest = {partition: (total, newest_ms) for partition, total, newest_ms in rows}
    for partition, (total, newest_ms) in sorted(newest.items()):
        yield Progress(now_ms, partition, total, newest_ms)


class MarksRows:
    """The marks' rows of one view, as a SUBSCRIBE of the view itself tells of them."""

    def __init__(
        self, following: "psycopg.Connection[Any]", view: TracedView, keys: list[int]
    ) -> None:
        value = value_in_sql(view, view.column)
        query = f"SELECT {view.key}, {value} FROM {view.view}"  # noqa: S608  # the catalogue's
        rows = f"{query} WHERE {view.key} BETWEEN {keys[0]} AND {keys[-1]}"
        self._copy = CopyOut(following, f"COPY (SUBSCRIBE ({rows}) WITH (PROGRESS)) TO STDOUT")
        self._name, self._first = view.name, keys[0]
        self._changes = Changes()

    @property
    def socket(self) -> int:
        """Becomes readable when there is something to take."""
        return self._copy.socket

    def take(self) -> Iterator[Seen]:
        """Return what has changed."""
        for line in self._copy.take():
            for key, value in self._changes.take(line):
                yield Seen(now_ms(), self._name, key - self._first, value)


def _marks_rows(
    settings: Settings, traced: Sequence[TracedView], stop: threading.Event
) -> Iterator[Seen]:
    server = _demo(settings)
    with ExitStack() as closing:
        followed = [
            MarksRows(closing.enter_context(server.connect()), view, view.keys(settings))
            for view in traced
        ]
        while not stop.is_set():
            for rows in followed:
                yield from rows.take()
            wait_for([rows.socket for rows in followed])


def _summary(row: list[str | None], now_ms: int) -> Summary:
    total, _, dt_ms, max_received_at_ms = row
    if total is None or dt_ms is None or max_received_at_ms is None:
        raise RacetrackError(f"The summary holds a null: {row}")
    return Summary(now_ms, int(total), int(max_received_at_ms), float(dt_ms))


def _is_elsewhere(settings: Settings) -> bool:
    return bool(MaterializeSettings.of(settings).mz_url.get_secret_value())


def _server(settings: Settings) -> Server:
    """Return the address of Materialize, with the user that has all rights."""
    if url := MaterializeSettings.of(settings).mz_url.get_secret_value():
        return Server.at(url, "MZ_URL")
    where = f"{settings.reach_address}:{MaterializeSettings.of(settings).materialize_port}"
    return Server.at(f"postgres://materialize@{where}/materialize?sslmode=disable", "")


def _demo(settings: Settings) -> Server:
    """Return the server with the demo's schema as the search path."""
    return replace(_server(settings), schema=ENGINE.namespace(settings))


def _kafka(stack: Stack) -> str:
    return MaterializeSettings.of(stack.settings).mz_kafka or stack.internal_endpoints.kafka


def _registry(stack: Stack) -> str:
    return (
        MaterializeSettings.of(stack.settings).mz_schema_registry_url
        or stack.internal_endpoints.registry
    )


def _own_processes(settings: Settings) -> list[int]:
    """Return the pids in MZ_PID and their descendants, each once."""
    found: dict[int, None] = {}
    for pid in map(int, re.findall(r"\d+", MaterializeSettings.of(settings).mz_pid)):
        try:
            main = psutil.Process(pid)
            found |= dict.fromkeys([pid, *(child.pid for child in main.children(recursive=True))])
        except psutil.NoSuchProcess as gone:
            raise UsageError(f"MZ_PID: there is no process {pid} on this machine.") from gone
    return list(found)


ENGINE = Materialize()
