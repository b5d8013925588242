"""Reader of upsert topics with one partition each: returns the messages of a span of offsets, or
the current rows."""

import json
import threading
import time
from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from racetrack.errors import RacetrackError
from racetrack.kafka_client import NoOffsets, Partition, ends, is_retriable
from racetrack.kafka_endpoint import KafkaEndpoint

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

Span = tuple[int, int]  # offset of the first message, and offset after the last
MESSAGES_AT_ONCE = 10_000
# Generous: the broker may answer late on a busy machine, and that must not end a run.
READ_WITHIN_S = 30.0
# Time for which the broker delays the answer to a fetch if there is no message, and for which a
# call of `consume` collects messages.
FETCH_MS, COLLECT_S = 20, 0.05


@dataclass(frozen=True)
class Written:
    """A message. `at_ms` is when the broker received it (epoch ms); `value` is None if the row was
    deleted."""

    topic: str
    offset: int
    at_ms: int
    key: bytes
    value: bytes | None


def beginning(column: str, value: int | str) -> bytes:
    """Return the beginning of the JSON text of rows whose first column has this name and value. The
    JSON contains no blanks."""
    return f"{{{json.dumps(column)}:{json.dumps(value)},".encode()


def beginning_of(value: bytes) -> bytes:
    """Return the text of a row up to its first comma."""
    return value[: value.index(b",") + 1]


class Topics:
    """A Kafka client that reads the first partition of any topic. It fetches nothing between two
    reads, since each fetch takes CPU time on the measured machine."""

    def __init__(self, kafka: KafkaEndpoint) -> None:
        from confluent_kafka import Consumer

        self._kafka = kafka
        settings: dict[str, Any] = {
            "group.id": "racetrack-reader",  # required, but nothing is committed
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": FETCH_MS,
        }
        self._consumer = Consumer(kafka.librdkafka(settings))

    def __enter__(self) -> "Topics":
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def names(self) -> frozenset[str]:
        """Return the names of all topics."""
        topics = self._consumer.list_topics(timeout=READ_WITHIN_S).topics
        return frozenset(map(self._kafka.name_of, topics))

    def offsets(
        self, names: Collection[str], stop: threading.Event | None = None
    ) -> dict[str, Span]:
        """Return, for each topic, the offset of the oldest message and the offset after the newest.
        This takes two requests for all topics together. Once `stop` is set, a failed request is
        not repeated.

        Raises:
            RacetrackError: the broker refused, or did not answer in time.
        """
        from confluent_kafka import OFFSET_BEGINNING, OFFSET_END

        first, after = (self._ends(names, which, stop) for which in (OFFSET_BEGINNING, OFFSET_END))
        return {name: (first[name, 0], after[name, 0]) for name in names}

    def is_written(self, name: str) -> bool:
        """Return whether the topic contains a message."""
        begin, end = self.offsets([name])[name]
        return end > begin

    def latest(self, name: str) -> list[bytes]:
        """Return the current rows of a topic: the last value of each key, and all values without a
        key, which an engine has appended."""
        rows: dict[bytes | int, bytes] = {}
        for row in self.rows(name, self.offsets([name])[name]):
            if row.value is None:
                rows.pop(row.key, None)
            else:
                rows[row.key or row.offset] = row.value
        return list(rows.values())

    def rows(self, name: str, span: Span) -> Iterator[Written]:
        """Yield all rows of a topic in a span, which need not fit into memory together.

        Raises:
            RacetrackError: as in `rows_between`.
        """
        return (_written(message, name) for _, message in self._in_spans({name: span}))

    def rows_between(self, spans: Mapping[str, Span]) -> dict[str, list[Written]]:
        """Return all rows of each topic in its span. All topics are read together, because the CPU
        time depends on the number of fetches.

        Raises:
            RacetrackError: the broker refused, or did not send the rows in time.
        """
        return {
            name: [_written(message, name) for message in messages]
            for name, messages in self._between(spans).items()
        }

    def newest(self, name: str, span: Span, but: Container[bytes]) -> list[Written]:
        """Return the newest row of each key in a span of a topic, except for the keys `but`. Only
        the returned rows are converted, to save CPU time."""
        rows: dict[bytes, Written] = {}
        for message in reversed(self._between({name: span})[name]):
            key = message.key() or b""
            if key not in but and key not in rows:
                rows[key] = _written(message, name)
        return list(rows.values())

    def _ends(
        self, names: Collection[str], which: int, stop: threading.Event | None
    ) -> dict[Partition, int]:
        try:
            partitions = [(self._kafka.topic(name), 0) for name in names]
            offsets = ends(self._consumer, partitions, which, READ_WITHIN_S, stop)
            return {(self._kafka.name_of(topic), 0): at for (topic, _), at in offsets.items()}
        except NoOffsets as why:
            raise RacetrackError(
                f"Kafka at {self._kafka} did not return the offsets of {', '.join(names)}: {why}."
            ) from why

    def _between(self, spans: Mapping[str, Span]) -> dict[str, list["Message"]]:
        messages: dict[str, list[Message]] = {name: [] for name in spans}
        for name, message in self._in_spans(spans):
            messages[name].append(message)
        return messages

    def _in_spans(self, spans: Mapping[str, Span]) -> Iterator[tuple[str, "Message"]]:
        """Yield all messages of the topics in their spans, with the name of their topic."""
        from confluent_kafka import TopicPartition

        positions = {name: begin for name, (begin, end) in spans.items() if begin < end}
        if not positions:
            return
        give_up = time.monotonic() + READ_WITHIN_S
        self._consumer.assign(
            [TopicPartition(self._kafka.topic(name), 0, at) for name, at in positions.items()]
        )
        try:
            while missing := sum(max(0, spans[name][1] - at) for name, at in positions.items()):
                for message in self._consumer.consume(min(missing, MESSAGES_AT_ONCE), COLLECT_S):
                    name = self._kafka.name_of(message.topic())
                    if error := message.error():
                        end = self._end_offset(message, error)
                        if name in positions:  # other errors concern the connection
                            positions[name] = max(positions[name], end)
                    else:
                        offset = int(message.offset() or 0)
                        positions[name] = offset + 1
                        give_up = time.monotonic() + READ_WITHIN_S
                        if spans[name][0] <= offset < spans[name][1]:
                            yield name, message
                if time.monotonic() > give_up:
                    raise RacetrackError(
                        f"Kafka at {self._kafka} sent nothing of {dict(spans)} for"
                        f" {READ_WITHIN_S:.0f} s: it is at {positions}."
                    )
        finally:
            self._consumer.unassign()

    def _end_offset(self, message: "Message", error: "KafkaError") -> int:
        """Return the end offset if the error reports that the end of the partition was reached, and
        0 for a retriable error. Raise RacetrackError for other errors."""
        from confluent_kafka import KafkaError

        if error.code() == KafkaError._PARTITION_EOF:
            return int(message.offset() or 0)
        if not is_retriable(error):
            raise RacetrackError(f"Reading from Kafka at {self._kafka} failed: {error}")
        return 0


def _written(message: "Message", topic: str) -> Written:
    _, at_ms = message.timestamp()
    key, value = message.key() or b"", message.value()
    return Written(topic, int(message.offset() or 0), at_ms, key, value)
