"""Follows tracer rows in the topics of views. All rows are read, but only tracer rows are
parsed."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from racetrack.config import Settings
from racetrack.engines.contract import Seen
from racetrack.engines.shared.upsert import topics
from racetrack.errors import RacetrackError
from racetrack.kafka_client import is_retriable
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.workloads.contract import TracedView

if TYPE_CHECKING:
    from confluent_kafka import Consumer

EVERY_S = 0.2
MESSAGES_AT_ONCE = 10_000
FETCH_MS = 200


@dataclass(frozen=True)
class Rows:
    """Tracer rows of one topic."""

    # Beginning of a tracer row's text, which contains its key → partition.
    keys: Mapping[bytes, int]
    views: Sequence[TracedView]  # traced views whose values are columns of these rows

    @property
    def beginnings(self) -> tuple[bytes, ...]:
        """Beginnings of the texts of tracer rows; other rows need not be parsed."""
        return tuple(self.keys)

    def seen(self, value: bytes, at_ms: int) -> Iterator[Seen]:
        """Yield the tracer values in a tracer row."""
        row = json.loads(value)
        partition = self.keys[topics.beginning_of(value)]
        for view in self.views:
            yield Seen(at_ms, view.name, partition, int(row[view.column]))


def by_topic(
    traced: Sequence[TracedView], settings: Settings, topic_of: Callable[[str], str]
) -> dict[str, Rows]:
    """Return the tracer rows of each topic to which a traced view is written. A row's text begins
    with its key column."""
    found: dict[str, list[TracedView]] = {}
    for view in traced:
        found.setdefault(topic_of(view.view), []).append(view)
    return {
        topic: Rows(
            {
                topics.beginning(views[0].key, key): partition
                for partition, key in enumerate(views[0].keys(settings))
            },
            views,
        )
        for topic, views in found.items()
    }


def follow(
    kafka: KafkaEndpoint, rows_of: Mapping[str, Rows], stop: threading.Event
) -> Iterator[Seen]:
    """Yield the values of all tracer rows in these topics, from their beginning, until `stop` is
    set.

    Raises:
        RacetrackError: the broker refused.
    """
    with ExitStack() as closing:
        consumers = [(_consumer(kafka, topic, closing), rows) for topic, rows in rows_of.items()]
        while not stop.is_set():
            next_s = time.monotonic() + EVERY_S
            for consumer, rows in consumers:
                yield from _received(consumer, rows, kafka)
            stop.wait(next_s - time.monotonic())


def _consumer(kafka: KafkaEndpoint, topic: str, closing: ExitStack) -> "Consumer":
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(
        kafka.librdkafka(
            {
                "group.id": "racetrack-tracer-rows",  # required, but nothing is committed
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",  # topics are emptied when an engine is restarted
                # Few and large fetches, since each takes CPU time on the measured machine.
                "fetch.wait.max.ms": FETCH_MS,
                "fetch.min.bytes": 1 << 20,
            }
        )
    )
    closing.callback(consumer.close)
    consumer.assign([TopicPartition(kafka.topic(topic), 0, OFFSET_BEGINNING)])
    return consumer


def _received(consumer: "Consumer", rows: Rows, kafka: KafkaEndpoint) -> Iterator[Seen]:
    """Yield the tracer values in messages that have arrived since the last call. This has to be
    fast: there are thousands of messages per second."""
    beginnings = rows.beginnings
    for message in consumer.consume(MESSAGES_AT_ONCE, 0):
        if error := message.error():
            if is_retriable(error):
                continue
            raise RacetrackError(f"Reading from Kafka at {kafka} failed: {error}")
        value = message.value()
        if value is not None and value.startswith(beginnings):
            yield from rows.seen(value, message.timestamp()[1])
