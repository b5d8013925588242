"""The topics, before anything is produced: waiting for the broker, creating what is missing,
seeding the flagged profiles.
"""

from __future__ import annotations

import time
from typing import Callable

from loadgen.config import Config, ConfigError
from loadgen.rdkafka import Client, KafkaError, Library, deadline_ms, producer_settings
from loadgen.sequence import Stream, pick

FLAGGED_TOPIC = "dd_flagged_profiles"
# Where a demo may send its high-value users. It is there beforehand, so that reading it back can
# begin before anything has been written to it.
SINK_TOPIC = "high-value-users-sink"
SAY_EVERY_S = 5.0


def flagged_profiles(seed: int, users: int, count: int) -> list[int]:
    """`count` distinct user ids."""
    stream = Stream(seed, "flagged profiles")
    ids = list(range(1, users + 1))
    for i in range(count):
        j = i + pick(stream.draw(i)[0], users - i)
        ids[i], ids[j] = ids[j], ids[i]
    return ids[:count]


def prepare(
    config: Config, library: Library, deadline_s: float, log: Callable[[str], None]
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
        topics.have(config.topic, config.partitions)
        topics.have(FLAGGED_TOPIC, 1)
        topics.have(SINK_TOPIC, 1)
        topics.fill_flagged(library)
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
        said_s = time.monotonic()
        while True:
            try:
                return self._client.partition_count(topic, self._ask_ms()) or 0
            except KafkaError as error:
                if time.monotonic() > self._deadline_s:
                    raise KafkaError(
                        f"{where} did not answer in {self._config.start_timeout_s} s: {error}. "
                        "Start it, or set KAFKA_BOOTSTRAP."
                    ) from error
                if time.monotonic() - said_s > SAY_EVERY_S:
                    said_s = time.monotonic()
                    self._log(f"Waiting for {where}: {error}")

    def fill_flagged(self, library: Library) -> None:
        """Put the flagged user ids into their topic, if it is empty."""
        if self._flagged_end_offset() > 0:
            return
        config, ffi = self._config, library.ffi
        users = flagged_profiles(config.seed, config.users, config.flagged_profiles)
        texts = [ffi.new("char[]", b"%d" % user) for user in users]
        messages = ffi.new("rd_kafka_message_t[]", len(texts))
        for message, text in zip(messages, texts):
            message.payload = message.key = text
            message.len = message.key_len = len(text) - 1
        topic = self._client.topic(FLAGGED_TOPIC)
        accepted = self._client.produce(topic, 0, messages, len(texts))
        flushed = self._client.flush(deadline_ms(self._deadline_s, 30_000))
        failed, errors = self._client.poll()
        if accepted.taken != len(texts) or not flushed or failed:
            why = "; ".join(errors) or "the broker did not answer in time"
            raise KafkaError(f"Topic {FLAGGED_TOPIC} could not be filled: {why}")
        self._log(f"Seeded topic {FLAGGED_TOPIC} with {len(texts)} user ids")

    def _flagged_end_offset(self) -> int:
        """The flagged topic's end offset; a new partition may need a moment to get a leader."""
        while True:
            try:
                return self._client.end_offset(FLAGGED_TOPIC, 0, self._ask_ms())
            except KafkaError:
                if time.monotonic() > self._deadline_s:
                    raise
                time.sleep(0.02)

    def _ask_ms(self) -> int:
        return deadline_ms(self._deadline_s, 2_000)
