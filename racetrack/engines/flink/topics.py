"""The upsert topics that Flink writes to: it makes none itself."""

from collections.abc import Sequence

from racetrack.errors import RacetrackError

ANSWER_S = 30.0
# The last message of each key is what counts, so the broker may drop the others; or the topics of a
# long run would outgrow its memory. A reader has a minute to see that a row has gone. `delete` lets
# `make` empty them; nothing else does. Messages get the broker's time, at which they can be read:
# tasks side by side write to one topic, and by their own times one message may seem to come before
# another that lies in front of it.
CONFIG = {
    "cleanup.policy": "compact,delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "segment.bytes": str(32 << 20),
    "delete.retention.ms": "60000",
    "message.timestamp.type": "LogAppendTime",
}


def make(kafka: str, names: Sequence[str]) -> None:
    """Have these topics there, of one partition each, and empty: an engine that was started again
    does not know which rows an earlier one wrote.

    Raises:
        RacetrackError: the broker refused.
    """
    from confluent_kafka import OFFSET_END, KafkaException, TopicPartition
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"bootstrap.servers": kafka, "log_level": 0})
    try:
        there = admin.list_topics(timeout=ANSWER_S).topics
        old = [TopicPartition(name, 0, OFFSET_END) for name in names if name in there]
        new = [NewTopic(name, 1, 1, config=CONFIG) for name in names if name not in there]
        asked = [
            *(admin.create_topics(new, operation_timeout=ANSWER_S).values() if new else ()),
            *(admin.delete_records(old, operation_timeout=ANSWER_S).values() if old else ()),
        ]
        for done in asked:
            done.result()
    except KafkaException as error:
        raise RacetrackError(
            f"The broker at {kafka} does not make the topics that Flink writes to: {error}"
        ) from error
