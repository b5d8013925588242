"""Tests of the baseline engine's sink: it sends changes to Kafka, and reads them back."""

import json
from decimal import Decimal
from typing import Any, cast

import psycopg
import pytest
from confluent_kafka import Message

from racetrack.engines.pg.feed import sink as feed_sink
from racetrack.engines.pg.tests.brought import (
    PlainAvro,
    bring,
    change,
    purchase,
    rows,
    user,
)
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.stack.avro import Avro
from racetrack.stack.contract import Stack

pytestmark = pytest.mark.slow


class FakeProducer:
    """Keeps the messages instead of sending them to Kafka."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, Any]] = []

    def produce(self, topic: str, key: bytes, value: bytes | None, on_delivery: object) -> None:
        assert topic == feed_sink.TOPIC
        self.sent.append((json.loads(key)["id"], value and json.loads(value)))

    def flush(self, within_s: float) -> int:
        return 0


def test_the_sink_sends_what_has_changed_and_what_has_gone(
    loaded: "psycopg.Connection[Any]", stack: Stack
) -> None:
    producer = FakeProducer()
    sink = feed_sink.Sink(
        KafkaEndpoint("nowhere"), cast(Any, PlainAvro()), lambda _: cast(Any, producer), 0.0
    )
    bring(loaded, change("purchases", 0, None, purchase(1, "6000.00")))
    sink.send_if_due(loaded)
    value = {"email": None, "lifetime_value": "12000.00", "purchases": 1}
    assert producer.sent == [(7, value)]
    sink.rows_have_changed()
    sink.send_if_due(loaded)
    assert len(producer.sent) == 1  # nothing is new
    bring(loaded, change("users", 0, None, user(7)))
    sink.send_if_due(loaded)
    assert len(producer.sent) == 1  # `rows_have_changed` was not called
    sink.rows_have_changed()
    sink.send_if_due(loaded)
    assert producer.sent[1:] == [(7, {**value, "email": "a@b"})]
    bring(loaded, change("purchases", 1, purchase(1, "6000.00"), purchase(1, "5000.00")))
    sink.rows_have_changed()
    sink.send_if_due(loaded)
    assert producer.sent[2:] == [(7, None)]  # 10,000 is not enough for high value


def test_the_sink_is_read_back(loaded: "psycopg.Connection[Any]", stack: Stack) -> None:
    def sent(at: int, number: int, value: object) -> Message:
        body = None if value is None else json.dumps(value).encode()
        return Message(feed_sink.TOPIC, 0, at, json.dumps({"id": number}).encode(), body)

    value = {"email": None, "lifetime_value": "12000.00", "purchases": 1}
    bring(loaded, sent(0, 7, value), sent(1, 8, value))
    bring(loaded, sent(2, 7, None))
    expected = {**value, "id": 8, "lifetime_value": Decimal("12000.00")}
    assert rows(stack, "hvu_test") == [expected]


def test_what_is_not_framed_is_no_avro() -> None:
    with pytest.raises(ValueError, match="not framed"):
        Avro("http://127.0.0.1:1").decode(b'{"id": 1}')
