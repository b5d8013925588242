"""Reads views in upsert topics as Arrow tables. The value of a message is a row as JSON without
blanks, in which the view's first column comes first."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Self

from racetrack.engines.shared.upsert import topics
from racetrack.errors import RacetrackError
from racetrack.kafka_client import is_retriable
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.workloads.contract import ColumnType

if TYPE_CHECKING:
    import pyarrow
    from confluent_kafka import Consumer, Message

LOOK_EVERY_S = 0.1
MESSAGES_AT_ONCE = 10_000
ANSWER_S = 30.0
JOIN_WITHIN_S = 5.0
LEAST_SCALE = 2  # digits after the point of decimal columns, unless a value has more
Columns = Mapping[str, ColumnType]
ReadOnce = Callable[[str], "pyarrow.Table"]


@dataclass(frozen=True)
class KeptView:
    """Topic and columns of a view whose current rows a client keeps in memory."""

    topic: str
    columns: Columns


def table(kinds: Columns, values: Iterable[bytes]) -> "pyarrow.Table":
    """Convert the values of messages to an Arrow table."""
    import pyarrow as pa

    columns: dict[str, list[Any]] = {name: [] for name in kinds}
    for value in values:
        row = json.loads(value, parse_float=Decimal)
        for name, column in columns.items():
            column.append(row[name])
    return pa.table({name: _array(column, kinds[name]) for name, column in columns.items()})


class Table:
    """Current rows of a topic. They are indexed by the beginning of their text, which contains the
    first column, so that rows can be found by this column."""

    def __init__(self) -> None:
        self._rows: dict[bytes, dict[bytes, bytes]] = {}
        self._beginning: dict[bytes, bytes] = {}

    def take(self, key: bytes, value: bytes | None) -> None:
        """Apply a message: a new value of the key, or its deletion."""
        if (before := self._beginning.pop(key, None)) is not None:
            del self._rows[before][key]
        if value is not None:
            beginning = self._beginning[key] = topics.beginning_of(value)
            self._rows.setdefault(beginning, {})[key] = value

    def rows(self) -> list[bytes]:
        """Return all rows."""
        return [value for rows in self._rows.values() for value in rows.values()]

    def rows_of(self, first: str, among: Iterable[int]) -> list[bytes]:
        """Return the rows whose first column has a value in `among`. `first` is the name of that
        column."""
        beginnings = (topics.beginning(first, number) for number in among)
        return [
            value for beginning in beginnings for value in self._rows.get(beginning, {}).values()
        ]


class Tables:
    """Current rows of several topics of one partition each. Inside the context, a thread reads the
    topics continuously, from their beginning."""

    def __init__(self, kafka: KafkaEndpoint, names: Sequence[str]) -> None:
        self._kafka = kafka
        self._tables = {name: Table() for name in names}
        # Topic → its initial end offset, until the topic has been read up to it.
        self._ahead: dict[str, int] = {}
        self._lock, self._failure = threading.Lock(), ""
        self._stopping, self._caught_up = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._read_along, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._caught_up.wait(ANSWER_S):
            self._stopping.set()
            raise RacetrackError(f"Kafka at {self._kafka} did not send {', '.join(self._tables)}.")
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(JOIN_WITHIN_S)

    def rows(self, name: str, first: str = "", among: Sequence[int] = ()) -> list[bytes]:
        """Return the current rows of a topic; see `Table` for the arguments.

        Raises:
            RacetrackError: the topic can't be read any more.
        """
        with self._lock:
            if self._failure:
                raise RacetrackError(f"Reading from Kafka at {self._kafka}: {self._failure}")
            table = self._tables[name]
            return table.rows_of(first, among) if first else table.rows()

    def _read_along(self) -> None:
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        kafka = self._kafka
        # A group is required, but nothing is committed.
        own = {"group.id": "racetrack-tables", "enable.auto.commit": False}
        consumer = Consumer(kafka.librdkafka(own))
        try:
            named = {name: kafka.topic(name) for name in self._tables}
            consumer.assign([TopicPartition(t, 0, OFFSET_BEGINNING) for t in named.values()])
            self._ahead = {name: _end_of(consumer, topic) for name, topic in named.items()}
            while not self._stopping.is_set():
                # Return as soon as there is a message; waiting for a full batch would age answers.
                first = consumer.poll(LOOK_EVERY_S)
                # Not `if first`: a message without a value, which deletes a row, has length 0.
                messages = [] if first is None else [first]
                rest = consumer.consume(MESSAGES_AT_ONCE, 0) if messages else []
                self._take([*messages, *rest])
        except Exception as error:  # noqa: BLE001  # `rows` raises it in the caller's thread
            self._failure = f"{type(error).__name__}: {error}"
        finally:
            self._caught_up.set()
            consumer.close()

    def _take(self, messages: "Sequence[Message]") -> None:
        with self._lock:
            for message in messages:
                if error := message.error():
                    if not is_retriable(error):
                        self._failure = str(error)
                    continue
                name = self._kafka.name_of(message.topic())
                offset = int(message.offset() or 0)
                # A row without a key is appended.
                self._tables[name].take(message.key() or b"%d" % offset, message.value())
                if offset + 1 >= self._ahead.get(name, 0):
                    self._ahead.pop(name, None)
        if self._failure or not any(self._ahead.values()):
            self._caught_up.set()


def _end_of(consumer: "Consumer", name: str) -> int:
    from confluent_kafka import TopicPartition

    begin, end = consumer.get_watermark_offsets(TopicPartition(name, 0), timeout=ANSWER_S)
    return int(end) if end > begin else 0


@dataclass(frozen=True)
class TopicReader:
    """See `racetrack.engines.contract.Reader`. The current rows of some views are kept in memory;
    other views are read from their topics when they are requested."""

    kept: Mapping[str, KeptView]
    tables: Tables
    read_once: ReadOnce

    def rows(self, view: str, key: str, among: Sequence[int]) -> "pyarrow.Table":
        """Return the current rows. If `key` is given, it must be the view's first column."""
        if kept := self.kept.get(view):
            return table(kept.columns, self.tables.rows(kept.topic, key, among))
        rows = self.read_once(view)
        if not key:
            return rows
        import pyarrow as pa
        import pyarrow.compute as pc

        return rows.filter(pc.is_in(rows[key], pa.array(among, pa.int64())))


@contextmanager
def open_reader(
    kafka: KafkaEndpoint, kept: Mapping[str, KeptView], read_once: ReadOnce
) -> Iterator[TopicReader]:
    """Open a client that keeps the current rows of the views `kept` while it is open.

    Raises:
        RacetrackError: Kafka does not send the rows.
    """
    tables = Tables(kafka, [view.topic for view in kept.values()])
    with ExitStack() as closing:
        if kept:
            closing.enter_context(tables)
        yield TopicReader(kept, tables, read_once)


def _array(values: list[Any], kind: ColumnType) -> "pyarrow.Array":
    import pyarrow as pa

    if kind is ColumnType.DECIMAL:
        exact = [None if value is None else Decimal(value) for value in values]
        scales = (-int(value.as_tuple().exponent) for value in exact if value is not None)
        return pa.array(exact, pa.decimal128(38, max([LEAST_SCALE, *scales])))
    if kind is ColumnType.FLOAT:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    if kind is ColumnType.TEXT:
        return pa.array(values, pa.string())
    if kind is ColumnType.INTEGER:
        return pa.array(values, pa.int64())
    return pa.array(values)  # a time, as text or epoch milliseconds
