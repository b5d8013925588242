"""Write check: find a broker that refuses or drops writes before anything is measured.

With acks=0 the generator never learns of an error. So the check writes one acknowledged record of
its own, compares the topic's size limit with the generator's batches, and waits until events
arrive. A slow or overloaded broker passes this check; the verdict judges its effect on the run.
Messages lost later are found from the end offsets at the end of the run.
"""

import contextlib
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from racetrack.clock import attempts
from racetrack.errors import RacetrackError
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.probes.broker import OffsetsError, TopicOffsets
from racetrack.probes.loadgen import Control
from racetrack.stack.contract import Endpoints
from racetrack.stack.processes import log_tail

TOPIC = "racetrack-write-check"
# The sum must stay below 10 s, as `check_writes` documents.
ACKNOWLEDGED_WITHIN_S, LIMIT_WITHIN_S, ARRIVED_WITHIN_S = 5.0, 0.5, 3.0
CHECK_EVERY_S = 0.05
# Largest batch of the generator's client (LOADGEN_BATCH_BYTES).
BATCH_BYTES = 1_000_000

TOO_LARGE = "it accepts no record of that size (max.message.bytes). Raise that"
TOO_FEW = "too few replicas are in sync. Set min.insync.replicas to 1 on a single broker"
NO_SPACE = (
    "its disk is full or broken, or has less free space than its limit (Redpanda:"
    " storage_min_free_bytes). Free space, or lower that limit"
)
FORBIDDEN = "this user may not write there. Allow it (ACLs)"
# Broker error code → reason and remedy.
REASONS: Mapping[int, str] = {
    KafkaError.MSG_SIZE_TOO_LARGE: TOO_LARGE,
    KafkaError.RECORD_LIST_TOO_LARGE: TOO_LARGE,
    KafkaError.NOT_ENOUGH_REPLICAS: TOO_FEW,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND: TOO_FEW,
    KafkaError.KAFKA_STORAGE_ERROR: NO_SPACE,
    KafkaError.BROKER_NOT_AVAILABLE: NO_SPACE,  # Redpanda's error code for a full disk
    KafkaError.TOPIC_AUTHORIZATION_FAILED: FORBIDDEN,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: FORBIDDEN,
}


class WriteCheckError(RacetrackError):
    """The broker refuses or drops writes. The message contains the reason, if known."""


def check_writes(
    where: Endpoints, topic: str, broker_log: Path | None, while_waiting: Callable[[], None]
) -> None:
    """Check that the broker accepts writes and stores the generator's events in `topic`.

    Takes less than 10 s, during which `while_waiting` is called repeatedly and may raise.

    Raises:
        WriteCheckError: the check failed. The message ends with the tail of the broker's log,
            if there is one here.
        NewPartitions: the topic has partitions that the generator does not know.
    """
    try:
        _write_acknowledged(where.kafka, while_waiting)
        _check_size_limit(where.kafka, topic)
        _check_arrivals(where, topic, while_waiting)
    except (WriteCheckError, OffsetsError) as error:
        if not broker_log:
            raise WriteCheckError(str(error)) from error
        tail = f"The end of the broker's log:\n{log_tail(broker_log)}"
        raise WriteCheckError(f"{error}\n{tail}") from error


def _write_acknowledged(kafka: KafkaEndpoint, while_waiting: Callable[[], None]) -> None:
    """Write one record with acks=all, trying again after an error, since a broker that has just
    started returns temporary errors. The client itself must not retry: it would report its own
    timeout instead of the broker's error."""
    client, topic = kafka.librdkafka({"log_level": 0}), kafka.topic(TOPIC)
    give_up = time.monotonic() + ACKNOWLEDGED_WITHIN_S
    admin = AdminClient(client)  # keep a reference: the request is dropped with the client
    with contextlib.suppress(TimeoutError):  # the write below reports the error
        new = NewTopic(topic, 1, kafka.replication_factor)
        admin.create_topics([new])[topic].exception(ACKNOWLEDGED_WITHIN_S / 2)
    results: list[KafkaError | None] = []

    def take(error: KafkaError | None, _message: Message) -> None:
        results.append(error)

    producer = Producer({**client, "acks": "all", "retries": 0})
    error: KafkaError | None = None
    while time.monotonic() < give_up:
        results.clear()
        producer.produce(topic, b"check", partition=0, on_delivery=take)
        while not results and time.monotonic() < give_up:
            while_waiting()
            producer.poll(CHECK_EVERY_S)
        if results and results[0] is None:
            return
        error = results[0] if results else error
        time.sleep(CHECK_EVERY_S)
    producer.purge()
    if error is None or error.code() < 0:  # negative codes are the client's, not the broker's
        seen = f" ({error.str()})" if error else ""
        raise WriteCheckError(
            f"The broker at {kafka} did not acknowledge a record within"
            f" {ACKNOWLEDGED_WITHIN_S:.0f} s{seen}. Its disk may be full, it may hang, or its"
            " advertised address may be wrong. Fix that and run again."
        )
    reason = REASONS.get(error.code(), "see its log")
    raise WriteCheckError(
        f"The broker at {kafka} refuses writes: {error.name()}: {error.str()}: {reason},"
        " and run again."
    )


def _check_size_limit(kafka: KafkaEndpoint, topic: str) -> None:
    """Check that the generator's largest batch fits the topic's size limit; the broker would drop a
    larger one."""
    resource = ConfigResource(ResourceType.TOPIC, kafka.topic(topic))
    client = AdminClient(kafka.librdkafka({"log_level": 0}))
    futures = client.describe_configs([resource], request_timeout=LIMIT_WITHIN_S)
    try:
        limit = futures[resource].result(LIMIT_WITHIN_S).get("max.message.bytes")
    except (KafkaException, TimeoutError):
        return  # the user may lack the permission; `_check_arrivals` finds dropped batches too
    if limit and int(limit.value) < BATCH_BYTES:
        raise WriteCheckError(
            f"The broker at {kafka} does not keep the events: {topic} has"
            f" max.message.bytes={limit.value}, and the generator sends batches of up to"
            f" {BATCH_BYTES:,} bytes. Raise it and run again."
        )


def _check_arrivals(where: Endpoints, topic: str, while_waiting: Callable[[], None]) -> None:
    """Wait until the end offset of every partition has reached the count sent at the start of this
    check, or has at least grown."""
    offsets = TopicOffsets(where.kafka, topic)
    with closing(Control(where.loadgen_host, where.loadgen_port)) as control:
        stats = control.stats(quietly=True)
    sent = _sent(stats)
    first = ends = offsets.end_offsets(ARRIVED_WITHIN_S)
    offsets.require_known(ends, sent)
    for _ in attempts(ARRIVED_WITHIN_S, CHECK_EVERY_S):
        lost = [p for p, end in enumerate(ends) if end < sent[p] and end == first[p]]
        if not lost:
            return
        while_waiting()
        ends = offsets.end_offsets(ARRIVED_WITHIN_S)
    missing = ", ".join(f"{p} (sent {sent[p]:,}, has {ends[p]:,})" for p in lost)
    raise WriteCheckError(
        f"The broker at {where.kafka} does not keep the events: within"
        f" {ARRIVED_WITHIN_S:.0f} s none arrived in partitions {missing} of {topic}. With"
        " acks=0 the generator gets no reason. Its disk may be full. Fix that and run again."
    )


def _sent(stats: Mapping[str, Any]) -> list[int]:
    """Return the events sent per partition: those handed to the generator's Kafka client, minus
    those still queued in it."""
    handed = stats["events"]["handed"]
    queued = {p: worker["queued"] for worker in stats["workers"] for p in worker["partitions"]}
    return [count - queued.get(partition, 0) for partition, count in enumerate(handed)]
