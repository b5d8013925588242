"""Helpers for Kafka clients: retriable errors, and the end offsets of partitions."""

import threading
from collections.abc import Collection
from typing import TYPE_CHECKING

from racetrack.clock import attempts
from racetrack.errors import RacetrackError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError

RETRY_EVERY_S = 0.05
# The broker waits up to FETCH_MS for more messages before it answers a fetch, since each fetch
# takes CPU time on the measured machine. Messages are received up to this much later.
FETCH_MS = 20
FEW_FETCHES = {"fetch.wait.max.ms": FETCH_MS, "fetch.min.bytes": 1 << 20}
Partition = tuple[str, int]  # topic, number
# Errors that Kafka's Java client retries silently. librdkafka reports them, and retries too.
_RETRIABLE = (
    "FENCED_LEADER_EPOCH",
    "UNKNOWN_LEADER_EPOCH",
    "OFFSET_NOT_AVAILABLE",
    "NOT_LEADER_FOR_PARTITION",
    "LEADER_NOT_AVAILABLE",
    "REPLICA_NOT_AVAILABLE",
    "BROKER_NOT_AVAILABLE",
    "LISTENER_NOT_FOUND",
    "KAFKA_STORAGE_ERROR",
    "REQUEST_TIMED_OUT",
    "NETWORK_EXCEPTION",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "FETCH_SESSION_ID_NOT_FOUND",
    "INVALID_FETCH_SESSION_EPOCH",
    "THROTTLING_QUOTA_EXCEEDED",
    # Errors of librdkafka itself: the broker can't be reached, or does not answer in time.
    "_TRANSPORT",
    "_ALL_BROKERS_DOWN",
    "_DESTROY_BROKER",  # the client dropped the connection to a broker that is away
    "_RESOLVE",
    "_TIMED_OUT",
    "_TIMED_OUT_QUEUE",
    "_MSG_TIMED_OUT",
    "_WAIT_COORD",
    "_WAIT_CACHE",
    "_LEADER_NOT_AVAILABLE",
)


class NoOffsets(RacetrackError):
    """The broker refused the request or did not answer in time; the message is the reason only."""


def is_retriable(error: "KafkaError") -> bool:
    """Return whether an error is temporary, such as during a leader election."""
    from confluent_kafka import KafkaError

    codes = {getattr(KafkaError, name, None) for name in _RETRIABLE}
    return not error.fatal() and (error.retriable() or error.code() in codes)


def _may_pass(error: "KafkaError") -> bool:
    """Return whether an error about offsets of an existing partition is temporary. An unknown
    partition is temporary too: the client forgets partitions when it loses all brokers."""
    from confluent_kafka import KafkaError

    return is_retriable(error) or error.code() == KafkaError._UNKNOWN_PARTITION


def ends(
    client: "Consumer",
    partitions: Collection[Partition],
    which: int,
    within_s: float,
    stop: threading.Event | None = None,
) -> dict[Partition, int]:
    """Return the first offset of each partition, or the end offset.

    `which` is OFFSET_BEGINNING or OFFSET_END. Retriable errors are retried for `within_s` seconds,
    or until `stop` is set.
    The request uses a consumer because the admin client takes more than twice as much CPU time.

    Raises:
        NoOffsets: the broker refused the request or did not answer in time.
    """
    for left_s in attempts(within_s, RETRY_EVERY_S, stop):
        offsets, why = _ends_now(client, partitions, which, left_s)
        if not why:
            return offsets
    raise NoOffsets(why)


def _ends_now(
    client: "Consumer", partitions: Collection[Partition], which: int, within_s: float
) -> tuple[dict[Partition, int], str]:
    """Return the offsets and "", or nothing and the reason why they are not known yet."""
    from confluent_kafka import KafkaException, TopicPartition

    # The protocol requests the ends by special timestamps, -2 and -1, which are the client's values
    # of OFFSET_BEGINNING and OFFSET_END.
    wanted = [TopicPartition(topic, number, which) for topic, number in partitions]
    try:
        answers = client.offsets_for_times(wanted, timeout=within_s)
    except KafkaException as failure:
        if not _may_pass(failure.args[0]):
            raise NoOffsets(str(failure)) from failure
        return {}, str(failure)
    errors = [answer.error for answer in answers if answer.error]
    if lasting := [error for error in errors if not _may_pass(error)]:
        raise NoOffsets(str(lasting[0]))
    if errors:
        return {}, str(errors[0])
    offsets = {(answer.topic, answer.partition): answer.offset for answer in answers}
    # The client may return a negative offset without an error.
    if min(offsets.values()) < 0:
        return {}, f"the client returned {[offsets[place] for place in partitions]}"
    return offsets, ""
