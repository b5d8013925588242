"""Creates upsert topics for engines that do not create them."""

from collections.abc import Collection, Sequence

from racetrack.errors import RacetrackError
from racetrack.kafka_endpoint import KafkaEndpoint

ANSWER_S = 30.0
# `compact`: only the last message of each key is needed. Without compaction, the topics of a long
# run would not fit into the broker's memory. `delete.retention.ms`: a reader has a minute to see
# that a row was deleted. `delete`: allows `make` to empty the topics; there is no other deletion.
# `LogAppendTime`: messages have the time at which they could be read. Parallel tasks write to the
# same topic, so times set by the tasks would not be in the order of the offsets.
CONFIG = {
    "cleanup.policy": "compact,delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "segment.bytes": str(32 << 20),
    "delete.retention.ms": "60000",
    "message.timestamp.type": "LogAppendTime",
}
# Rows of these topics have no key, which a compacted topic requires. They are kept as long as the
# main topic.
APPENDED = {
    "cleanup.policy": "delete",
    "segment.bytes": CONFIG["segment.bytes"],
    "message.timestamp.type": CONFIG["message.timestamp.type"],
}


def make(kafka: KafkaEndpoint, names: Sequence[str], appended: Collection[str] = ()) -> None:
    """Create these topics with one partition each, and empty those that exist. Otherwise, rows of
    an earlier start would stay in the views: a restarted engine does not delete them. Rows of those
    in `appended` are never replaced.

    Raises:
        RacetrackError: the broker refused.
    """
    from confluent_kafka import OFFSET_END, KafkaException, TopicPartition
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient(kafka.librdkafka({"log_level": 0}))
    try:
        there = admin.list_topics(timeout=ANSWER_S).topics
        topics = {kafka.topic(name): APPENDED if name in appended else CONFIG for name in names}
        replicas = kafka.replication_factor
        old = [TopicPartition(topic, 0, OFFSET_END) for topic in topics if topic in there]
        new = [
            NewTopic(topic, 1, replicas, config=config)
            for topic, config in topics.items()
            if topic not in there
        ]
        futures = [
            *(admin.create_topics(new, operation_timeout=ANSWER_S).values() if new else ()),
            *(admin.delete_records(old, operation_timeout=ANSWER_S).values() if old else ()),
        ]
        for done in futures:
            done.result()
    except KafkaException as error:
        raise RacetrackError(
            f"The broker at {kafka} did not create the views' topics: {error}"
        ) from error
