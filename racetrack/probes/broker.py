"""Asks the broker for the end offsets of a topic: what was truly published."""

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from racetrack.errors import RacetrackError

ANSWER_WITHIN_S = 10.0


class BrokerProbe:
    """One client, so that asking again costs one request."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap, self._topic = bootstrap, topic
        self._client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})
        self._partitions: list[TopicPartition] = []

    def end_offsets(self) -> list[int]:
        """The end offset of each partition, in the order of the partitions.

        Raises:
            RacetrackError: the broker does not answer, or has no such topic.
        """
        try:
            if not self._partitions:
                self._partitions = self._find_partitions()
            newest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
            latest = dict.fromkeys(self._partitions, newest)
            answers = self._client.list_offsets(latest, request_timeout=ANSWER_WITHIN_S)
            return [answers[partition].result().offset for partition in self._partitions]
        except KafkaException as error:
            raise RacetrackError(
                f"The broker at {self._bootstrap} does not tell the end offsets of"
                f" {self._topic!r}: {error}. Its log is stack/broker.log."
            ) from error

    def _find_partitions(self) -> list[TopicPartition]:
        metadata = self._client.list_topics(self._topic, timeout=ANSWER_WITHIN_S)
        found = metadata.topics[self._topic]
        if found.error:
            raise KafkaException(found.error)
        return [TopicPartition(self._topic, number) for number in sorted(found.partitions)]
