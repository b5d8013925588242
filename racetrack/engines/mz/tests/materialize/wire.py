"""Between a client and PostgreSQL: Materialize's banner, its statements, and SUBSCRIBE.

`COPY (SUBSCRIBE (…) WITH (PROGRESS)) TO STDOUT` is answered here, from what its query gives again
and again, with the lines that a real Materialize was seen to send. Plain SQL goes through
untouched.
"""

import re
import socket
import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psycopg

from racetrack.clock import now_ms
from racetrack.engines.mz.tests.materialize.statements import (
    CATALOGUE,
    Outside,
    Refused,
    Statements,
    made_up,
)
from racetrack.engines.shared.tests.postgres import Postgres
from tests.fake_server import serve_in_background

LOOK_EVERY_S = 0.1
SUBSCRIBE = re.compile(r"COPY \(SUBSCRIBE \((.*)\)\s+WITH \(PROGRESS\)\) TO STDOUT", re.DOTALL)
OWN_COLUMNS = 3  # mz_timestamp, mz_progressed, mz_diff

# Sent as a notice to each client that does not decline it.
WELCOME = "connected to Materialize v0 (of the tests)\n  Need help? Not here."
DECLINED = b"--welcome_message=off"


@dataclass(frozen=True)
class Materialize:
    """A server at `url`."""

    url: str
    postgres: Postgres
    statements: Statements


@contextmanager
def running_materialize(
    postgres: Postgres, outside: Outside | None = None
) -> Iterator[Materialize]:
    """In front of that PostgreSQL, until the block ends; one at a time."""
    postgres.rows(CATALOGUE)
    statements = Statements(outside or made_up())
    stop = threading.Event()

    class Serving(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            Session(self.request, postgres, statements, stop).run()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Serving) as server:
        serve_in_background(server)
        url = postgres.url.replace(f":{postgres.port}/", f":{server.server_address[1]}/")
        try:
            yield Materialize(url, postgres, statements)
        finally:
            stop.set()
            server.shutdown()


class Session:
    """One client and its connection to PostgreSQL."""

    def __init__(
        self,
        client: socket.socket,
        postgres: Postgres,
        statements: Statements,
        stop: threading.Event,
    ) -> None:
        self._client, self._postgres, self._stop = client, postgres, stop
        self._statements = statements
        self._server = socket.create_connection(("127.0.0.1", postgres.port))
        self._schema = "public"

    def run(self) -> None:
        """Until either side leaves, the demo's schema is dropped, or the tests end."""
        back = threading.Thread(target=self._pass_back)
        with self._client, self._server:
            with suppress(OSError, EOFError, psycopg.Error):
                self._welcome = self._begin()
                back.start()
                self._pass_on()
            with suppress(OSError):  # it may have gone first
                self._server.shutdown(socket.SHUT_RDWR)  # which ends what waits for it
            if back.ident:
                back.join()

    def _begin(self) -> bool:
        """Pass on the client's start-up options, without those that PostgreSQL lacks.
        Whether it wants to be welcomed."""
        (length,) = struct.unpack("!I", self._read(4))
        wishes = self._read(length - 4)
        known = wishes.replace(DECLINED, b"")
        self._server.sendall(struct.pack("!I", 4 + len(known)) + known)
        return known == wishes

    def _pass_on(self) -> None:
        while True:
            kind, (length,) = self._read(1), struct.unpack("!I", self._read(4))
            body = self._read(length - 4)
            if schema := re.search(rb"SET search_path = (\w+)", body):
                self._schema = schema[1].decode()
            subscribe = SUBSCRIBE.match(body.decode().strip("\0\n ")) if kind == b"Q" else None
            if subscribe:
                self._subscribe(subscribe[1])
            else:
                if kind == b"Q":
                    self._greet()
                    body = self._translated(body)
                self._server.sendall(kind + struct.pack("!I", 4 + len(body)) + body)

    def _greet(self) -> None:
        """Send the banner before the first answer."""
        if self._welcome:
            self._welcome = False
            fields = {"S": "NOTICE", "V": "NOTICE", "C": "00000", "M": WELCOME}
            notice = "".join(f"{code}{text}\0" for code, text in fields.items())
            self._send(b"N", notice.encode() + b"\0")

    def _translated(self, body: bytes) -> bytes:
        """What PostgreSQL is to do; a refusal is left to it too, so that it is one in every way."""
        try:
            return self._statements.translated(body.rstrip(b"\0").decode()).encode() + b"\0"
        except Refused as refusal:
            reason = str(refusal).replace("'", "''")
            return f"DO $$ BEGIN RAISE EXCEPTION '{reason}'; END $$".encode() + b"\0"

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
        with suppress(OSError), self._server.makefile("rb") as answers:
            while part := answers.read1():
                self._client.sendall(part)

    def _subscribe(self, query: str) -> None:
        before: set[tuple[int, ...]] = set()
        with psycopg.connect(self._postgres.url, autocommit=True) as connection:
            connection.execute(f"SET search_path = {self._schema}".encode())
            asked = connection.execute(query.encode()).description or ()
            columns = OWN_COLUMNS + len(asked)
            self._send(b"H", struct.pack("!bH", 0, columns) + columns * struct.pack("!H", 0))
            while not self._stop.is_set():
                now = set(connection.execute(query.encode()).fetchall())
                at_ms = now_ms()
                changes = [(-1, row) for row in before - now] + [(1, row) for row in now - before]
                for diff, row in changes:
                    self._line(at_ms, "f", diff, *row)
                self._line(at_ms + 1, "t", *(columns - 2) * ["\\N"])
                before = now
                self._stop.wait(LOOK_EVERY_S)

    def _line(self, *values: object) -> None:
        self._send(b"d", "\t".join(map(str, values)).encode() + b"\n")

    def _send(self, kind: bytes, body: bytes) -> None:
        self._client.sendall(kind + struct.pack("!I", 4 + len(body)) + body)
