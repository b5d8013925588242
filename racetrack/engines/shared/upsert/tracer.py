"""Follows tracer rows in the topics of views. All rows are read, but only tracer rows are
parsed."""

import json
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from racetrack.clock import now_ms
from racetrack.config import Settings
from racetrack.engines.contract import Seen
from racetrack.engines.shared.tracer import Tally
from racetrack.engines.shared.upsert import topics
from racetrack.errors import RacetrackError
from racetrack.kafka_client import FEW_FETCHES, is_retriable
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.workloads.contract import ALL_PARTITIONS, TracedView

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

LOOK_EVERY_S = 0.2  # how often to check `stop`; messages are received as they arrive
MESSAGES_AT_ONCE = 10_000


@dataclass(frozen=True)
class Rows:
    """Tracer rows of one topic."""

    # Beginning of a tracer row's text, which contains its key → partition. Empty if views without
    # tracer rows are traced, by all rows.
    keys: Mapping[bytes, int]
    views: Sequence[TracedView]  # traced views whose values are columns of these rows
    tally: Tally = field(default_factory=Tally)

    @property
    def beginnings(self) -> tuple[bytes, ...]:
        """Beginnings of the texts of tracer rows; other rows need not be parsed."""
        return tuple(self.keys) or (b"{",)

    def seen(self, value: bytes, at_ms: int) -> Iterator[Seen]:
        """Yield the tracer values in a tracer row; nothing if it is one of another topic only."""
        partition = self.keys.get(topics.beginning_of(value)) if self.keys else ALL_PARTITIONS
        if partition is None:
            return
        row = json.loads(value)
        for view in self.views:
            if (seen := row[view.column]) is None:
                continue  # an invalid message made it
            total = self.tally.value(view, partition, seen, row.get(view.summed_over))
            yield Seen(at_ms, view.name, partition, total)


def by_topic(
    traced: Sequence[TracedView], settings: Settings, topic_of: Callable[[str], str]
) -> dict[str, Rows]:
    """Return the tracer rows of each topic to which a traced view is written. A row's text begins
    with its key column."""
    views_of_topic: dict[str, list[TracedView]] = {}
    for view in traced:
        views_of_topic.setdefault(topic_of(view.view), []).append(view)
    return {
        topic: Rows(
            {
                topics.beginning(views[0].key, key): partition
                for partition, key in enumerate(views[0].keys(settings))
            },
            views,
        )
        for topic, views in views_of_topic.items()
    }


def follow(
    kafka: KafkaEndpoint, rows_of: Mapping[str, Rows], stop: threading.Event
) -> Iterator[Seen]:
    """Yield the values of all tracer rows in these topics, from their beginning, until `stop` is
    set. `timestamp_ms` is when this client received the row.

    Raises:
        RacetrackError: the broker refused.
    """
    rows = {kafka.topic(topic): own_rows for topic, own_rows in rows_of.items()}
    if not rows:
        return
    beginnings = tuple(beginning for own_rows in rows.values() for beginning in own_rows.beginnings)
    with closing(_consumer(kafka, rows)) as consumer:
        while not stop.is_set():
            if (first := consumer.poll(LOOK_EVERY_S)) is not None:
                at_ms = now_ms()
                messages = [first, *consumer.consume(MESSAGES_AT_ONCE, 0)]
                yield from _tracer_values(messages, rows, beginnings, at_ms, kafka)


def _consumer(kafka: KafkaEndpoint, names: Collection[str]) -> "Consumer":
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(
        kafka.librdkafka(
            {
                "group.id": "racetrack-tracer-rows",  # required, but nothing is committed
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",  # topics are emptied when an engine is restarted
                **FEW_FETCHES,
            }
        )
    )
    consumer.assign([TopicPartition(name, 0, OFFSET_BEGINNING) for name in names])
    return consumer


def _tracer_values(
    messages: "Sequence[Message]",
    rows_of: Mapping[str, Rows],
    beginnings: tuple[bytes, ...],
    at_ms: int,
    kafka: KafkaEndpoint,
) -> Iterator[Seen]:
    """Yield the tracer values in those messages that have one of these beginnings. This has to be
    fast: there are thousands of messages per second, and the value of an error is its text. If all
    rows of a topic are traced, only the newest with each first column is parsed."""
    newest: dict[tuple[str, bytes], bytes] = {}
    for message in messages:
        value = message.value()
        if value is None or not value.startswith(beginnings):
            if (error := message.error()) and not is_retriable(error):
                raise RacetrackError(f"Reading from Kafka at {kafka} failed: {error}")
        elif rows := rows_of.get(topic := message.topic() or ""):
            if rows.keys:
                yield from rows.seen(value, at_ms)
            else:
                newest[topic, topics.beginning_of(value)] = value
    for (topic, _), value in newest.items():
        yield from rows_of[topic].seen(value, at_ms)
