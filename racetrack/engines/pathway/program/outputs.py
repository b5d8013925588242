"""Writes views to upsert topics: the last message of a key is its row, and a message without a
value deletes it."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from racetrack.kafka_endpoint import KafkaEndpoint

WAIT_S = 0.1
FLUSH_WITHIN_S = 10.0
# A key, and its new value or None; without a key, a row that is added.
Send = Callable[[bytes | None, bytes | None], None]
Row = Mapping[str, Any]


# Returns JSON without blanks, as the harness expects it.
text = json.JSONEncoder(separators=(",", ":")).encode


def decimal(cents: int) -> str:
    """Return an amount of cents as decimal text."""
    return f"{'-' * (cents < 0)}{abs(cents) // 100}.{abs(cents) % 100:02}"


class Changes:
    """Changes of a view in one minibatch. Pathway reports a changed row as a deletion and an
    insertion, in any order, so only at the end of the minibatch it is known which keys are gone."""

    def __init__(
        self,
        send: Send,
        key: Sequence[str],
        money: Collection[str] = (),
        after: Callable[[], object] = lambda: None,
    ) -> None:
        """Collect changes of a view with these key columns. The columns `money` are in cents.
        `after` is called after changes were sent."""
        self._send, self._key, self._money, self._after = send, key, money, after
        self._rows: dict[tuple[Any, ...], Row | None] = {}

    # The names of the arguments are Pathway's.
    def on_change(self, key: object, row: Row, time: int, is_addition: bool) -> None:  # noqa: ARG002
        """Record an inserted or deleted row."""
        name = tuple([row[column] for column in self._key])
        if is_addition:
            self._rows[name] = row
        else:
            self._rows.setdefault(name, None)

    def on_time_end(self, time: int) -> None:  # noqa: ARG002
        """Send the changes of the minibatch."""
        rows, self._rows = self._rows, {}
        # Deletions first: a reader in between must not find more rows in a top list than its limit.
        for key, row in sorted(rows.items(), key=lambda change: change[1] is not None):
            self._send(text(key).encode(), None if row is None else self._value(row))
        if rows:
            self._after()

    def _value(self, row: Row) -> bytes:
        named = _named(row)
        for column in self._money:
            if named[column] is not None:
                named[column] = decimal(named[column])
        return text(named).encode()


class Additions:
    """Rows of a view to which rows are only added."""

    def __init__(self, send: Send, after: Callable[[], object]) -> None:
        """Send the rows. `after` is called after those of a minibatch were sent."""
        self._send, self._after, self._has_sent = send, after, False

    # The names of the arguments are Pathway's.
    def on_change(self, key: object, row: Row, time: int, is_addition: bool) -> None:  # noqa: ARG002
        """Send a row."""
        if not is_addition:
            raise RuntimeError(f"the row {row} was deleted from a view whose rows stay")
        self._send(None, text(_named(row)).encode())
        self._has_sent = True

    def on_time_end(self, time: int) -> None:  # noqa: ARG002
        """Call `after` if the minibatch had rows."""
        if self._has_sent:
            self._has_sent = False
            self._after()


class Topics:
    """Producer of the views' topics."""

    def __init__(self, kafka: KafkaEndpoint, ready: Path) -> None:
        """`ready` is a file that `report_ready` creates."""
        self._kafka, self._ready = kafka, ready
        self._producer = Producer(kafka.librdkafka())

    def sender(self, name: str) -> Send:
        """Return a function that sends messages to a topic."""
        topic, produce = self._kafka.topic(name), self._producer.produce

        def send(key: bytes | None, value: bytes | None) -> None:
            while True:
                try:
                    return produce(topic, value, key, on_delivery=_require_delivered)
                except BufferError:  # the producer's queue is full
                    self._producer.poll(WAIT_S)

        return send

    def poll(self) -> None:
        """Raise an error if a message was not delivered."""
        self._producer.poll(0)

    def report_ready(self) -> None:
        """Create the file `ready` as soon as what was sent is in Kafka."""
        self.poll()
        if not self._ready.exists():
            self._producer.flush(FLUSH_WITHIN_S)
            self._ready.touch()


def _named(row: Row) -> dict[str, Any]:
    return {column.rstrip("_"): value for column, value in row.items()}


def _require_delivered(error: KafkaError | None, message: Message) -> None:
    if error:
        raise RuntimeError(f"{message.topic()}: {error}")
