"""End offsets of a topic, as the broker reports them."""

import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaException

from racetrack.clock import attempts, now_ms
from racetrack.errors import RacetrackError
from racetrack.kafka_client import RETRY_EVERY_S, NoOffsets, Partition, ends, is_retriable
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.probes.base import CurvesFile, HadOutage, Probe, no_outage

ANSWER_WITHIN_S = 30.0
OFFSETS_EVERY_S = 0.2


class OffsetsError(RacetrackError):
    """The broker does not return a topic's offsets."""


class TopicOffsets:
    """Offsets of one topic. All queries use the same client, so each costs one request; no message
    is read."""

    def __init__(
        self,
        kafka: KafkaEndpoint,
        topic: str,
        open_client: Callable[[dict[str, Any]], Consumer] = Consumer,
    ) -> None:
        self._kafka, self._topic = kafka, kafka.topic(topic)
        settings = {
            "group.id": "racetrack-offsets",  # required, but this consumer never joins the group
            "isolation.level": "read_uncommitted",  # all messages, committed or not
            "log_level": 2,
        }
        self._client = open_client(kafka.librdkafka(settings))
        self._partitions: list[Partition] = []

    def end_offsets(self, within_s: float = ANSWER_WITHIN_S) -> list[int]:
        """Return the end offset of each partition, in the order of the partitions.

        Raises:
            OffsetsError: the broker does not answer in `within_s`, or has no such topic.
        """
        return self._offsets(OFFSET_END, within_s)

    def begin_offsets(self) -> list[int]:
        """Return the offset of the oldest message in each partition, in the order of the
        partitions.

        Raises:
            OffsetsError: the broker does not answer in time, or has no such topic.
        """
        return self._offsets(OFFSET_BEGINNING, ANSWER_WITHIN_S)

    def _offsets(self, which: int, within_s: float) -> list[int]:
        give_up = time.monotonic() + within_s
        try:
            while not self._partitions:
                self._partitions = self._find_partitions(give_up)
            offsets = ends(self._client, self._partitions, which, give_up - time.monotonic())
        except (KafkaException, NoOffsets) as why:
            raise OffsetsError(
                f"The broker at {self._kafka} does not return the offsets of {self._topic!r}:"
                f" {why}.{'' if self._kafka.is_elsewhere else ' Its log is stack/broker.log.'}"
            ) from why
        return [offsets[partition] for partition in self._partitions]

    def end_offsets_reaching(self, handed_over: list[int], within_s: float) -> list[int]:
        """Return the end offsets once they equal `handed_over`, the messages that the generator has
        handed to its Kafka client; after `within_s`, return them as they are. With acks=0, a record
        that has left the client may still be in flight."""
        for _ in attempts(within_s, RETRY_EVERY_S):
            if (offsets := self.end_offsets()) == handed_over:
                break
        return offsets

    def _find_partitions(self, give_up: float) -> list[Partition]:
        """Return the topic's partitions; an empty list if a temporary error occurred before
        `give_up`, so that the caller tries again."""
        left_s = max(0.0, give_up - time.monotonic())
        try:
            metadata = self._client.list_topics(self._topic, timeout=left_s)
            found = metadata.topics[self._topic]
            if found.error:
                raise KafkaException(found.error)
        except KafkaException as failure:
            if not is_retriable(failure.args[0]) or time.monotonic() >= give_up:
                raise
            time.sleep(RETRY_EVERY_S)
            return []
        return [(self._topic, number) for number in sorted(found.partitions)]


class EndOffsetsProbe(Probe):
    """Writes the `published` curve: all end offsets in one request, five times a second. The time
    of a row is when the broker's answer arrived."""

    name = "The broker's end offsets"

    def __init__(
        self,
        broker: TopicOffsets,
        curves: CurvesFile,
        had_outage: HadOutage = no_outage,
    ) -> None:
        super().__init__()
        self._broker, self._curves, self._had_outage = broker, curves, had_outage

    def run(self) -> None:
        """Query at fixed times, less often while the broker is slow. Ignore errors of an expected
        outage."""
        for _ in self.ticks(OFFSETS_EVERY_S):
            began_s = time.monotonic()
            try:
                offsets = self._broker.end_offsets()
            except RacetrackError:
                if not self._had_outage(began_s):
                    raise
            else:
                self._curves.write(now_ms(), "published", enumerate(offsets))
