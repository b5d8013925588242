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
_ASK_MS = 2_000


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
    """Have both topics ready by `deadline_s` (time.monotonic()).

    KafkaError if not, ConfigError if a topic has the wrong shape.
    """
    client = Client(
        library,
        {
            **producer_settings(config),
            "acks": "all",
            "enable.idempotence": "true",
            "linger.ms": "0",
        },
    )
    try:
        found = _wait_for_partitions(config, client, config.topic, deadline_s, log)
        if found and found != config.partitions:
            raise ConfigError(
                f"Topic {config.topic} has {found} partitions, "
                f"and PAGEVIEWS_PARTITIONS is {config.partitions}. "
                f"Set PAGEVIEWS_PARTITIONS={found}, or delete the topic and start again."
            )
        if not found:
            _create(config, client, config.topic, config.partitions, deadline_s, log)
        if not _wait_for_partitions(config, client, FLAGGED_TOPIC, deadline_s, log):
            _create(config, client, FLAGGED_TOPIC, 1, deadline_s, log)
        _seed_flagged(config, library, client, deadline_s, log)
    finally:
        client.close()


def _wait_for_partitions(
    config: Config, client: Client, topic: str, deadline_s: float, log: Callable[[str], None]
) -> int:
    """A topic's number of partitions, 0 if it does not exist."""
    said_s = time.monotonic()
    while True:
        try:
            return client.partition_count(topic, deadline_ms(deadline_s, _ASK_MS)) or 0
        except KafkaError as error:
            if time.monotonic() > deadline_s:
                raise KafkaError(
                    f"Kafka at {config.kafka_bootstrap} did not answer "
                    f"in {config.start_timeout_s} s: {error}. Start it, or set KAFKA_BOOTSTRAP."
                ) from error
            if time.monotonic() - said_s > 5:
                said_s = time.monotonic()
                log(f"Waiting for Kafka at {config.kafka_bootstrap}: {error}")


def _create(
    config: Config,
    client: Client,
    topic: str,
    partitions: int,
    deadline_s: float,
    log: Callable[[str], None],
) -> None:
    """Create a topic, and wait until the broker shows it: an engine that subscribes too early would
    find nothing.
    """
    client.create_topic(topic, partitions, deadline_ms(deadline_s, 30_000))
    while _wait_for_partitions(config, client, topic, deadline_s, log) != partitions:
        if time.monotonic() > deadline_s:
            raise KafkaError(
                f"Topic {topic} was created, but the broker does not show it. See the broker's log."
            )
        time.sleep(0.02)
    log(f"Created topic {topic} with {partitions} partition{'s' if partitions > 1 else ''}")


def _seed_flagged(
    config: Config, library: Library, client: Client, deadline_s: float, log: Callable[[str], None]
) -> None:
    if _end_offset(client, deadline_s) > 0:
        return
    ids = [
        b"%d" % user
        for user in flagged_profiles(config.seed, config.users, config.flagged_profiles)
    ]
    texts = [library.ffi.new("char[]", text) for text in ids]
    messages = library.ffi.new("rd_kafka_message_t[]", len(ids))
    for message, text in zip(messages, texts):
        message.payload = message.key = text
        message.len = message.key_len = len(text) - 1
    accepted = client.produce(client.topic(FLAGGED_TOPIC), 0, messages, len(ids))
    left = not client.flush(deadline_ms(deadline_s, 30_000))
    failed, errors = client.poll()
    if accepted.taken != len(ids) or left or failed:
        raise KafkaError(
            f"Topic {FLAGGED_TOPIC} could not be filled: "
            f"{'; '.join(errors) or 'the broker did not answer in time'}"
        )
    log(f"Seeded topic {FLAGGED_TOPIC} with {len(ids)} user ids")


def _end_offset(client: Client, deadline_s: float) -> int:
    """The flagged topic's end offset; a new partition may need a moment until it has a leader."""
    while True:
        try:
            return client.end_offset(FLAGGED_TOPIC, 0, deadline_ms(deadline_s, _ASK_MS))
        except KafkaError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.02)
