"""Materialize: runs the demo in psql, follows progress with SUBSCRIBE, and queries the summary.

Materialize runs in the stack, or outside it, at the address MZ_URL ("elsewhere" in this module).
Elsewhere, the demo's objects are created in a schema of their own, which is dropped at the end of
the run. SQL that is specific to Materialize is only here and in scripts such as `scripts/demo.sql`.
"""

import re
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import TypeVar
from urllib.parse import urlsplit

import psutil

from racetrack.clock import now_ms
from racetrack.config import Settings
from racetrack.engines.contract import Progress, Seen, Summary
from racetrack.engines.mz.elsewhere import ELSEWHERE
from racetrack.engines.mz.settings import MaterializeSettings
from racetrack.engines.shared.pgwire import Server
from racetrack.engines.shared.sql_engine import SqlEngine
from racetrack.engines.shared.tracer import only_more, tracer_rows_in_sql
from racetrack.errors import RacetrackError, SetupError, UsageError
from racetrack.results.classes import Classes
from racetrack.stack.contract import Stack
from racetrack.workloads.contract import TracedView, find_workload

Item = TypeVar("Item")

SERVICE = "materialized"
ASK_EVERY_S = 1.0
LOOK_EVERY_S = 0.05

# The query of the experiment of 2022, with times in milliseconds instead of seconds. The answer is
# consistent as of mz_now(). `dt_ms` does not include the time that the query takes, but the time at
# which the answer arrives does.
SUMMARY = """
SELECT total, to_timestamp(max_received_at::double precision / 1000) AS max_received_at,
    mz_now()::text::numeric - max_received_at AS dt_ms, max_received_at AS max_received_at_ms
FROM {summary}"""
PROGRESS = """
COPY (SUBSCRIBE (SELECT partition, total, max_received_at FROM {progress})
    WITH (PROGRESS)) TO STDOUT"""
VERSION = "SELECT mz_version()"
# Without this option, psql would print Materialize's banner before the error of a failed statement.
NO_BANNER = "--welcome_message=off"

IMAGE = (
    "Materialize ran in its container image, whose documentation states: “Not indicative of true"
    " Materialize performance. Services are bundled in a single container.” To measure another"
    " Materialize, set MZ_URL."
)
NOT_KNOWN_TO_BE_HERE = (
    "Materialize may have run on another machine, since MZ_PID contains no processes. Then its"
    " results came over a network and from other cores."
)


class Materialize(SqlEngine):
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
    stamped_by = SERVICE  # `dt_ms` is computed from Materialize's clock
    elsewhere = ELSEWHERE
    makes = "MATERIALIZED VIEW|VIEW|SOURCE"

    def server_here(self, settings: Settings) -> Server:
        """Return the address of Materialize in the stack, with a user that has all rights."""
        where = f"{settings.reach_address}:{MaterializeSettings.of(settings).materialize_port}"
        return Server.at(f"postgres://materialize@{where}/materialize?sslmode=disable", "")

    def check(self, stack: Stack) -> None:
        """Check that psql is installed, and that Materialize can be started."""
        settings = MaterializeSettings.of(stack.settings)
        if shutil.which("psql") is None:
            raise SetupError("psql is not installed. On Debian: apt-get install postgresql-client.")
        if not self.runs_elsewhere(settings):
            if settings.mz_pid:
                raise UsageError("MZ_PID is for a Materialize that runs elsewhere: set MZ_URL too.")
            if stack.runtime == "native" or settings.airgap:
                raise UsageError(
                    "Materialize is not available as packages, so it can't run natively or in an"
                    " image built here. Use its own image (RUNTIME=compose, with a Docker engine"
                    " that can pull images), or a running Materialize:"
                    " MZ_URL=postgres://user@host:port/database."
                )
            return
        _own_processes(settings)
        registry = urlsplit(_registry(stack))
        if registry.scheme not in {"http", "https"} or registry.path.strip("/"):
            raise UsageError(
                f"MZ_SCHEMA_REGISTRY_URL: {_registry(stack)} can't be used. Materialize requires a"
                " URL without a path, such as http://host:8081."
            )

    def processes(self, stack: Stack) -> Mapping[str, list[int]]:
        """Return the processes of Materialize. Elsewhere, these are the processes in MZ_PID and
        their descendants."""
        if not self.runs_elsewhere(stack.settings):
            return super().processes(stack)
        own = _own_processes(stack.settings)
        return {SERVICE: own} if own else {}

    def load_demo(self, stack: Stack) -> None:
        """Run the script in psql; if Materialize runs elsewhere, in a new schema."""
        server = self.server(stack.settings).with_option(NO_BANNER)
        addresses = {"kafka": _kafka(stack), "registry": _registry(stack)}
        self.run_script(server, stack.settings, addresses)

    def updates(self, stack: Stack, stop: threading.Event) -> Iterator[Summary | Progress]:
        """Return an iterator over updates: of the summary, which is queried once a second, and of
        each partition's progress, whenever Materialize reports a change."""
        server, settings = self.demo(stack.settings), stack.settings
        clock = stack.clocks.get(SERVICE)
        ahead_ms = clock.offset_ms if clock else 0.0
        return merge(
            [
                partial(_progress, server, settings),
                partial(_summaries, server, settings, ahead_ms),
            ],
            stop,
        )

    def seen(
        self, stack: Stack, traced: Sequence[TracedView], stop: threading.Event
    ) -> Iterator[Seen]:
        """Return an iterator over the tracer rows, from a SUBSCRIBE to each view. A row is returned
        as soon as Materialize reports that its timestamp is complete; readers can't see it earlier.
        """
        server = self.demo(stack.settings)
        sources = [
            partial(_tracer_rows, server, view, view.keys(stack.settings)) for view in traced
        ]
        return only_more(merge(sources, stop))

    def versions(self, stack: Stack) -> Mapping[str, str]:
        """Return the versions that Materialize reports."""
        ((version,),) = self.demo(stack.settings).execute(VERSION)
        return {"materialize": str(version)}

    def classes(self, settings: Settings) -> Classes:  # noqa: ARG002
        """Return the classes; what survives a kill was never tried."""
        return Classes(
            results="served",
            work="as events arrive",
            views="declarative",
            changes="follows changes",
        )

    def caveats(self, settings: Settings) -> list[str]:
        """Return warnings about how this Materialize was run."""
        if not self.runs_elsewhere(settings):
            return [IMAGE]
        return [] if MaterializeSettings.of(settings).mz_pid else [NOT_KNOWN_TO_BE_HERE]

    def usage_hints(self, stack: Stack) -> list[str]:
        """Return the command of psql, and what to type there."""
        return [
            f"SQL: psql '{self.server(stack.settings).conninfo}'",
            f"In it: \\set kafka '{_kafka(stack)}'",
            f"       \\set registry '{_registry(stack)}'",
            f"       \\i {self.script(stack.settings)}",
        ]


class Changes:
    """Parser of the lines of a SUBSCRIBE. Rows are kept until Materialize reports that their
    timestamp is complete.

    A changed row arrives as two lines, in any order: one removes the old row, one adds the new row.
    Only added rows are used.
    """

    def __init__(self) -> None:
        self._pending: dict[int, list[tuple[int, ...]]] = {}

    def take(self, line: Sequence[str | None]) -> list[tuple[int, ...]]:
        """Parse a line: mz_timestamp, mz_progressed, mz_diff, and the query's columns. If it
        completes a timestamp, return the rows added up to then, in the order of time."""
        at, progressed, diff, *columns = (value or "" for value in line)
        if progressed == "t":
            complete = sorted(time_ms for time_ms in self._pending if time_ms < int(at))
            return [row for time_ms in complete for row in sorted(self._pending.pop(time_ms))]
        if int(diff) > 0:
            self._pending.setdefault(int(at), []).append(tuple(map(int, columns)))
        return []


def progress(rows: Sequence[tuple[int, ...]], now_ms: int) -> Iterator[Progress]:
    """Yield the newest progress of each partition, from rows of the query PROGRESS."""
    newest = {partition: (total, newest_ms) for partition, total, newest_ms in rows}
    for partition, (total, newest_ms) in sorted(newest.items()):
        yield Progress(now_ms, partition, total, newest_ms)


def _progress(
    server: Server, settings: Settings, stop: threading.Event
) -> Iterator[Summary | Progress]:
    changes = Changes()
    query = PROGRESS.format(progress=find_workload(settings.workload).progress)
    for row in server.copy(query, stop):
        yield from progress(changes.take(row), now_ms())


def _summaries(
    server: Server, settings: Settings, ahead_ms: float, stop: threading.Event
) -> Iterator[Summary | Progress]:
    query = SUMMARY.format(summary=find_workload(settings.workload).summary)
    for row in server.poll(query, ASK_EVERY_S, stop):
        total, _, dt_ms, max_received_at_ms = row
        if None in {total, dt_ms, max_received_at_ms}:
            raise RacetrackError(f"The summary contains a null: {row}")
        yield Summary(now_ms(), int(total), int(max_received_at_ms), float(dt_ms) - ahead_ms)


def _tracer_rows(
    server: Server, view: TracedView, keys: Sequence[int | str], stop: threading.Event
) -> Iterator[Seen]:
    rows = tracer_rows_in_sql(view, keys)
    changes = Changes()
    for row in server.copy(f"COPY (SUBSCRIBE ({rows}) WITH (PROGRESS)) TO STDOUT", stop):
        for partition, seen in changes.take(row):
            yield Seen(now_ms(), view.name, partition, seen)


def merge(
    sources: Iterable[Callable[[threading.Event], Iterator[Item]]], stop: threading.Event
) -> Iterator[Item]:
    """Yield the items of blocking iterators as they arrive, until `stop` is set. Each iterator runs
    in a thread, and receives an event that is set at the end."""
    arrived: SimpleQueue[Item | Exception] = SimpleQueue()
    ending = threading.Event()

    def read(source: Callable[[threading.Event], Iterator[Item]]) -> None:
        try:
            for item in source(ending):
                arrived.put(item)
        except Exception as error:  # noqa: BLE001  # raised below
            arrived.put(error)

    def take(within_s: float) -> Item:
        item = arrived.get(timeout=within_s)
        if isinstance(item, Exception):
            raise item
        return item

    for source in sources:
        threading.Thread(target=read, args=[source], daemon=True).start()
    try:
        while not stop.is_set():
            with suppress(Empty):
                yield take(LOOK_EVERY_S)
        while not arrived.empty():
            yield take(0)
    finally:
        ending.set()


def _kafka(stack: Stack) -> str:
    return MaterializeSettings.of(stack.settings).mz_kafka or str(stack.internal_endpoints.kafka)


def _registry(stack: Stack) -> str:
    return (
        MaterializeSettings.of(stack.settings).mz_schema_registry_url
        or stack.internal_endpoints.registry
    )


def _own_processes(settings: Settings) -> list[int]:
    """Return the process ids in MZ_PID, and of their descendants, without duplicates."""
    pids: dict[int, None] = {}
    for pid in map(int, re.findall(r"\d+", MaterializeSettings.of(settings).mz_pid)):
        try:
            main = psutil.Process(pid)
            pids |= dict.fromkeys([pid, *(child.pid for child in main.children(recursive=True))])
        except psutil.NoSuchProcess as gone:
            raise UsageError(f"MZ_PID: there is no process {pid} on this machine.") from gone
    return list(pids)


ENGINE = Materialize()
