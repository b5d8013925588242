"""View reader: a process that queries an engine's views on a schedule, as a user's client would.

    python -m racetrack.probes.reader < job

The process reads one line of JSON (`Job`) from standard input, writes a line of CSV (`COLUMNS`) to
standard output for each answer, and exits when standard input is closed. Each further line of input
is a new rate, in reads per second; 0 pauses.
"""

import csv
import dataclasses
import json
import select
import sys
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import cycle, repeat
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from racetrack import environment, poisson
from racetrack.clock import now_ms
from racetrack.config import load, revealed
from racetrack.engines import find_engine
from racetrack.engines.contract import Access, Engine, NoSuchView, Reader
from racetrack.errors import RacetrackError
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.mysql_endpoint import MysqlEndpoint
from racetrack.stack.contract import Endpoints
from racetrack.workloads.contract import Query, workload_in

if TYPE_CHECKING:
    import pyarrow

# Epoch milliseconds at which the query was due, sent and answered; the query's name; the number of
# rows; the tracer value of each partition (see `engines.contract.Seen`), joined by SEPARATOR; the
# error, if any.
COLUMNS = ("due_ms", "sent_ms", "answered_ms", "query", "rows", "tracer_values", "error")
SEPARATOR = ";"


@dataclass(frozen=True)
class Job:
    """The engine to query, its addresses, and the rate, as values that JSON can represent."""

    engine: str
    per_s: float
    settings: Mapping[str, str]
    endpoints: Mapping[str, Any]
    namespace: str

    @classmethod
    def of(cls, engine: Engine, access: Access, per_s: float) -> "Job":
        """Return the job of reading this engine's views `per_s` times a second."""
        settings = access.settings
        return cls(
            engine=engine.name,
            per_s=per_s,
            settings=revealed(settings),
            endpoints=dataclasses.asdict(access.endpoints),
            namespace=access.namespace,
        )

    def as_line(self) -> bytes:
        """Return the job as the line of JSON that the reader expects on standard input."""
        return f"{json.dumps(dataclasses.asdict(self))}\n".encode()

    @property
    def access(self) -> Access:
        """Access to the engine for the workload's queries; see `racetrack.engines.contract`."""
        settings = load(self.settings)
        return Access(
            settings=settings,
            endpoints=Endpoints(
                **{
                    **self.endpoints,
                    "kafka": KafkaEndpoint(**self.endpoints["kafka"]),
                    "mysql": MysqlEndpoint(**self.endpoints["mysql"]),
                }
            ),
            namespace=self.namespace,
            queries=workload_in(settings).queries,
        )


class Client:
    """A client of the engine that reconnects after a failure."""

    def __init__(self, engine: Engine, access: Access) -> None:
        self._engine, self._access = engine, access
        self._closing = ExitStack()
        self._reader: Reader | None = None

    def ask(self, query: Query) -> "pyarrow.Table":
        """Return the rows that answer a query.

        Raises:
            NoSuchView: the engine does not have the query's view.
            RacetrackError: the engine does not answer now.
        """
        try:
            if not self._reader:
                self._reader = self._closing.enter_context(self._engine.reader(self._access))
            by = query.by
            keys = by.keys(self._access.settings) if by else []
            return self._reader.rows(query.view, by.key if by else "", keys)
        except NoSuchView:
            raise
        except RacetrackError:
            # The query's error is raised below; an error while closing the connection adds nothing.
            with suppress(RacetrackError):
                self.close()
            raise

    def close(self) -> None:
        """Close the connection, if there is one."""
        self._reader = None
        self._closing.close()


def answerable(client: Client, queries: Sequence[Query]) -> list[Query]:
    """Return the queries that the engine can answer. Each query is tried once, which also opens the
    connection before the first scheduled query.

    Raises:
        RacetrackError: the engine does not answer, or can answer none of the queries.
    """
    readable = []
    for query in queries:
        try:
            client.ask(query)
        except NoSuchView:
            continue
        readable.append(query)
    if not readable:
        raise RacetrackError(f"It can answer none of {', '.join(query.name for query in queries)}.")
    return readable


def due_times(per_s: float, rates: BinaryIO) -> Iterator[int]:
    """Yield the scheduled times of queries, in epoch milliseconds. Wait for each; yield a time that
    has already passed at once. Each line of `rates`, an unbuffered file, begins a new schedule. The
    end of the file ends the schedule."""
    while line := (yield from _until_new_rate(per_s, rates)):
        per_s = float(line)


def _until_new_rate(per_s: float, rates: BinaryIO) -> Generator[int, None, bytes]:
    """Yield the times of one schedule; return the line that ends it."""
    began_s, began_ms = time.monotonic(), now_ms()
    for since_s in poisson.due_s(per_s) if per_s else repeat(None):
        left_s = None if since_s is None else max(0.0, began_s + since_s - time.monotonic())
        if select.select([rates], [], [], left_s)[0]:
            break
        if since_s is not None:
            yield began_ms + round(1000 * since_s)
    return rates.readline()


def run(job: Job, rates: BinaryIO) -> None:
    """Run the queries and write a row for each answer. `rates` is described in `due_times`.

    Raises:
        RacetrackError: the engine did not answer the first queries.
    """
    access = job.access
    client = Client(find_engine(job.engine), access)
    output = csv.writer(sys.stdout, lineterminator="\n")
    try:
        queries = answerable(client, access.queries)
        output.writerow(COLUMNS)
        sys.stdout.flush()  # the harness waits for this line
        for due_ms, query in zip(due_times(job.per_s, rates), cycle(queries), strict=False):
            sent_ms = now_ms()
            try:
                table, error = client.ask(query), ""
            except RacetrackError as failure:
                table, error = None, " ".join(str(failure).split())
            answered_ms = now_ms()
            rows, values = "", ""
            if table is not None:
                rows = str(table.num_rows)
                if by := query.by:
                    values = SEPARATOR.join(map(str, by.values_in(table, by.keys(access.settings))))
            output.writerow((due_ms, sent_ms, answered_ms, query.name, rows, values, error))
            sys.stdout.flush()
    finally:
        client.close()


if __name__ == "__main__":
    environment.settle()
    # Unbuffered, since `select` does not see lines that Python has read ahead.
    lines = cast(BinaryIO, open(0, "rb", buffering=0))  # noqa: SIM115  # no path
    try:
        run(Job(**json.loads(lines.readline())), lines)
    except RacetrackError as error:
        raise SystemExit(str(error)) from None
