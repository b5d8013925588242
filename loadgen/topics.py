"""The topics, before anything is produced: waiting for the broker, creating what is missing, and
filling those that begin with messages.
"""

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
    """Have all topics ready by `deadline_s` (a time of time.monotonic()).

    KafkaError if the broker does not do its part by then, ConfigError if a topic has another shape
    than the settings say.
    """
    settings = {
        **producer_settings(config),
        "acks": "all",
        "enable.idempotence": "true",
        "linger.ms": "0",
    }
    client = Client(library, settings)
    try:
        topics = _Topics(config, client, deadline_s, log)
        topics.have(workload.topic, config.partitions)
        for topic in workload.topics:
            topics.have(topic.name, 1)
        for topic in workload.topics:
            topics.fill(topic, library)
    finally:
        client.close()


class _Topics:
    """The broker's topics, and a deadline for everything that is asked of it."""

    def __init__(
        self, config: Config, client: Client, deadline_s: float, log: Callable[[str], None]
    ) -> None:
        self._config, self._client, self._log = config, client, log
        self._deadline_s = deadline_s

    def have(self, topic: str, partitions: int) -> None:
        """Create a topic unless it is there, and wait until the broker shows it: an engine that
        subscribes too early would find nothing.
        """
        found = self._partitions(topic)
        if found == partitions:
            return
        if found:
            raise ConfigError(
                f"Topic {topic} has {found} partitions, and {partitions} are asked for. Set "
                f"PAGEVIEWS_PARTITIONS={found}, or delete the topic and start again."
            )
        self._client.create_topic(topic, partitions, deadline_ms(self._deadline_s, 30_000))
        while self._partitions(topic) != partitions:
            if time.monotonic() > self._deadline_s:
                raise KafkaError(
                    f"Topic {topic} was created, but the broker does not show it. See its log."
                )
            time.sleep(0.02)
        self._log(f"Created topic {topic}, partitions: {partitions}")

    def _partitions(self, topic: str) -> int:
        """A topic's number of partitions, 0 if it does not exist. Waits for the broker."""
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
        """Put its first messages into a topic that is empty."""
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
        """Where the topic's one partition ends; a new one may need a moment to get a leader."""
        while True:
            try:
                return self._client.end_offset(topic, 0, self._ask_ms())
            except KafkaError:
                if time.monotonic() > self._deadline_s:
                    raise
                time.sleep(0.02)

    def _ask_ms(self) -> int:
        return deadline_ms(self._deadline_s, 2_000)
