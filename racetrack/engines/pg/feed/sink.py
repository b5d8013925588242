"""Sink: sends changes of PostgreSQL's view `high_value_users` to Kafka."""

import time
from collections.abc import Callable
from typing import Any

import psycopg
from confluent_kafka import KafkaError, Message, Producer

from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.stack.avro import Avro

TOPIC = "high_value_users_sink"
SEND_EVERY_S = 1.0
FLUSH_WITHIN_S = 10.0
MESSAGE_MAX_BYTES = 9 << 20  # the broker's limit
KEY = {
    "type": "record",
    "name": f"{TOPIC}_key",
    "fields": [{"name": "id", "type": "long"}],
}
VALUE = {
    "type": "record",
    "name": f"{TOPIC}_value",
    "fields": [
        {"name": "email", "type": ["null", "string"]},
        {
            "name": "lifetime_value",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2},
        },
        {"name": "purchases", "type": "long"},
    ],
}
TO_SEND = "SELECT id, gone, email, lifetime_value, purchases FROM high_value_users_to_send"
NOTE = """
INSERT INTO high_value_users_sent VALUES (%s, %s, %s, %s)
ON CONFLICT (id) DO UPDATE
SET email = excluded.email, lifetime_value = excluded.lifetime_value, purchases = excluded.purchases
"""
FORGET = "DELETE FROM high_value_users_sent WHERE id = %s"


class Sink:
    """Sends the changes of the view, and records in PostgreSQL afterwards which rows were sent. As
    a consequence, a change may be sent twice after a crash, but no change is lost."""

    def __init__(
        self,
        kafka: KafkaEndpoint,
        avro: Avro,
        open_producer: Callable[[dict[str, Any]], Producer] = Producer,
        send_every_s: float = SEND_EVERY_S,
    ) -> None:
        self._producer = open_producer(kafka.librdkafka({"message.max.bytes": MESSAGE_MAX_BYTES}))
        self._topic, self._send_every_s = kafka.topic(TOPIC), send_every_s
        self._avro = avro
        self._key = avro.register(f"{self._topic}-key", KEY)
        self._value = avro.register(f"{self._topic}-value", VALUE)
        self._stale, self._due_s = True, 0.0

    def rows_have_changed(self) -> None:
        """Record that rows have changed, so that the next `send_if_due` looks for changes to
        send."""
        self._stale = True

    def send_if_due(self, connection: "psycopg.Connection[Any]") -> None:
        """Send the changes since the last call, at most once per `send_every_s`.

        Raises:
            RuntimeError: Kafka did not accept a message.
        """
        if not self._stale or time.monotonic() < self._due_s:
            return
        self._stale, self._due_s = False, time.monotonic() + self._send_every_s
        rows = connection.execute(TO_SEND).fetchall()
        for number, gone, email, lifetime_value, purchases in rows:
            value = {"email": email, "lifetime_value": lifetime_value, "purchases": purchases}
            self._producer.produce(
                self._topic,
                key=self._avro.encode(self._key, {"id": number}),
                value=None if gone else self._avro.encode(self._value, value),
                on_delivery=_must_be_delivered,
            )
        if left := self._producer.flush(FLUSH_WITHIN_S):
            raise RuntimeError(f"{TOPIC}: Kafka did not accept {left} messages in time")
        with connection.transaction(), connection.cursor() as cursor:
            cursor.executemany(FORGET, [row[:1] for row in rows if row[1]])
            cursor.executemany(NOTE, [(row[0], *row[2:]) for row in rows if not row[1]])


def _must_be_delivered(error: KafkaError | None, _message: Message) -> None:
    if error:
        raise RuntimeError(f"{TOPIC}: {error}")
