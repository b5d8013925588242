"""A topic with Nexmark's generated events and with invalid messages, for tests on a real Kafka."""

import json
import threading
from collections.abc import Iterable, Sequence

import duckdb
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from racetrack.engines.contract import Engine
from racetrack.stack.contract import Stack
from racetrack.verify.compare import Compared, compare
from racetrack.workloads.nexmark.harness import EVENTS, WORKLOAD
from racetrack.workloads.nexmark.tests.test_views import (
    DELAY_MS,
    PARTITIONS,
    START_MS,
    messages,
)
from tests.secured_kafka import ADMIN, PREFIX, SecuredKafka

FIELDS = ("event_type", "person", "auction", "bid", "dateTime")
BID = {"auction": 1, "bidder": 2, "price": 3, "channel": "c", "url": "u", "extra": ""}


def bid_text(**fields: object) -> bytes:
    """Return a bid with other values in some fields."""
    return json.dumps({"event_type": 2, "bid": {**BID, **fields}, "dateTime": START_MS}).encode()


INVALID = [
    b'{"event_type": 7, "dateTime": %d}' % START_MS,
    b'{"event_type": 2, "bid": {"bidder": 1}, "dateTime": %d}' % START_MS,
    b'{"event_type": 2, "dateTime": %d}' % START_MS,
    json.dumps({"event_type": 2, "bid": BID}).encode(),
    bid_text(auction=None),
    bid_text(bidder=None),
    b'{"event_type": 2, "bid": {',
    b"",
    None,
]
QUOTED = bid_text(price="3")  # invalid, but some engines read it as a number
TRACERS = 6  # of each partition


def write(kafka: SecuredKafka) -> None:
    """Write all events into the topic, and before them invalid messages."""
    invalid = [(0, text) for text in (*INVALID, QUOTED)]
    valid = [
        (
            row["partition"],
            json.dumps({name: row[name] for name in FIELDS if row[name] is not None}),
        )
        for row in messages()
    ]
    fill(kafka, EVENTS.name, PARTITIONS, [*invalid, *valid])


def fill(
    kafka: SecuredKafka,
    name: str,
    partitions: int,
    texts: Iterable[tuple[int, str | bytes | None]],
) -> None:
    """Create a topic with these messages, each with its partition."""
    topic = f"{PREFIX}{name}"
    kafka.admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(10)
    producer = Producer({"bootstrap.servers": kafka.address(ADMIN)})
    for partition, text in texts:
        producer.produce(topic, text, partition=partition)
    assert producer.flush(10) == 0


def settings_of(kafka: SecuredKafka, queries: Sequence[str]) -> dict[str, str]:
    """Return the settings of a stack whose Kafka has the topic."""
    return {
        "KAFKA_BOOTSTRAP_SERVERS": kafka.address(ADMIN),
        "KAFKA_TOPIC_PREFIX": PREFIX,
        "EVENTS_PARTITIONS": str(PARTITIONS),
        "WORKLOAD": WORKLOAD.name,
        "NEXMARK_QUERIES": ",".join(queries),
        "NEXMARK_WATERMARK_DELAY_MS": str(DELAY_MS),
    }


def judged(db: duckdb.DuckDBPyConnection, engine: Engine, stack: Stack, query: str) -> Compared:
    """Compare a query's rows with those that it should have."""
    return compare(db, WORKLOAD.view(query), engine.read_view(stack, query), 3)


def traced_values(engine: Engine, stack: Stack) -> dict[tuple[str, int], int]:
    """Return the value of each traced view in each partition, once all are there. Check that they
    contain the tracer events."""
    traced, stop = engine.traced_views(stack.settings), threading.Event()
    seen: dict[tuple[str, int], int] = {}
    for row in engine.seen(stack, traced, stop):
        seen[row.view, row.partition] = row.value
        if len(seen) == sum(PARTITIONS if view.key else 1 for view in traced):
            stop.set()
    assert {view for view, _ in seen} == {view.name for view in traced}
    assert all(value >= TRACERS // 2 for value in seen.values())
    return seen
