"""A topic with Nexmark's generated events and with invalid messages, for tests on a real Kafka."""

import json

from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from racetrack.workloads.nexmark.harness import EVENTS
from racetrack.workloads.nexmark.tests.test_views import PARTITIONS, START_MS, messages
from tests.secured_kafka import ADMIN, PREFIX, SecuredKafka

FIELDS = ("event_type", "person", "auction", "bid", "dateTime")
BID = {"auction": 1, "bidder": 2, "price": "3", "channel": "c", "url": "u", "extra": ""}
INVALID = [
    b'{"event_type": 7, "dateTime": %d}' % START_MS,
    b'{"event_type": 2, "bid": {"bidder": 1}, "dateTime": %d}' % START_MS,
    b'{"event_type": 2, "dateTime": %d}' % START_MS,
    json.dumps({"event_type": 2, "bid": BID, "dateTime": START_MS}).encode(),
    b'{"event_type": 2, "bid": {',
    b"",
    None,
]
TRACERS = 6  # of each partition


def write(kafka: SecuredKafka) -> None:
    """Write all events into the topic, and before them invalid messages."""
    topic = f"{PREFIX}{EVENTS.name}"
    kafka.admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(10)
    producer = Producer({"bootstrap.servers": kafka.address(ADMIN)})
    for invalid in INVALID:
        producer.produce(topic, invalid, partition=0)
    for row in messages():
        message = {name: row[name] for name in FIELDS if row[name] is not None}
        producer.produce(topic, json.dumps(message), partition=row["partition"])
    assert producer.flush(10) == 0
