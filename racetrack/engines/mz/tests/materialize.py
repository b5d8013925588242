"""A Materialize for tests: a proxy that adds Materialize's extensions to a real PostgreSQL.

It adds the banner, Materialize's own statements, and SUBSCRIBE, all observed on a real Materialize
(26.9); plain SQL passes unchanged. Objects become tables or views, so that PostgreSQL knows names
and columns, and drops them with their schema. A test may fill a source; sinks write nothing.
"""

import json
import re
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, cast

import httpx
import psycopg
from confluent_kafka.admin import AdminClient

from racetrack.clock import now_ms
from racetrack.engines.shared.tests.postgres import Postgres
from tests.fake_server import serve_in_background

ANSWER_WITHIN_S = 10.0
LOOK_EVERY_S = 0.1
# A script with only the demo's two progress views. A test fills the table.
STAND_IN = """
\\echo :kafka :registry
CREATE TABLE pageviews_progress (
    partition bigint PRIMARY KEY, total bigint, max_received_at bigint);
CREATE VIEW pageviews_summary AS
SELECT sum(total)::bigint AS total, max(max_received_at) AS max_received_at
FROM pageviews_progress
HAVING sum(total) > 0;
"""
# Sent as a notice to each client that does not decline it.
WELCOME = "connected to Materialize v0 (of the tests)\n  Need help? Not here."
DECLINED = b"--welcome_message=off"
SUBSCRIBE = re.compile(r"COPY \(SUBSCRIBE \((.*)\)\s+WITH \(PROGRESS\)\) TO STDOUT", re.DOTALL)
INCLUDED = r"(?:PARTITION|OFFSET|KEY) AS \w+"
AVRO = (
    r"AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION (?P<registry>\w+)"
    r"(?: SEED KEY SCHEMA '(?P<key>[^']*)' VALUE SCHEMA '(?P<value>[^']*)')?"
)
SOURCE = (
    r"CREATE SOURCE (?P<name>\w+) FROM KAFKA CONNECTION (?P<kafka>\w+) \(TOPIC '(?P<topic>[^']*)'\)"
    rf" FORMAT (?P<format>JSON|BYTES|{AVRO})(?: INCLUDE (?P<include>{INCLUDED}(?:, {INCLUDED})*))?"
    r"(?: ENVELOPE (?P<envelope>DEBEZIUM|UPSERT))?"
)
# Forms of Materialize's statements, and the statements for PostgreSQL that replace them. PostgreSQL
# computes a view when it is read, so none needs to be kept up to date.
OTHER_FORMS = {
    r"CREATE CONNECTION (\w+) TO .*": r"CREATE TABLE \1 ()",
    r"CREATE MATERIALIZED VIEW (.*)": r"CREATE VIEW \1",
    r"CREATE INDEX (\w+) ON (\w+) \((\w+)\)": r"CREATE VIEW \1 AS SELECT \3 FROM \2",
    r"SET search_path = (\w+)": r"SET search_path = \1, mz_catalog",
    (
        r"CREATE SINK (\w+) FROM (\w+) INTO KAFKA CONNECTION (\w+) \(TOPIC '[^']*'\) KEY \(\w+\)"
        r" NOT ENFORCED FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION (\w+)"
        r" ENVELOPE UPSERT"
    ): r"CREATE TABLE \1 (LIKE \3, LIKE \4); CREATE VIEW \1_reads AS SELECT FROM \2",
}
# Materialize's `mz_now()`: it can be compared to timestamps, and its text is a number.
CATALOGUE = """
DROP SCHEMA IF EXISTS mz_catalog CASCADE;
CREATE SCHEMA mz_catalog;
ALTER DATABASE materialize SET search_path = public, mz_catalog;
SET search_path = mz_catalog;
CREATE FUNCTION mz_now() RETURNS bigint LANGUAGE sql AS
    $$ SELECT (1000 * extract(epoch FROM clock_timestamp()))::bigint $$;
CREATE FUNCTION is_before(bigint, timestamptz) RETURNS boolean LANGUAGE sql AS
    $$ SELECT $1 < 1000 * extract(epoch FROM $2) $$;
CREATE OPERATOR < (LEFTARG = bigint, RIGHTARG = timestamptz, FUNCTION = is_before);
CREATE FUNCTION mz_version() RETURNS text LANGUAGE sql AS $$ SELECT 'v0 (of the tests)' $$;
"""
TYPES = {"long": "bigint", "int": "integer", "string": "text", "double": "double precision"}
# Columns of the shop's tables that the demo reads.
SHOP = {
    "mysql.shop.users": "id bigint, email text",
    "mysql.shop.items": "id bigint, name text, category text",
    "mysql.shop.purchases": (
        "id bigint, user_id bigint, item_id bigint, quantity bigint, purchase_price numeric"
    ),
}


class Refused(Exception):
    """The error that Materialize would report when it refuses a statement."""


@dataclass(frozen=True)
class Outside:
    """The broker and the registry, which Materialize uses when it creates a source."""

    has_topic: Callable[[str], bool]
    columns: Callable[[str], str | None]  # of a table's topic; None if it has no schemas


def fake_outside() -> Outside:
    """Return a broker and a registry with the usual topics."""
    return Outside({"pageviews", "dd_flagged_profiles", *SHOP}.__contains__, SHOP.get)


def running(kafka: str, registry: str) -> Outside:
    """Return the broker and the registry of a running stack."""

    def has_topic(topic: str) -> bool:
        admin = AdminClient({"bootstrap.servers": kafka})
        return topic in admin.list_topics(timeout=ANSWER_WITHIN_S).topics

    def columns(topic: str) -> str | None:
        urls = [f"{registry}/subjects/{topic}-{of}/versions/latest" for of in ("key", "value")]
        answers = [httpx.get(url, timeout=ANSWER_WITHIN_S) for url in urls]
        if any(answer.status_code == 404 for answer in answers):
            return None
        fields = json.loads(answers[1].json()["schema"])["fields"]
        (before,) = (each for each in fields if each["name"] == "before")
        return _columns(next(kind for kind in before["type"] if kind != "null"))

    return Outside(has_topic, columns)


@dataclass(frozen=True)
class Statements:
    """Translates statements."""

    outside: Outside

    def translate(self, statement: str) -> str:
        """Return the statement that PostgreSQL gets in place of this one. If Materialize would
        refuse this one, the replacement raises the same error."""
        plain = " ".join(re.sub(r"--.*", "", statement).rstrip("; \n").split())
        try:
            if found := re.fullmatch(SOURCE, plain):
                return self._source(found)
            for form, other in OTHER_FORMS.items():
                if found := re.fullmatch(form, plain):
                    return found.expand(other)
            if re.match(r"CREATE (SOURCE|SINK)\b", plain):
                raise Refused(f"the tests know no such form: {plain}")
        except Refused as refusal:
            reason = str(refusal).replace("'", "''")
            return f"DO $$ BEGIN RAISE EXCEPTION '{reason}'; END $$"
        return statement

    def _source(self, found: re.Match[str]) -> str:
        name, topic = found["name"], found["topic"]
        # Materialize asks the broker at once: the topic must exist already.
        if not self.outside.has_topic(topic):
            raise Refused("Topic does not exist")
        connections = [of for of in (found["kafka"], found["registry"]) if of]
        columns = [f"LIKE {of}" for of in connections]  # fails if one does not exist
        types = {"PARTITION": "integer", "OFFSET": "numeric"}
        if found["value"]:
            key = json.loads(found["key"])
            columns.append(_columns(json.loads(found["value"])))
            types["KEY"] = _type(key["fields"][0]["type"])
        elif found["registry"]:
            if not (of_topic := self.outside.columns(topic)):
                raise Refused(f"the schema registry has no schema of the topic {topic}")
            columns.append(of_topic)
        else:
            columns.append({"JSON": "data jsonb", "BYTES": "data bytea"}[found["format"]])
        included = re.findall(r"([A-Z]+) AS (\w+)", found["include"] or "")
        columns += [f"{column} {types[word]}" for word, column in included]
        return f"CREATE TABLE {name}_progress (); CREATE TABLE {name} ({', '.join(columns)})"


def _columns(record: Any) -> str:
    """Return the columns of an Avro record."""
    return ", ".join(f'"{each["name"]}" {_type(each["type"])}' for each in record["fields"])


def _type(kind: Any) -> str:
    if isinstance(kind, list):
        (kind,) = (each for each in kind if each != "null")
    if isinstance(kind, str):
        return TYPES[kind]
    return "numeric" if kind.get("logicalType") == "decimal" else _type(kind["type"])


@dataclass(frozen=True)
class Materialize:
    """A running Materialize for tests."""

    url: str
    statements: Statements


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, postgres: Postgres, statements: Statements) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.postgres, self.statements = postgres, statements
        self.stop = threading.Event()


@contextmanager
def running_materialize(
    postgres: Postgres, outside: Outside | None = None
) -> Iterator[Materialize]:
    """Run a Materialize in front of this PostgreSQL until the block ends. Only one can run at a
    time."""
    postgres.rows(CATALOGUE)
    statements = Statements(outside or fake_outside())
    with _Server(postgres, statements) as server:
        serve_in_background(server)
        url = postgres.url.replace(f":{postgres.port}/", f":{server.server_address[1]}/")
        try:
            yield Materialize(url, statements)
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
                options = self._body()
                known = options.replace(DECLINED, b"")
                self._greets = known == options
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
            if self._greets:
                fields = {"S": "NOTICE", "V": "NOTICE", "C": "00000", "M": WELCOME}
                self._send(b"N", "".join(f"{code}{of}\0" for code, of in fields.items()) + "\0")
                self._greets = False
            body = self._of.statements.translate(body.rstrip(b"\0").decode()).encode() + b"\0"
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
