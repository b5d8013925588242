"""Upsert topics of one partition each, read from offset to offset, and as the tables they are."""

import time
from collections.abc import Container
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from racetrack.errors import RacetrackError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

MESSAGES_AT_ONCE = 10_000
# On a busy machine the broker may take long; that is no reason to end a run.
READ_WITHIN_S = 30.0
# How long the broker holds a fetch for which there is nothing; and how long messages are collected.
FETCH_MS, COLLECT_S = 20, 0.05


@dataclass(frozen=True)
class Written:
    """A message: when the broker took it (epoch ms), its key, its value: None for a gone row."""

    topic: str
    offset: int
    at_ms: int
    key: bytes
    value: bytes | None


def beginning(column: str, number: int) -> bytes:
    """How the rows begin whose first column has this name and number: JSON without blanks."""
    return b'{"%b":%d,' % (column.encode(), number)


def beginning_of(value: bytes) -> bytes:
    """The same of a row."""
    return value[: value.index(b",") + 1]


def latest(kafka: str, name: str) -> list[bytes]:
    """The value of every row that the topic holds now."""
    rows: dict[bytes, bytes] = {}
    with Reader(kafka) as reader:
        for row in reader.rows_of(name).between(*reader.offsets(name)):
            if row.value is None:
                rows.pop(row.key, None)
            else:
                rows[row.key] = row.value
    return list(rows.values())


def is_written(kafka: str, name: str) -> bool:
    """Whether the topic holds a message."""
    with Reader(kafka) as reader:
        begin, end = reader.offsets(name)
        return end > begin


def names(kafka: str) -> frozenset[str]:
    """All topics that there are."""
    with Reader(kafka) as reader:
        return reader.names()


class Reader:
    """Reads the first partition of any topic. Between two reads it fetches nothing: each fetch
    costs the machine that is measured."""

    def __init__(self, kafka: str) -> None:
        from confluent_kafka import Consumer

        self._kafka = kafka
        settings: dict[str, Any] = {
            "bootstrap.servers": kafka,
            "group.id": "racetrack-reader",  # a consumer must name one; nothing is committed to it
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": FETCH_MS,
        }
        self._consumer = Consumer(settings)

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def names(self) -> frozenset[str]:
        """All topics that there are."""
        return frozenset(self._consumer.list_topics(timeout=READ_WITHIN_S).topics)

    def offsets(self, name: str) -> tuple[int, int]:
        """The offsets of the oldest message, and after the newest."""
        from confluent_kafka import TopicPartition

        found = self._consumer.get_watermark_offsets(TopicPartition(name, 0), timeout=READ_WITHIN_S)
        return int(found[0]), int(found[1])

    def rows_of(self, name: str) -> "TopicRows":
        """Those of this topic."""
        return TopicRows(self, name)

    def between(self, name: str, begin: int, end: int) -> list["Message"]:
        """The messages that the topic has from offset `begin` up to `end`, which is not included.

        Raises:
            RacetrackError: the broker refused, or did not send them in time.
        """
        from confluent_kafka import TopicPartition

        if begin >= end:
            return []
        found: list[Message] = []
        give_up = time.monotonic() + READ_WITHIN_S
        self._consumer.assign([TopicPartition(name, 0, begin)])
        try:
            position = begin
            while position < end:
                wanted = min(end - position, MESSAGES_AT_ONCE)
                for message in self._consumer.consume(wanted, COLLECT_S):
                    if error := message.error():
                        position = max(position, self._end_told_by(message, error))
                    else:
                        found.append(message)
                if found:
                    position = max(position, int(found[-1].offset() or 0) + 1)
                if time.monotonic() > give_up:
                    raise RacetrackError(
                        f"Kafka at {self._kafka} did not send {name} from {begin} to {end} within"
                        f" {READ_WITHIN_S:.0f} s."
                    )
        finally:
            self._consumer.unassign()
        return [message for message in found if begin <= (message.offset() or 0) < end]

    def _end_told_by(self, message: "Message", error: "KafkaError") -> int:
        """The offset up to which there is nothing, if the error says only that."""
        from confluent_kafka import KafkaError

        if error.code() == KafkaError._PARTITION_EOF:
            return int(message.offset() or 0)
        if error.fatal() or not error.retriable():
            raise RacetrackError(f"Reading from Kafka at {self._kafka} failed: {error}")
        return 0


@dataclass(frozen=True)
class TopicRows:
    """The rows of one topic, by offset: from the first up to the last, which is not included."""

    reader: Reader
    name: str

    def between(self, begin: int, end: int) -> list[Written]:
        """All of them."""
        return [_written(message) for message in self.reader.between(self.name, begin, end)]

    def newest(self, begin: int, end: int, but: Container[bytes]) -> list[Written]:
        """The newest of each key, but for these keys. No other is taken apart, which is what
        costs."""
        found: dict[bytes, Written] = {}
        for message in reversed(self.reader.between(self.name, begin, end)):
            key = message.key() or b""
            if key not in but and key not in found:
                found[key] = _written(message)
        return list(found.values())


def _written(message: "Message") -> Written:
    _, at_ms = message.timestamp()
    key, value = message.key() or b"", message.value()
    return Written(str(message.topic()), int(message.offset() or 0), at_ms, key, value)
