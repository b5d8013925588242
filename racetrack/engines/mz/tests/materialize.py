"""A Materialize for tests: a proxy that adds Materialize's functions and SUBSCRIBE to a real
PostgreSQL, all observed on a real Materialize (26.9). Plain SQL passes unchanged."""

import re
import socket
import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import cast

import psycopg

from racetrack.clock import now_ms
from racetrack.engines.shared.tests.postgres import Postgres
from tests.fake_server import serve_in_background

LOOK_EVERY_S = 0.1
# A script with only the demo's two progress views and a traced view. A test fills the tables.
STAND_IN = """
\\echo :kafka :registry
CREATE TABLE profile_views_enriched (owner_id bigint, received_at timestamptz);
CREATE TABLE pageviews_progress (
    partition bigint PRIMARY KEY, total bigint, max_received_at bigint);
CREATE VIEW pageviews_summary AS
SELECT sum(total)::bigint AS total, max(max_received_at) AS max_received_at
FROM pageviews_progress
HAVING sum(total) > 0;
"""
NO_BANNER = b"--welcome_message=off"  # an option that PostgreSQL does not know
SUBSCRIBE = re.compile(r"COPY \(SUBSCRIBE \((.*)\)\s+WITH \(PROGRESS\)\) TO STDOUT", re.DOTALL)
# Materialize's functions that the engine uses; the text of `mz_now()` is a number.
CATALOGUE = """
DROP SCHEMA IF EXISTS mz_catalog CASCADE;
CREATE SCHEMA mz_catalog;
ALTER DATABASE materialize SET search_path = public, mz_catalog;
SET search_path = mz_catalog;
CREATE FUNCTION mz_now() RETURNS bigint LANGUAGE sql AS
    $$ SELECT (1000 * extract(epoch FROM clock_timestamp()))::bigint $$;
CREATE FUNCTION mz_version() RETURNS text LANGUAGE sql AS $$ SELECT 'v0 (of the tests)' $$;
"""


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, postgres: Postgres) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.postgres = postgres
        self.stop = threading.Event()


@contextmanager
def running_materialize(postgres: Postgres) -> Iterator[str]:
    """Run a Materialize in front of this PostgreSQL until the block ends; yield its URL. Only one
    can run at a time."""
    postgres.rows(CATALOGUE)
    with _Server(postgres) as server:
        serve_in_background(server)
        try:
            port = server.server_address[1]
            yield postgres.url.replace(f":{postgres.port}/", f":{port}/")
        finally:
            server.stop.set()
            server.shutdown()


class _Session(socketserver.StreamRequestHandler):
    """One client and its connection to PostgreSQL."""

    def handle(self) -> None:
        """Pass messages on until either side disconnects."""
        self._of = cast(_Server, self.server)
        self._schema = "public"
        with socket.create_connection(("127.0.0.1", self._of.postgres.port)) as self._upstream:
            with suppress(OSError, EOFError, psycopg.Error):
                known = self._body().replace(NO_BANNER, b"")
                self._upstream.sendall(struct.pack("!I", 4 + len(known)) + known)
                threading.Thread(target=self._pass_back, daemon=True).start()
                while not self._of.stop.is_set():
                    self._pass_on(self._read(1), self._body())
            with suppress(OSError):
                self._upstream.shutdown(socket.SHUT_RDWR)  # ends `_pass_back`

    def _pass_on(self, kind: bytes, body: bytes) -> None:
        if schema := re.search(rb"SET search_path = (\w+)", body):
            self._schema = schema[1].decode()
        if kind == b"Q":
            statement = body.decode().strip("\0\n ")
            if subscribe := SUBSCRIBE.match(statement):
                self._subscribe(subscribe[1])
                return
            body = re.sub(rb"^(SET search_path = \w+)", rb"\1, mz_catalog", body)
        self._upstream.sendall(kind + struct.pack("!I", 4 + len(body)) + body)

    def _pass_back(self) -> None:
        with suppress(OSError):
            while part := self._upstream.recv(1 << 16):
                self.request.sendall(part)

    def _subscribe(self, query: str) -> None:
        """Repeat a query, and send the changes of its result. Each line begins with mz_timestamp,
        mz_progressed and mz_diff."""
        before: set[tuple[int, ...]] = set()
        with psycopg.connect(self._of.postgres.url, autocommit=True) as connection:
            connection.execute(f"SET search_path = {self._schema}".encode())
            columns = 3 + len(connection.execute(query.encode()).description or ())
            self._send(b"H", struct.pack("!bH", 0, columns) + columns * struct.pack("!H", 0))
            while not self._of.stop.wait(LOOK_EVERY_S):
                now = set(connection.execute(query.encode()).fetchall())
                at_ms = now_ms()
                changes = [(-1, row) for row in before - now] + [(1, row) for row in now - before]
                lines = [(at_ms, "f", diff, *row) for diff, row in changes]
                for line in [*lines, (at_ms + 1, "t", *(columns - 2) * ["\\N"])]:
                    self._send(b"d", "\t".join(map(str, line)) + "\n")
                before = now

    def _body(self) -> bytes:
        (length,) = struct.unpack("!I", self._read(4))
        return self._read(length - 4)

    def _read(self, count: int) -> bytes:
        if len(found := self.rfile.read(count)) < count:
            raise EOFError
        return found

    def _send(self, kind: bytes, body: bytes | str) -> None:
        content = body.encode() if isinstance(body, str) else body
        self.request.sendall(kind + struct.pack("!I", 4 + len(content)) + content)
