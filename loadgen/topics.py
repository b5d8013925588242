"""Prepares topics: waits for the broker, creates missing topics, and writes initial messages."""

from __future__ import annotations

import time
from typing import Callable

from loadgen.config import Config, ConfigError
from loadgen.rdkafka import Client, KafkaError, Library, deadline_ms, producer_settings
from loadgen.workload import Topic, Workload

LOG_EVERY_S = 5.0


def prepare(
    config: Config,
    workload: Workload,
    library: Library,
    deadline_s: float,
    log: Callable[[str], None],
) -> None:
    """Prepare all topics by `deadline_s` (a time of time.monotonic()).

    Raises KafkaError after the deadline, ConfigError if a topic has another number of partitions.
    """
    settings = {
        **producer_settings(config),
        "acks": "all",
        "enable.idempotence": "true",
        "linger.ms": "0",
    }
    client = Client(library, settings, config.topic_prefix)
    try:
        topics = _Topics(config, client, deadline_s, log)
        topics.create(workload.topic, config.partitions)
        for topic in workload.topics:
            topics.create(topic.name, 1)
        for topic in workload.topics:
            topics.fill(topic, library)
    finally:
        client.close()


class _Topics:
    """The broker's topics, with one deadline for all requests."""

    def __init__(
        self, config: Config, client: Client, deadline_s: float, log: Callable[[str], None]
    ) -> None:
        self._config, self._client, self._log = config, client, log
        self._deadline_s = deadline_s

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic unless it exists, and wait until the broker shows it: an engine that
        subscribes earlier would not find it."""
        found = self._partitions(topic)
        if found == partitions:
            return
        if found:
            raise ConfigError(
                f"Topic {topic} has {found} partitions, but EVENTS_PARTITIONS={partitions}. Set "
                f"EVENTS_PARTITIONS={found}, or delete the topic and start again."
            )
        replicas, within_ms = self._config.replication_factor, deadline_ms(self._deadline_s, 30_000)
        self._client.create_topic(topic, partitions, replicas, within_ms)
        while self._partitions(topic) != partitions:
            if time.monotonic() > self._deadline_s:
                raise KafkaError(
                    f"Topic {topic} was created, but the broker does not show it. See its log."
                )
            time.sleep(0.02)
        self._log(f"Created topic {topic}, partitions: {partitions}")

    def _partitions(self, topic: str) -> int:
        """Return a topic's number of partitions, 0 if it does not exist. Waits for the broker."""
        where = f"Kafka at {self._config.kafka_bootstrap}"
        logged_s = time.monotonic()
        while True:
            try:
                return self._client.partition_count(topic, self._ask_ms()) or 0
            except KafkaError as error:
                if time.monotonic() > self._deadline_s:
                    raise KafkaError(
                        f"{where} did not answer in {self._config.start_timeout_s} s: {error}. "
                        "Start it, or set KAFKA_BOOTSTRAP."
                    ) from error
                if time.monotonic() - logged_s > LOG_EVERY_S:
                    logged_s = time.monotonic()
                    self._log(f"Waiting for {where}: {error}")

    def fill(self, topic: Topic, library: Library) -> None:
        """Write the initial messages into a topic if it is empty."""
        if not topic.messages or self._end_offset(topic.name) > 0:
            return
        ffi = library.ffi
        texts = [ffi.new("char[]", text) for text in topic.messages]
        messages = ffi.new("rd_kafka_message_t[]", len(texts))
        for message, text in zip(messages, texts):
            message.payload = message.key = text
            message.len = message.key_len = len(text) - 1
        handle = self._client.topic(topic.name)
        accepted = self._client.produce(handle, 0, messages, len(texts))
        flushed = self._client.flush(deadline_ms(self._deadline_s, 30_000))
        failed, errors = self._client.poll()
        if accepted.taken != len(texts) or not flushed or failed:
            why = "; ".join(errors) or "the broker did not answer in time"
            raise KafkaError(f"Topic {topic.name} could not be filled: {why}")
        self._log(f"Seeded topic {topic.name} with {len(texts)} messages")

    def _end_offset(self, topic: str) -> int:
        """Return the end offset of partition 0; retry, since a new partition may have no leader
        yet."""
        while True:
            try:
                return self._client.end_offset(topic, 0, self._ask_ms())
            except KafkaError:
                if time.monotonic() > self._deadline_s:
                    raise
                time.sleep(0.02)

    def _ask_ms(self) -> int:
        return deadline_ms(self._deadline_s, 2_000)
