"""Upsert topics: made, followed message by message, and read as the tables that they are."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from racetrack.errors import RacetrackError

if TYPE_CHECKING:
    from confluent_kafka import Message

ANSWER_S = 10.0
MESSAGES_AT_ONCE = 10_000
# The last message of each key is what counts, so the broker may drop the others; or the topics of a
# long run would outgrow its memory. A reader has a minute to see that a row has gone. `delete` lets
# `make` empty them; nothing else does.
CONFIG = {
    "cleanup.policy": "compact,delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "segment.bytes": str(32 << 20),
    "delete.retention.ms": "60000",
}


@dataclass(frozen=True)
class Pace:
    """How often a reader asks. `fetch_ms`: how long the broker holds a fetch until it has
    `fetch_bytes` to answer. `wait_s`: how long messages are collected; longer than a fetch is held,
    so that to have collected none means that there was none."""

    fetch_ms: int
    fetch_bytes: int
    wait_s: float


# Who looks once is told soon.
AT_ONCE = Pace(fetch_ms=20, fetch_bytes=1, wait_s=0.05)
# Messages carry the time they were written at, so who follows loses nothing by fetching a few at a
# time; each fetch costs the machine that is measured.
SELDOM = Pace(fetch_ms=200, fetch_bytes=1 << 20, wait_s=0.3)


@dataclass(frozen=True)
class Written:
    """A message: when it was written (epoch ms), its key, its value: None if the row is gone."""

    topic: str
    at_ms: int
    key: bytes
    value: bytes | None


def make(kafka: str, names: Sequence[str]) -> None:
    """Have these topics there, of one partition each, and empty: an engine that was started again
    does not know which rows an earlier one wrote.

    Raises:
        RacetrackError: the broker refused.
    """
    from confluent_kafka import OFFSET_END, KafkaException, TopicPartition
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"bootstrap.servers": kafka, "log_level": 0})
    try:
        there = admin.list_topics(timeout=ANSWER_S).topics
        old = [TopicPartition(name, 0, OFFSET_END) for name in names if name in there]
        new = [NewTopic(name, 1, 1, config=CONFIG) for name in names if name not in there]
        asked = [
            *(admin.create_topics(new, operation_timeout=ANSWER_S).values() if new else ()),
            *(admin.delete_records(old, operation_timeout=ANSWER_S).values() if old else ()),
        ]
        for done in asked:
            done.result()
    except KafkaException as error:
        raise RacetrackError(
            f"The broker at {kafka} does not make the topics that Flink writes to: {error}"
        ) from error


def follow(kafka: str, names: Sequence[str], stop: threading.Event) -> Iterator[Written | None]:
    """Every message of these topics from the beginning, as it comes, until `stop` is set.

    What was there when `stop` was set is still yielded. None says that nothing came for a while.
    """
    with _Reader(kafka, names, SELDOM) as reader:
        while True:
            last_look = stop.is_set()
            messages = reader.messages()
            yield from messages
            if not messages:
                yield None
                if last_look:
                    return


def latest(kafka: str, name: str) -> list[bytes]:
    """The value of every row that the topic holds now."""
    rows: dict[bytes, bytes] = {}
    with _Reader(kafka, [name]) as reader:
        _, end = reader.offsets(name)
        while reader.position < end and not reader.at_end:
            for message in reader.messages():
                if message.value is None:
                    rows.pop(message.key, None)
                else:
                    rows[message.key] = message.value
    return list(rows.values())


def is_written(kafka: str, name: str) -> bool:
    """Whether the topic holds a message."""
    with _Reader(kafka, [name]) as reader:
        begin, end = reader.offsets(name)
        return end > begin


class _Reader:
    """The first partition of some topics, from the beginning."""

    def __init__(self, kafka: str, names: Sequence[str], pace: Pace = AT_ONCE) -> None:
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        self.position = 0  # the offset after the newest message seen, of whatever topic
        self.at_end = False
        self._kafka, self._wait_s = kafka, pace.wait_s
        settings: dict[str, Any] = {
            "bootstrap.servers": kafka,
            "group.id": "racetrack-reader",  # a consumer must name one; nothing is committed to it
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": pace.fetch_ms,
            "fetch.min.bytes": pace.fetch_bytes,
        }
        self._consumer = Consumer(settings)
        self._consumer.assign([TopicPartition(name, 0, OFFSET_BEGINNING) for name in names])

    def __enter__(self) -> "_Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def offsets(self, name: str) -> tuple[int, int]:
        """The offsets of the oldest message, and after the newest."""
        from confluent_kafka import TopicPartition

        found = self._consumer.get_watermark_offsets(TopicPartition(name, 0), timeout=ANSWER_S)
        return int(found[0]), int(found[1])

    def messages(self) -> list[Written]:
        """What has come; empty if nothing does for a while."""
        from confluent_kafka import KafkaError

        found = []
        for message in self._consumer.consume(MESSAGES_AT_ONCE, self._wait_s):
            error = message.error()
            if error is None:
                found.append(_written(message))
                self.position = int(message.offset() or 0) + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                self.at_end = True
            elif error.fatal() or not error.retriable():
                raise RacetrackError(f"Reading from Kafka at {self._kafka} failed: {error}")
        return found


def _written(message: "Message") -> Written:
    _, at_ms = message.timestamp()
    key, value = message.key() or b"", message.value()
    return Written(str(message.topic()), at_ms, key, value)
