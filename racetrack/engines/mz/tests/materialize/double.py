"""The double as tests have it: a URL, and a hand on its sinks."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psycopg

from racetrack.engines.mz.tests.materialize import sink
from racetrack.engines.mz.tests.materialize.outside import FakeOutside, Outside
from racetrack.engines.mz.tests.materialize.statements import CATALOGUE, Statements
from racetrack.engines.mz.tests.materialize.wire import LOOK_EVERY_S, Session
from racetrack.engines.shared.tests.postgres import Postgres


@dataclass(frozen=True)
class Materialize:
    """A server at `url`. Its sinks do nothing by themselves."""

    url: str
    postgres: Postgres
    outside: Outside
    statements: Statements

    def stall_sinks(self, schema: str) -> None:
        """As with Apicurio now and then; `run_sinks` is how it ends."""
        with self._connected(schema) as connection:
            for each in self.statements.sinks.values():
                sink.stall(connection, each)

    def run_sinks(self, schema: str) -> None:
        """Let them write what their views hold now."""
        assert isinstance(self.outside, FakeOutside)
        with self._connected(schema) as connection:
            for each in self.statements.sinks.values():
                sources = self.statements.sources.values()
                sink.write(connection, each, self.outside, sources)

    def _connected(self, schema: str) -> "psycopg.Connection[Any]":
        connection = psycopg.connect(self.postgres.url, autocommit=True)
        connection.execute(f"SET search_path = {schema}, mz_catalog".encode())
        return connection


@contextmanager
def running_materialize(
    postgres: Postgres, outside: Outside | None = None
) -> Iterator[Materialize]:
    """In front of that PostgreSQL, until the block ends; one at a time."""
    postgres.rows(CATALOGUE)
    outside = outside or FakeOutside()
    statements = Statements(outside)
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as door, ExitStack() as threads:
        door.settimeout(LOOK_EVERY_S)

        def serve() -> None:
            while not stop.is_set():
                with suppress(TimeoutError):
                    client = door.accept()[0]
                    start(Session(client, postgres, statements, stop).run)

        def start(work: object) -> None:
            thread = threading.Thread(target=work)  # type: ignore[arg-type]
            thread.start()
            threads.callback(thread.join)

        start(serve)
        threads.callback(stop.set)
        port = door.getsockname()[1]
        url = postgres.url.replace(f":{postgres.port}/", f":{port}/")
        yield Materialize(url, postgres, outside, statements)
