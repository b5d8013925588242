"""Tests of a column whose type changes while a running engine uses the first schema."""

import json
import struct
from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka import Producer

from racetrack.errors import EngineFailed
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.probes.cdc import SchemasProbe, newest_types
from tests.fake_server import JsonHandler, serving
from tests.run.fakes import FakeEngine, FakeStack
from tests.waiting import wait_until


def envelope(scale: int) -> str:
    """Return Debezium's schema: `before` has the row's type, and `after` refers to it by name."""
    price = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": scale}
    fields = [
        {"name": "id", "type": {"type": "long", "connect.default": 0}},
        {"name": "price", "type": ["null", price], "default": None},
    ]
    row = {"type": "record", "name": "Value", "fields": fields}
    both = [{"name": "before", "type": ["null", row]}, {"name": "after", "type": ["null", "Value"]}]
    return json.dumps({"type": "record", "name": "Envelope", "fields": both})


class FakeRegistry(JsonHandler):
    """A fake registry: the part of Confluent's API that we use. All subjects have the same
    schemas."""

    schemas: list[str]

    def get(self) -> None:
        last = self.path.rpartition("/")[2]
        self.answer({"schema": self.schemas[-1 if last == "latest" else int(last)]})


@pytest.fixture
def registry() -> Iterator[str]:
    FakeRegistry.schemas = [envelope(2)]
    with serving(FakeRegistry) as url:
        yield url


@pytest.mark.slow
def test_the_first_message_of_another_type_is_named(registry: str) -> None:
    # librdkafka has a mock broker for tests, which lives as long as this producer.
    producer = Producer({"bootstrap.servers": "", "test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = producer.list_topics(timeout=10).brokers.values()
    for topic in ("users", "items", "purchases"):
        for schema in (0, 1) if topic == "items" else (0,):
            message = struct.pack(">bI", 0, schema) + b"row"
            producer.produce(f"mysql.shop.{topic}", message, partition=0)
    assert producer.flush(10) == 0
    stack = FakeStack()
    kafka = KafkaEndpoint(f"{broker.host}:{broker.port}")
    stack.endpoints = replace(stack.endpoints, kafka=kafka, registry=registry)
    seen = newest_types(stack.as_stack())
    FakeRegistry.schemas.append(envelope(4))
    probe = SchemasProbe(FakeEngine(), stack.as_stack(), seen, 0.01)
    probe.start()
    with pytest.raises(EngineFailed) as failed:
        wait_until(probe.check, "failure", 10)
    probe.stop()
    text = str(failed.value)
    assert "refused topic=mysql.shop.items, partition=0, offset=1, field=price, reason=its" in text
    assert "is now DECIMAL(9, 4), and was DECIMAL(9, 2)" in text
