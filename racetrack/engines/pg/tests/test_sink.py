"""Tests of the baseline engine's sink, which sends changes to Kafka."""

import json
from typing import Any, cast

import pytest

from racetrack.engines.pg.feed import sink as feed_sink
from racetrack.engines.pg.tests.brought import (
    Loaded,
    PlainAvro,
    change,
    purchase,
    user,
)
from racetrack.kafka_endpoint import KafkaEndpoint

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


def test_the_sink_sends_what_has_changed_and_what_has_gone(loaded: Loaded) -> None:
    producer = FakeProducer()
    sink = feed_sink.Sink(
        KafkaEndpoint("nowhere"), cast(Any, PlainAvro()), lambda _: cast(Any, producer), 0.0
    )
    loaded.bring(change("purchases", 0, None, purchase(1, "6000.00")))
    sink.send_if_due(loaded.connection)
    value = {"email": None, "lifetime_value": "12000.00", "purchases": 1}
    assert producer.sent == [(7, value)]
    sink.rows_have_changed()
    sink.send_if_due(loaded.connection)
    assert len(producer.sent) == 1  # nothing is new
    loaded.bring(change("users", 0, None, user(7)))
    sink.send_if_due(loaded.connection)
    assert len(producer.sent) == 1  # `rows_have_changed` was not called
    sink.rows_have_changed()
    sink.send_if_due(loaded.connection)
    assert producer.sent[1:] == [(7, {**value, "email": "a@b"})]
    loaded.bring(change("purchases", 1, purchase(1, "6000.00"), purchase(1, "5000.00")))
    sink.rows_have_changed()
    sink.send_if_due(loaded.connection)
    assert producer.sent[2:] == [(7, None)]  # 10,000 is not enough for high value
