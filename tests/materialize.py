"""What Materialize has and PostgreSQL has not, for tests: mz_now(), mz_version(), and SUBSCRIBE.

`STAND_IN` makes the demo's two progress views as tables. `subscribing` stands between a client and
PostgreSQL, and answers `COPY (SUBSCRIBE …) TO STDOUT` itself: from what is in pageviews_progress,
with the lines that a real Materialize was seen to send. All else goes through untouched.
"""

import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import psycopg

from tests.postgres import Postgres

LOOK_EVERY_S = 0.1
COLUMNS = 6  # mz_timestamp, mz_progressed, mz_diff, and those of the query

STAND_IN = """
\\echo :kafka :registry
CREATE FUNCTION mz_now() RETURNS bigint LANGUAGE sql AS
    $$ SELECT (1000 * extract(epoch FROM clock_timestamp()))::bigint $$;
CREATE FUNCTION mz_version() RETURNS text LANGUAGE sql AS $$ SELECT 'v0 (of the tests)' $$;
CREATE TABLE pageviews_progress (
    partition bigint PRIMARY KEY, total bigint, max_received_at bigint);
CREATE VIEW pageviews_summary AS
SELECT sum(total)::bigint AS total, max(max_received_at) AS max_received_at
FROM pageviews_progress
HAVING sum(total) > 0;
"""


@contextmanager
def subscribing(postgres: Postgres) -> Iterator[str]:
    """The URL of a PostgreSQL that knows SUBSCRIBE."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as door, ExitStack() as threads:
        door.settimeout(LOOK_EVERY_S)

        def serve() -> None:
            while not stop.is_set():
                with suppress(TimeoutError):
                    client = door.accept()[0]
                    start(_Session(client, postgres, stop).run)

        def start(work: object) -> None:
            thread = threading.Thread(target=work)  # type: ignore[arg-type]
            thread.start()
            threads.callback(thread.join)

        start(serve)
        threads.callback(stop.set)
        port = door.getsockname()[1]
        yield postgres.url.replace(f":{postgres.port}/", f":{port}/")


class _Session:
    """One client and its connection to PostgreSQL."""

    def __init__(self, client: socket.socket, postgres: Postgres, stop: threading.Event) -> None:
        self._client, self._postgres, self._stop = client, postgres, stop
        self._server = socket.create_connection(("127.0.0.1", postgres.port))
        self._schema = "public"

    def run(self) -> None:
        """Until either side leaves, the demo's schema is dropped, or the tests end."""
        back = threading.Thread(target=self._pass_back)
        back.start()
        with self._client, self._server:
            with suppress(OSError, EOFError, psycopg.Error):
                self._pass_on()
            with suppress(OSError):  # it may have gone first
                self._server.shutdown(socket.SHUT_RDWR)  # which ends what waits for it
            back.join()

    def _pass_on(self) -> None:
        (length,) = struct.unpack("!I", self._read(4))
        self._server.sendall(struct.pack("!I", length) + self._read(length - 4))
        while True:
            kind, (length,) = self._read(1), struct.unpack("!I", self._read(4))
            body = self._read(length - 4)
            if schema := re.search(rb"SET search_path = (\w+)", body):
                self._schema = schema[1].decode()
            if kind == b"Q" and body.split()[:2] == [b"COPY", b"(SUBSCRIBE"]:
                self._subscribe()
            else:
                self._server.sendall(kind + struct.pack("!I", length) + body)

    def _read(self, count: int) -> bytes:
        self._client.settimeout(LOOK_EVERY_S)
        found = b""
        while len(found) < count:
            try:
                part = self._client.recv(count - len(found))
            except TimeoutError:
                if self._stop.is_set():
                    raise EOFError from None
                continue
            if not part:
                raise EOFError
            found += part
        return found

    def _pass_back(self) -> None:
        with suppress(OSError):
            while part := self._server.recv(65536):
                self._client.sendall(part)

    def _subscribe(self) -> None:
        formats = struct.pack("!bH", 0, COLUMNS) + COLUMNS * struct.pack("!H", 0)
        self._send(b"H", formats)
        before: set[tuple[int, ...]] = set()
        table = f"{self._schema}.pageviews_progress"
        query = f"SELECT partition, total, max_received_at FROM {table}"  # noqa: S608
        with psycopg.connect(self._postgres.url, autocommit=True) as connection:
            while not self._stop.is_set():
                now = set(connection.execute(query.encode()).fetchall())
                at_ms = time.time_ns() // 1_000_000
                changes = [(-1, row) for row in before - now] + [(1, row) for row in now - before]
                for diff, row in changes:
                    self._line(at_ms, "f", diff, *row)
                self._line(at_ms + 1, "t", *(COLUMNS - 2) * ["\\N"])
                before = now
                self._stop.wait(LOOK_EVERY_S)

    def _line(self, *values: object) -> None:
        self._send(b"d", "\t".join(map(str, values)).encode() + b"\n")

    def _send(self, kind: bytes, body: bytes) -> None:
        self._client.sendall(kind + struct.pack("!I", 4 + len(body)) + body)
