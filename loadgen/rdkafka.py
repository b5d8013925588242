"""Binding to librdkafka by cffi: a producer that takes whole batches for a partition, and the admin
calls that the generator needs.

cffi is part of PyPy, and its ABI mode needs no compiler. All structures used here belong to
librdkafka's stable ABI."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

from loadgen.config import Config, ConfigError

_ABI = Path(__file__).with_name("rdkafka_abi.h")
_PRODUCER = 0
_EVENT_DR, _EVENT_ERROR = 0x1, 0x8
_FLAG_COPY = 0x2
_QUEUE_FULL = -184
_UNKNOWN_TOPIC, _TOPIC_EXISTS = 3, 36
_ADMIN_CREATE_TOPICS = 1
_PURGE_QUEUED_AND_IN_FLIGHT = 0x3


class KafkaError(Exception):
    """The broker or librdkafka refused a request. The message is one line for the user."""


class Accepted(NamedTuple):
    """Result of a batch, in messages. librdkafka accepted `taken`, and rejected `rejected` with an
    error (`why`) that a retry would not solve. The queue was full for the rest, which can be
    retried in order. The first `used` = taken + rejected messages are settled."""

    taken: int
    rejected: int
    why: str

    @property
    def used(self) -> int:
        return self.taken + self.rejected


class Library:
    """The loaded librdkafka. Raises ConfigError, with the remedy, if it can't be loaded."""

    def __init__(self, path: str) -> None:
        # Imported here, so that the rest of the package can be tested without cffi.
        from cffi import FFI  # type: ignore[import-untyped]

        self.ffi: Any = FFI()
        self.ffi.cdef(_ABI.read_text())
        try:
            self.lib: Any = self.ffi.dlopen(path)
        except OSError as error:
            raise ConfigError(
                f"librdkafka can't be loaded from {path!r} ({error}). "
                "Set LIBRDKAFKA to the path of librdkafka.so.1, "
                "or install it (Debian: apt-get install librdkafka1)."
            ) from error

    def text(self, chars: Any) -> str:
        """Return a C string as text, "" for NULL."""
        return "" if chars == self.ffi.NULL else self.ffi.string(chars).decode("utf-8", "replace")

    def error(self, code: int) -> str:
        """Return the text of an error code."""
        return self.text(self.lib.rd_kafka_err2str(code))

    def version(self) -> str:
        """Return librdkafka's version."""
        return self.text(self.lib.rd_kafka_version_str())

    def partition_keys(self, count: int, partitions: int) -> list[list[int]]:
        """Return the keys of 1..count that go to each partition, by the murmur2 hash of their
        decimal text, as in Kafka's Java client."""
        table: list[list[int]] = [[] for _ in range(partitions)]
        null = self.ffi.NULL
        for number in range(1, count + 1):
            key = b"%d" % number
            table[
                self.lib.rd_kafka_msg_partitioner_murmur2(
                    null, key, len(key), partitions, null, null
                )
            ].append(number)
        return table


def producer_settings(config: Config) -> dict[str, str]:
    """Return librdkafka's settings.

    Lag is computed from the order of messages within a partition, so retries must preserve the
    order. Idempotence preserves it with acks=all, and a single request in flight with acks=1."""
    settings = {
        **config.kafka_client,
        "bootstrap.servers": config.kafka_bootstrap,
        "client.id": "loadgen",
        "acks": config.acks,
        "linger.ms": f"{config.linger_ms:g}",
        "batch.size": str(config.batch_bytes),
        "batch.num.messages": str(config.batch_messages),
        "queue.buffering.max.messages": str(config.queue_messages),
        "queue.buffering.max.kbytes": str(config.queue_kbytes),
        "message.timeout.ms": str(config.message_timeout_ms),
        "delivery.report.only.error": "true",
        "reconnect.backoff.max.ms": "1000",
        "log_level": "0",  # errors arrive as events and go to the generator's log
    }
    if config.acks == "all":
        settings["enable.idempotence"] = "true"
    if config.acks == "1":
        settings["max.in.flight.requests.per.connection"] = "1"
    return settings


class Client:
    """A librdkafka producer. `poll` returns the errors of its background threads."""

    def __init__(self, library: Library, settings: dict[str, str], topic_prefix: str = "") -> None:
        """Create a client, whose methods add `topic_prefix` to the names of topics."""
        self._prefix = topic_prefix
        self._library, self._ffi, self._lib = library, library.ffi, library.lib
        text = self._ffi.new("char[512]")
        conf = self._lib.rd_kafka_conf_new()
        for name, value in settings.items():
            if self._lib.rd_kafka_conf_set(conf, name.encode(), value.encode(), text, 512) != 0:
                raise ConfigError(
                    f"librdkafka {library.version()} refuses {name}: {library.text(text)}"
                )
        self._lib.rd_kafka_conf_set_events(conf, _EVENT_DR | _EVENT_ERROR)
        self._handle = self._lib.rd_kafka_new(_PRODUCER, conf, text, 512)
        if self._handle == self._ffi.NULL:
            raise ConfigError(f"librdkafka {library.version()} can't start: {library.text(text)}")
        self._events = self._lib.rd_kafka_queue_get_main(self._handle)
        self._topics: dict[str, Any] = {}

    def close(self) -> None:
        """Free the handle. Queued messages are dropped, so flush first."""
        self._lib.rd_kafka_queue_destroy(self._events)
        self._lib.rd_kafka_destroy(self._handle)

    def topic(self, name: str) -> Any:
        """Return the handle of a topic."""
        if name not in self._topics:
            self._topics[name] = self._lib.rd_kafka_topic_new(
                self._handle, self._full(name), self._ffi.NULL
            )
        return self._topics[name]

    def produce(self, topic: Any, partition: int, messages: Any, count: int) -> Accepted:
        """Hand the first `count` of `messages` to librdkafka, which copies them."""
        taken = self._lib.rd_kafka_produce_batch(topic, partition, _FLAG_COPY, messages, count)
        if taken == count:
            return Accepted(taken, 0, "")
        rejected, why = 0, ""
        for i in range(count):
            code = messages[i].err
            if code == _QUEUE_FULL:
                break  # librdkafka refuses all later messages too, which preserves the order
            if code:
                rejected, why = rejected + 1, self._library.error(code)
        return Accepted(taken, rejected, why)

    def queued(self) -> int:
        """Return the number of unsent messages and unpolled events."""
        return int(self._lib.rd_kafka_outq_len(self._handle))

    def flush(self, timeout_ms: int) -> bool:
        """Send without lingering for up to `timeout_ms`; return whether everything was sent."""
        return bool(self._lib.rd_kafka_flush(self._handle, timeout_ms) == 0)

    def purge(self) -> None:
        """Drop all unsent messages; `poll` reports them as undeliverable."""
        self._lib.rd_kafka_purge(self._handle, _PURGE_QUEUED_AND_IN_FLIGHT)

    def poll(self, of: Any = None) -> tuple[list[int], list[str]]:
        """Return the partitions of accepted messages that were not delivered, and error texts,
        since the last call. `of` is the handle of the topic whose partitions are returned; None:
        those of all topics."""
        failed: list[int] = []
        errors: list[str] = []
        while True:
            event = self._lib.rd_kafka_queue_poll(self._events, 0)
            if event == self._ffi.NULL:
                return failed, errors
            if self._lib.rd_kafka_event_type(event) == _EVENT_ERROR:
                errors.append(self._library.text(self._lib.rd_kafka_event_error_string(event)))
            else:
                self._collect_failed(event, of, failed, errors)
            self._lib.rd_kafka_event_destroy(event)

    def _collect_failed(self, event: Any, of: Any, failed: list[int], errors: list[str]) -> None:
        message = self._lib.rd_kafka_event_message_next(event)
        while message != self._ffi.NULL:
            if message.err:
                if not failed:
                    errors.append(f"not delivered: {self._library.error(message.err)}")
                if of is None or message.rkt == of:
                    failed.append(message.partition)
            message = self._lib.rd_kafka_event_message_next(event)

    def partition_count(self, topic: str, timeout_ms: int) -> int | None:
        """Return the number of partitions of a topic, None if it does not exist.

        Raises KafkaError if the broker does not answer.
        """
        found = self._ffi.new("rd_kafka_metadata_t const **")
        code = self._lib.rd_kafka_metadata(self._handle, 0, self.topic(topic), found, timeout_ms)
        if code:
            raise KafkaError(self._library.error(code))
        try:
            answer = found[0].topics[0]
            if answer.err == _UNKNOWN_TOPIC:
                return None
            if answer.err:
                raise KafkaError(f"topic {topic}: {self._library.error(answer.err)}")
            return int(answer.partition_cnt)
        finally:
            self._lib.rd_kafka_metadata_destroy(found[0])

    def end_offset(self, topic: str, partition: int, timeout_ms: int) -> int:
        """Return the end offset of a partition."""
        low, high = self._ffi.new("int64_t *"), self._ffi.new("int64_t *")
        code = self._lib.rd_kafka_query_watermark_offsets(
            self._handle, self._full(topic), partition, low, high, timeout_ms
        )
        if code:
            raise KafkaError(f"end offset of {topic}/{partition}: {self._library.error(code)}")
        return int(high[0])

    def _full(self, topic: str) -> bytes:
        return f"{self._prefix}{topic}".encode()

    def create_topic(self, name: str, partitions: int, replicas: int, timeout_ms: int) -> None:
        """Create a topic, unless it exists. With -1 replicas, it has the broker's default."""
        text = self._ffi.new("char[512]")
        topic = self._lib.rd_kafka_NewTopic_new(self._full(name), partitions, replicas, text, 512)
        if topic == self._ffi.NULL:
            raise KafkaError(f"topic {name}: {self._library.text(text)}")
        options = self._lib.rd_kafka_AdminOptions_new(self._handle, _ADMIN_CREATE_TOPICS)
        self._lib.rd_kafka_AdminOptions_set_operation_timeout(options, timeout_ms, text, 512)
        answers = self._lib.rd_kafka_queue_new(self._handle)
        self._lib.rd_kafka_CreateTopics(
            self._handle, self._ffi.new("rd_kafka_NewTopic_t *[1]", [topic]), 1, options, answers
        )
        event = self._lib.rd_kafka_queue_poll(answers, timeout_ms + 5_000)
        try:
            self._check_created(name, event)
        finally:
            if event != self._ffi.NULL:
                self._lib.rd_kafka_event_destroy(event)
            self._lib.rd_kafka_queue_destroy(answers)
            self._lib.rd_kafka_AdminOptions_destroy(options)
            self._lib.rd_kafka_NewTopic_destroy(topic)

    def _check_created(self, name: str, event: Any) -> None:
        if event == self._ffi.NULL:
            raise KafkaError(f"creating topic {name}: the broker did not answer in time")
        if self._lib.rd_kafka_event_error(event):
            raise KafkaError(
                f"creating topic {name}: "
                f"{self._library.text(self._lib.rd_kafka_event_error_string(event))}"
            )
        result = self._lib.rd_kafka_CreateTopics_result_topics(event, self._ffi.new("size_t *"))[0]
        if self._lib.rd_kafka_topic_result_error(result) not in (0, _TOPIC_EXISTS):
            raise KafkaError(
                f"creating topic {name}: "
                f"{self._library.text(self._lib.rd_kafka_topic_result_error_string(result))}"
            )


def deadline_ms(deadline_s: float, at_most_ms: int) -> int:
    """Return the milliseconds until a time of time.monotonic(), between 1 and `at_most_ms`."""
    return max(1, min(at_most_ms, int((deadline_s - time.monotonic()) * 1000)))
