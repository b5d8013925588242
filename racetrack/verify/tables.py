"""Rows of the workload's tables, read from MySQL and from the CDC topics."""

import re
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pymysql
import pymysql.cursors
from confluent_kafka import OFFSET_END, Consumer, TopicPartition

from racetrack.errors import RacetrackError
from racetrack.kafka_client import NoOffsets, ends, is_retriable
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.stack.avro import Avro
from racetrack.stack.contract import Stack
from racetrack.workloads.contract import View, Workload

if TYPE_CHECKING:
    from confluent_kafka import Message

ANSWER_WITHIN_S = 30
Rows = tuple[tuple[Any, ...], ...]
# MySQL's error codes if a column or a table was dropped. Other tables can still be compared.
UNKNOWN_COLUMN, NO_SUCH_TABLE = 1054, 1146
STATEMENT_CHARS, MOST_STATEMENTS = 100, 5
_COMMENTS = re.compile(r"^(\s|/\*.*?\*/|use `[^`]*`;)*", re.IGNORECASE | re.DOTALL)
_CREATES = re.compile(r"CREATE\s+DATABASE\b", re.IGNORECASE)
_CHANGES_ROWS = re.compile(r"(TRUNCATE|(DROP|RENAME|ALTER)\s+TABLE)\b", re.IGNORECASE)


def read_tables(stack: Stack, workload: Workload) -> dict[str, Rows | str]:
    """Return the rows of each table from one consistent snapshot, with columns in the order of the
    table's view. For a table that can't be read, return the reason as a string.

    Raises:
        RacetrackError: MySQL does not answer, or refuses.
    """
    try:
        mysql = stack.endpoints.mysql
        with mysql.connect(ANSWER_WITHIN_S) as connection, connection.cursor() as cursor:
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            return {
                view.name: _read(cursor, view.name, view.columns) for view in workload.table_views()
            }
    except pymysql.MySQLError as error:
        raise _no_answer(stack, error) from error


def statements_without_messages(stack: Stack, tables: Collection[str]) -> list[str]:
    """Return the first statements in MySQL's binary log that change rows of these tables but for
    which Debezium sends no message: TRUNCATE, and DDL that alters, renames or drops a table.

    Raises:
        RacetrackError: MySQL does not answer, or refuses.
    """
    statements: list[str] = []
    mysql = stack.endpoints.mysql
    names = re.compile(rf"\b({'|'.join(map(re.escape, tables))})\b", re.IGNORECASE)
    try:
        with (
            mysql.connect_reader(ANSWER_WITHIN_S) as connection,
            connection.cursor(pymysql.cursors.SSCursor) as cursor,
        ):
            for name, position, sql in _statements(cursor, mysql.database):
                if _CHANGES_ROWS.match(sql) and names.search(sql):
                    short = " ".join(sql.split())[:STATEMENT_CHARS]
                    statements.append(f"{short} ({name}, position {position})")
    except pymysql.MySQLError as error:
        raise _no_answer(stack, error) from error
    return statements[:MOST_STATEMENTS]


def _statements(cursor: Any, database: str) -> list[tuple[str, int, str]]:
    """Return log, position and SQL of each statement, since the database was created, that names
    the database or ran in it. Older logs, of which a shared server may have many, are not read."""
    parts: list[tuple[str, int, str]] = []
    cursor.execute("SHOW BINARY LOGS")
    for log, *_ in reversed(cursor.fetchall()):
        cursor.execute(f"SHOW BINLOG EVENTS IN '{log}'")
        newer = parts
        parts = [
            (name, position, _COMMENTS.sub("", info))
            for name, position, kind, _server, _end, info in cursor
            if kind == "Query" and database in info
        ]
        is_first = any(_CREATES.match(sql) for *_, sql in parts)
        parts += newer
        if is_first:
            break
    return parts


def _read(cursor: Any, table: str, columns: Mapping[str, object]) -> Rows | str:
    try:
        cursor.execute(f"SELECT {', '.join(columns)} FROM {table}")  # noqa: S608  # names of the workload only
    except pymysql.MySQLError as error:
        if error.args[0] in (UNKNOWN_COLUMN, NO_SUCH_TABLE):
            return f"MySQL: {error.args[1]}"
        raise
    rows: Rows = cursor.fetchall()
    return rows


def _no_answer(stack: Stack, error: pymysql.MySQLError) -> RacetrackError:
    mysql = stack.endpoints.mysql
    return RacetrackError(
        f"The tables of MySQL at {mysql} can't be read: {error}. Its log is stack/mysql.log."
    )


MESSAGES_AT_ONCE = 10_000
COLLECT_S = 0.2
# Length of Confluent's header: a zero byte and the schema's id. The id changes with ALTER TABLE, so
# keys are compared without the header.
HEADER_BYTES = 5


class CdcTopics:
    """Reader of the tables' CDC topics. It can be called repeatedly while the topics grow. Only the
    newest message of each key is decoded."""

    def __init__(self, kafka: KafkaEndpoint, registry: str, workload: Workload) -> None:
        self._tables = {kafka.topic(workload.cdc_topic(table)): table for table in workload.tables}
        self._avro = Avro(registry)
        # A group is required, but nothing is committed.
        own = {"group.id": "racetrack-cdc", "enable.auto.commit": False, "log_level": 2}
        self._consumer = Consumer(kafka.librdkafka(own))
        self._positions = dict.fromkeys(self._tables, 0)
        self._newest: dict[str, dict[bytes, tuple[int, bytes | None]]] = {
            table: {} for table in workload.tables
        }
        # Table -> descriptions of its messages that are not change events of a row.
        self.unfit: dict[str, list[str]] = {}

    def close(self) -> None:
        """Close the connection to the broker."""
        self._consumer.close()

    def read_on(self) -> int:
        """Read the messages that arrived since the last call; return their number.

        Raises:
            RacetrackError: the broker refuses, or does not deliver in time.
        """
        give_up = time.monotonic() + ANSWER_WITHIN_S
        try:
            partitions = [(topic, 0) for topic in self._tables]
            offsets = ends(self._consumer, partitions, OFFSET_END, ANSWER_WITHIN_S)
        except NoOffsets as why:
            raise RacetrackError(f"The topics of CDC can't be read: {why}.") from why
        missing = {t: offsets[t, 0] for t, at in self._positions.items() if at < offsets[t, 0]}
        if not missing:
            return 0
        before = sum(self._positions.values())
        self._consumer.assign([TopicPartition(t, 0, self._positions[t]) for t in missing])
        try:
            while any(self._positions[topic] < end for topic, end in missing.items()):
                for message in self._consumer.consume(MESSAGES_AT_ONCE, COLLECT_S):
                    self._take(message)
                if time.monotonic() > give_up:
                    raise RacetrackError(
                        f"The broker did not deliver the topics of CDC up to {missing} within"
                        f" {ANSWER_WITHIN_S:.0f} s: it is at {self._positions}."
                    )
        finally:
            self._consumer.unassign()
        return sum(self._positions.values()) - before

    def table(self, view: View) -> pa.Table:
        """Return the current rows of a table, with those columns of its view that its messages
        contain."""
        self.unfit.pop(view.name, None)
        rows = [
            row
            for offset, value in self._newest[view.name].values()
            if value is not None and (row := self._row(view.name, offset, value)) is not None
        ]
        # If a column was dropped from the table, the other columns are still compared.
        names = [name for name in view.columns if not rows or any(name in row for row in rows)]
        return pa.table({name: _column([row.get(name) for row in rows]) for name in names})

    def _take(self, message: "Message") -> None:
        if error := message.error():
            if not is_retriable(error):
                raise RacetrackError(f"{message.topic()} can't be read: {error}.")
            return
        topic, offset = str(message.topic()), int(message.offset() or 0)
        key = (message.key() or b"")[HEADER_BYTES:]
        self._newest[self._tables[topic]][key] = offset, message.value()
        self._positions[topic] = offset + 1

    def _row(self, table: str, offset: int, value: bytes) -> Mapping[str, Any] | None:
        """Return the row after a change; None if the row was deleted, or if the message is not a
        change event."""
        envelope: object = None
        # If the bytes do not match the schema, fastavro may raise any of these errors.
        with suppress(ValueError, TypeError, EOFError, LookupError, ArithmeticError):
            envelope = self._avro.decode(value)
        if isinstance(envelope, dict) and "after" in envelope:
            row: Mapping[str, Any] | None = envelope["after"]
            return row
        self.unfit.setdefault(table, []).append(f"offset {offset} is no change of a row")
        return None


def open_topics(stack: Stack, workload: Workload) -> CdcTopics:
    """Return a reader of the CDC topics of a running stack."""
    return CdcTopics(stack.endpoints.kafka, stack.endpoints.registry, workload)


def _column(values: list[Any]) -> pa.Array:
    """Return a column with the type of its values; if the values have several types, as text."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if value is None else str(value) for value in values])
