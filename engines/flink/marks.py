"""Which marks the topics of Flink's views hold: all rows are read, and few are looked into."""

import json
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from engines.contract import Seen
from racetrack.errors import RacetrackError
from racetrack.settings import Settings
from racetrack.workload import MarkedView

EVERY_S = 0.2
MESSAGES_AT_ONCE = 10_000
FETCH_MS = 200


@dataclass(frozen=True)
class Rows:
    """The marks' rows of one topic: how their keys stand in a message, and what is told of them."""

    key: str
    partitions: Mapping[int, int]  # by key
    views: Sequence[MarkedView]

    def seen(self, value: bytes, at_ms: int) -> Iterator[Seen]:
        """What a message says of marks; a row of anything else is not parsed."""
        found = re.search(rb'"%b":(\d+)' % self.key.encode(), value)
        if not found or (partition := self.partitions.get(int(found[1]))) is None:
            return
        row = json.loads(value)
        for view in self.views:
            yield Seen(at_ms, view.name, partition, int(row[view.column]))


def follow(kafka: str, rows_of: Mapping[str, Rows], stop: threading.Event) -> Iterator[Seen]:
    """Every change of the marks' rows in these topics, from their beginning, until `stop` is set.

    Raises:
        RacetrackError: the broker refused.
    """
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": kafka,
            "group.id": "racetrack-marks",  # a consumer must name one; nothing is committed to it
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",  # topics are emptied when an engine begins anew
            # Few and large fetches: they cost the machine that is measured.
            "fetch.wait.max.ms": FETCH_MS,
            "fetch.min.bytes": 1 << 20,
        }
    )
    newest: dict[tuple[str, int], int] = {}
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING) for topic in rows_of])
        while not stop.is_set():
            next_s = time.monotonic() + EVERY_S
            for message in consumer.consume(MESSAGES_AT_ONCE, EVERY_S):
                if error := message.error():
                    raise RacetrackError(f"Reading from Kafka at {kafka} failed: {error}")
                value = message.value()
                if value is None:
                    continue
                for seen in rows_of[str(message.topic())].seen(value, message.timestamp()[1]):
                    # A row that moves within its view's first ten is told of again.
                    if seen.value > newest.get((seen.view, seen.partition), -1):
                        newest[seen.view, seen.partition] = seen.value
                        yield seen
            stop.wait(next_s - time.monotonic())
    finally:
        consumer.close()


def by_topic(marked: Sequence[MarkedView], settings: Settings) -> dict[str, Rows]:
    """The marks' rows of each topic that a marked view is written to."""
    found: dict[str, list[MarkedView]] = {}
    for view in marked:
        found.setdefault(f"flink.{view.view}", []).append(view)
    return {
        topic: Rows(
            views[0].key,
            {key: partition for partition, key in enumerate(views[0].keys(settings))},
            views,
        )
        for topic, views in found.items()
    }
