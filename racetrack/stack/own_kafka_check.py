"""Check of a Kafka that the user provides, in at most ten seconds and before anything is started.

The check performs once each operation that a run performs often: create a topic, write with
acks=all, read, commit, describe and delete. The timestamps of acknowledged writes also show the
difference between the broker's clock and this machine's.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from racetrack.errors import UsageError
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.stack.contract import ServiceClock
from racetrack.stack.elsewhere import (
    CLOCK_WITHIN_S,
    ClockReading,
    Failure,
    Passed,
    Stopwatch,
    clock_by,
    refused,
)

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message
    from confluent_kafka.admin import AdminClient

WITHIN_S = 10.0
NAME = "racetrack-check"  # of the check's topic and of its consumer group
GROUP = {"group.id": NAME, "enable.auto.commit": False}
# To measure the clock, the check writes CLOCK_RECORDS records for each number of records in flight,
# one every CLOCK_EVERY_S seconds. Several numbers are tried, because the fastest acknowledgement
# counts: with one record in flight, a broker that was idle for 40 ms takes three times as long to
# acknowledge it as a busy broker; with many, records wait for each other on a busy machine.
CLOCK_RECORDS, CLOCK_IN_FLIGHT, CLOCK_EVERY_S = 25, (1, 2, 4, 8), 0.002
BATCH_BYTES = 1_000_000  # largest batch of the generator's client
RETENTION_MS = 3_600_000


def check(kafka: KafkaEndpoint, within_s: float = WITHIN_S) -> Passed:
    """Check that a run can use this Kafka; remove what the check created.

    Raises:
        SetupError: a run can't use it; the message has a line for each reason.
        UsageError: a property of clients is unknown or malformed.
    """
    from confluent_kafka import KafkaException

    try:
        found = _Check(kafka, within_s)
    except KafkaException as error:
        raise UsageError(
            f"KAFKA_CLIENT_PROPERTIES: librdkafka can't use it: {error.args[0].str()}. Correct the"
            " file."
        ) from None
    found.run()
    if found.failures:
        raise refused("Kafka", str(kafka), found.failures)
    return Passed(tuple(found.passed), found.clock)


class _Check:
    def __init__(self, kafka: KafkaEndpoint, within_s: float) -> None:
        from confluent_kafka.admin import AdminClient

        self._kafka, self._within_s = kafka, within_s
        self._give_up_s = time.monotonic() + within_s
        self._topic, self._group = kafka.topic(NAME), kafka.topic(NAME)
        self._heard: list[KafkaError] = []
        self._admin = AdminClient(self._client())
        self.failures: list[Failure] = []
        self.passed: list[str] = []
        self.clock: ServiceClock | None = None

    def run(self) -> None:
        """Try all operations. After a failure, skip the operations that depend on the failed
        one."""
        admin = self._admin
        if not self._try("reach it", lambda: admin.list_topics(timeout=self._left_s() / 2)):
            return
        if not self._try("create topics", lambda: self._create(admin), "CREATE on topics"):
            return
        (
            self._try("write with acks=all", self._write, "WRITE on topics")
            and self._try("read", self._read, "READ on topics")
            and self._try(
                "commit offsets", partial(self._patiently, self._commit), "READ on groups"
            )
            and self._try(
                "remove groups", partial(self._patiently, self._remove_group), "DELETE on groups"
            )
        )
        self._try("describe topics", lambda: self._limits(admin), "DESCRIBE_CONFIGS on topics")
        self._try("remove topics", lambda: self._remove(admin), "DELETE on topics")

    def _left_s(self) -> float:
        return max(0.1, self._give_up_s - time.monotonic())

    def _client(self, own: Mapping[str, Any] | None = None) -> dict[str, Any]:
        quiet = {"log_level": 0, "error_cb": self._heard.append}
        return self._kafka.librdkafka({**quiet, **(own or {})})

    def _try(self, what: str, operation: Callable[[], object], right: str = "") -> bool:
        """Perform an operation; note whether it succeeded."""
        from confluent_kafka import KafkaException

        self._heard.clear()
        try:
            operation()
        except KafkaException as error:
            self.failures.append(self._failure(what, error.args[0], right))
        except TimeoutError:
            self.failures.append(self._timed_out(what))
        except _Unfit as unfit:
            self.failures.append(unfit.failure)
        else:
            self.passed.append(what)
            return True
        return False

    def _failure(self, what: str, error: "KafkaError", right: str) -> Failure:
        """Return the failure of an operation. `right` is the right that it needs on names with the
        prefix."""
        from confluent_kafka import KafkaError

        self._admin.poll(0)  # calls `error_cb`
        specific = [each for each in self._heard if each.code() in _causes()]
        error = specific[0] if specific and error.code() < 0 else error
        answer = f"can't {what}: {error.name()}: {error.str()}"
        forbidden = {
            KafkaError.TOPIC_AUTHORIZATION_FAILED,
            KafkaError.GROUP_AUTHORIZATION_FAILED,
            KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        }
        if error.code() in forbidden:
            names = f"{self._kafka.topic_prefix}*"
            return Failure(
                "KAFKA_TOPIC_PREFIX", answer, f"Give the user the right {right} named {names}"
            )
        setting, remedy = _causes().get(error.code(), _OTHER)
        return Failure(setting, answer, remedy)

    def _timed_out(self, what: str) -> Failure:
        return Failure(
            "KAFKA_BOOTSTRAP_SERVERS",
            f"can't {what}: no answer within {self._within_s:g} s",
            "Its advertised addresses must be reachable from this machine",
        )

    def _create(self, admin: "AdminClient") -> None:
        from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

        config = {"message.timestamp.type": "LogAppendTime"}
        new = NewTopic(self._topic, 1, self._kafka.replication_factor, config=config)
        admin.create_topics([new], operation_timeout=self._left_s())[self._topic].result(
            self._left_s()
        )

    def _write(self) -> None:
        """Write some records, and compare the broker's clock with this machine's."""
        with _producer(self._client({"acks": "all", "retries": 0, "linger.ms": 0})) as write:
            # Write one record first: it also waits for metadata, and is repeated while the new
            # topic has no leader.
            self._patiently(lambda: write(self._topic, 1, 1, self._left_s() / 2))
            readings: list[ClockReading] = []
            for in_flight in CLOCK_IN_FLIGHT:
                within_s = min(CLOCK_WITHIN_S / len(CLOCK_IN_FLIGHT), self._left_s())
                readings += write(self._topic, CLOCK_RECORDS, in_flight, within_s)
            self.clock = clock_by("the broker", readings)

    def _patiently(self, operation: Callable[[], object]) -> None:
        """Repeat an operation while its error is temporary. Kafka returns such errors for a new
        topic, and for the first consumer group of a cluster."""
        from confluent_kafka import KafkaError, KafkaException

        from racetrack.kafka_client import is_retriable

        give_up_s = time.monotonic() + self._left_s() / 2
        while True:
            try:
                operation()
            except KafkaException as failure:
                error = failure.args[0]
                is_new = error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
                if not (is_new or is_retriable(error)) or time.monotonic() > give_up_s:
                    raise
                time.sleep(0.05)
            else:
                return

    def _read(self) -> None:
        from confluent_kafka import Consumer, KafkaException, TopicPartition

        with closing(Consumer(self._client(GROUP))) as consumer:
            consumer.assign([TopicPartition(self._topic, 0, 0)])
            message = consumer.poll(self._left_s() / 2)
            if message is None:
                raise TimeoutError
            if error := message.error():
                raise KafkaException(error)

    def _commit(self) -> None:
        from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

        offsets = ConsumerGroupTopicPartitions(self._group, [TopicPartition(self._topic, 0, 1)])
        futures = self._admin.alter_consumer_group_offsets(
            [offsets], request_timeout=self._left_s()
        )
        for each in futures[self._group].result(self._left_s()).topic_partitions:
            if each.error:
                raise KafkaException(each.error)

    def _remove_group(self) -> None:
        futures = self._admin.delete_consumer_groups([self._group], request_timeout=self._left_s())
        futures[self._group].result(self._left_s())

    def _limits(self, admin: "AdminClient") -> None:
        """Check that new topics allow large enough messages, and keep them long enough."""
        from confluent_kafka.admin import ConfigResource, ResourceType  # type: ignore[attr-defined]

        resource = ConfigResource(ResourceType.TOPIC, self._topic)
        futures = admin.describe_configs([resource], request_timeout=self._left_s())
        limits = {
            name: each.value for name, each in futures[resource].result(self._left_s()).items()
        }
        if int(limits["max.message.bytes"]) < BATCH_BYTES:
            raise _Unfit("max.message.bytes", limits, f"Raise it to {BATCH_BYTES} or more")
        if 0 <= int(limits["retention.ms"]) < RETENTION_MS:
            raise _Unfit("retention.ms", limits, "Engines and the verification read all messages")

    def _remove(self, admin: "AdminClient") -> None:
        futures = admin.delete_topics([self._topic], operation_timeout=self._left_s())
        futures[self._topic].result(self._left_s())


_PROPERTIES = "KAFKA_CLIENT_PROPERTIES"
_LOGIN = (_PROPERTIES, "Check sasl.username, sasl.password and sasl.mechanism")
_OTHER = (
    "KAFKA_BOOTSTRAP_SERVERS",
    "Check the address, and that security.protocol in KAFKA_CLIENT_PROPERTIES fits that port",
)


def _causes() -> dict[int, tuple[str, str]]:
    """Return error code → (the setting at fault, the remedy), for errors with a known cause."""
    from confluent_kafka import KafkaError

    return {
        KafkaError._RESOLVE: ("KAFKA_BOOTSTRAP_SERVERS", "Check the name of the host"),
        KafkaError._AUTHENTICATION: _LOGIN,
        KafkaError.SASL_AUTHENTICATION_FAILED: _LOGIN,
        KafkaError._SSL: (
            _PROPERTIES,
            "Name in ssl.ca.location the authority that signed the broker's certificate",
        ),
        KafkaError.INVALID_REPLICATION_FACTOR: (
            "KAFKA_REPLICATION_FACTOR",
            "Set it to the number of brokers at most",
        ),
        KafkaError.NOT_ENOUGH_REPLICAS: (
            "KAFKA_REPLICATION_FACTOR",
            "Set it to the topic's min.insync.replicas at least",
        ),
        KafkaError.TOPIC_ALREADY_EXISTS: (
            "KAFKA_TOPIC_PREFIX",
            "Another check runs, or was killed: remove its topic with `./race down`",
        ),
    }


class _Unfit(Exception):
    def __init__(self, name: str, limits: dict[str, str], remedy: str) -> None:
        self.failure = Failure(
            "KAFKA_BOOTSTRAP_SERVERS", f"new topics have {name}={limits[name]}", remedy
        )


Write = Callable[[str, int, int, float], Sequence[ClockReading]]


@contextmanager
def _producer(client: dict[str, Any]) -> Iterator[Write]:
    """Provide a function that writes records into a topic, at most `in_flight` at a time. It
    returns a reading of the broker's clock for each record that was acknowledged in time.

    The function raises KafkaException, or TimeoutError if no record was acknowledged.
    """
    from confluent_kafka import KafkaException, Producer

    producer = Producer(client)
    results: list[ClockReading] = []
    errors: list[KafkaError] = []

    def take(watch: Stopwatch, error: "KafkaError | None", message: "Message") -> None:
        at_ms = message.timestamp()[1]
        results.append(watch.reading(at_ms, at_ms + 1))  # the broker truncates to milliseconds
        errors.extend([error] if error else [])

    def write(topic: str, count: int, in_flight: int, within_s: float) -> Sequence[ClockReading]:
        results.clear()
        errors.clear()
        sent, give_up_s = 0, time.monotonic() + within_s
        while len(results) < count and not errors and time.monotonic() < give_up_s:
            if sent < min(count, len(results) + in_flight):
                on_delivery = partial(take, Stopwatch())
                producer.produce(topic, b"check", partition=0, on_delivery=on_delivery)
                sent += 1
                producer.poll(CLOCK_EVERY_S)
            else:
                producer.poll(0.05)
        if errors:
            raise KafkaException(errors[0])
        if not results:
            raise TimeoutError
        return list(results)

    try:
        yield write
    finally:
        producer.purge()
        producer.flush(0)
