"""One record of the harness's own, there and back: does the broker take writes and keep them?"""

import time
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

# Nobody else reads it; it is made on purpose, since brokers may make none by themselves.
TOPIC = "racetrack-write-check"
# An error that the broker keeps answering for so long is its last word: what a partition that was
# just made answers while it gets a leader is over in less.
REFUSED_AFTER_S = 2.0
TRY_AGAIN_EVERY_S, LOOK_EVERY_S = 0.1, 0.05

Taken = TypeVar("Taken")


class NoAnswer(Exception):
    """The broker did not answer in time; the message says what the client saw."""


class Refused(Exception):
    """The broker answered that it does not take the record."""

    def __init__(self, error: KafkaError) -> None:
        super().__init__(f"{error.name()}: {error.str()}")
        self.code = error.code()


class OwnRecord:
    """Writes a record with acks=all and reads it back by its offset. `meanwhile` is called at
    every look and may raise to end the wait."""

    def __init__(self, bootstrap: str, meanwhile: Callable[[], None]) -> None:
        self._bootstrap, self._meanwhile = bootstrap, meanwhile
        self._seen, self._made = "nothing", False

    def there_and_back(self, within_s: float) -> None:
        """Write one, read it back.

        Raises:
            Refused: the broker will not have it.
            NoAnswer: it did not say so, nor that it has it, in `within_s`; or it has another one.
        """
        give_up = time.monotonic() + within_s
        self._make_topic(give_up)
        value = uuid.uuid4().bytes
        self._read(self._write(value, give_up), value, give_up)

    def _client(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self._bootstrap,
            "log_level": 0,  # what it would log is in `_seen`
            "error_cb": self._take_error,
        }

    def _take_error(self, error: KafkaError) -> None:
        self._seen = error.str()

    def _make_topic(self, give_up: float) -> None:
        """Once: the second record finds it there."""
        if self._made:
            return
        admin = AdminClient(self._client())
        self._until_taken(lambda: self._try_to_make(admin, give_up), give_up)
        self._made = True

    def _try_to_make(self, admin: AdminClient, give_up: float) -> tuple[KafkaError | None, None]:
        left_s = max(LOOK_EVERY_S, give_up - time.monotonic())
        topic = NewTopic(TOPIC, num_partitions=1, replication_factor=-1)
        made = admin.create_topics([topic], request_timeout=left_s)[TOPIC]
        while not made.done():
            self._wait(lambda: admin.poll(LOOK_EVERY_S), give_up)
        failure = made.exception()
        if not isinstance(failure, KafkaException):
            made.result()  # raises what is none of the broker's doing
            return None, None
        error: KafkaError = failure.args[0]
        return (None if error.code() == KafkaError.TOPIC_ALREADY_EXISTS else error), None

    def _write(self, value: bytes, give_up: float) -> int:
        """Its offset. Each try is one request, so that the broker's own answer is seen instead of
        the client's word that it gave up."""
        producer = Producer({**self._client(), "acks": "all", "retries": 0, "linger.ms": 0})
        try:
            return self._until_taken(lambda: self._try(producer, value, give_up), give_up)
        finally:
            producer.purge()

    def _until_taken(
        self, attempt: Callable[[], tuple[KafkaError | None, Taken]], give_up: float
    ) -> Taken:
        """What the first attempt without an error gives. A broker that just started answers errors
        that pass, to a record as to a topic."""
        refused_since_s: float | None = None
        while True:
            error, result = attempt()
            if error is None:
                return result
            if refused_since_s is None:
                refused_since_s = time.monotonic()
            elif time.monotonic() - refused_since_s > REFUSED_AFTER_S:
                self._judge(error)
            self._wait(lambda: time.sleep(TRY_AGAIN_EVERY_S), give_up, error)

    def _try(
        self, producer: Producer, value: bytes, give_up: float
    ) -> tuple[KafkaError | None, int]:
        told: list[tuple[KafkaError | None, int]] = []

        def take(error: KafkaError | None, message: Message) -> None:
            told.append((error, message.offset() or 0))

        producer.produce(TOPIC, value, partition=0, on_delivery=take)
        while not told:
            self._wait(lambda: producer.poll(LOOK_EVERY_S), give_up)
        return told[0]

    def _read(self, offset: int, value: bytes, give_up: float) -> None:
        consumer = Consumer({**self._client(), "group.id": TOPIC, "enable.auto.commit": False})
        try:
            consumer.assign([TopicPartition(TOPIC, 0, offset)])
            found: list[Message] = []
            while not found:
                self._wait(lambda: found.extend(consumer.consume(1, LOOK_EVERY_S)), give_up)
            if error := found[0].error():
                self._judge(error)
            if found[0].value() != value:
                raise NoAnswer(f"at offset {offset} of {TOPIC} it has another record than it took")
        finally:
            consumer.close()

    def _wait(
        self, look: Callable[[], object], give_up: float, error: KafkaError | None = None
    ) -> None:
        self._meanwhile()
        if time.monotonic() > give_up:
            if error:
                self._judge(error)
            raise NoAnswer(f"the client saw: {self._seen}")
        look()

    def _judge(self, error: KafkaError) -> None:
        """Errors of the client itself have negative numbers."""
        if error.code() < 0:
            raise NoAnswer(f"{error.name()}: {error.str()}")
        raise Refused(error)
