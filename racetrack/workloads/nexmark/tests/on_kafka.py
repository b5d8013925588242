"""The generated events of `test_views` in a real Kafka, for tests of the engines' programs."""

import json
from collections.abc import Sequence

from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from racetrack.workloads.nexmark.harness import EVENTS
from racetrack.workloads.nexmark.tests.test_views import PARTITIONS, START_MS, messages
from tests.secured_kafka import ADMIN, PREFIX, SecuredKafka

FIELDS = ("event_type", "person", "auction", "bid", "dateTime")
INVALID = [
    json.dumps(message)
    for message in (
        {"event_type": 7, "dateTime": START_MS},
        {"event_type": 2, "bid": {"bidder": 1}, "dateTime": START_MS},
        {"event_type": 2, "dateTime": START_MS},
    )
]
TRACERS = 6  # of each partition


def write(kafka: SecuredKafka, invalid: Sequence[str] = INVALID) -> None:
    """Write all events into the topic, and before them invalid messages."""
    topic = f"{PREFIX}{EVENTS.name}"
    kafka.admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(10)
    producer = Producer({"bootstrap.servers": kafka.address(ADMIN)})
    for text in invalid:
        producer.produce(topic, text, partition=0)
    for row in messages():
        message = {name: row[name] for name in FIELDS if row[name] is not None}
        producer.produce(topic, json.dumps(message), partition=row["partition"])
    assert producer.flush(10) == 0
