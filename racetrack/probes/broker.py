"""Offsets and partitions of topics, as the broker reports them."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaException

from racetrack.clock import attempts, now_ms
from racetrack.errors import RacetrackError
from racetrack.kafka_client import RETRY_EVERY_S, NoOffsets, Partition, ends, is_retriable
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.probes.base import CurvesFile, HadOutage, Probe, no_outage

ANSWER_WITHIN_S = 30.0
OFFSETS_EVERY_S = 0.2
# A broker deletes whole segments every few seconds or minutes.
START_OFFSETS_EVERY_S = 1.0
TOPICS_EVERY_S, TOPIC_WITHIN_S = 5.0, 2.0


class OffsetsError(RacetrackError):
    """The broker does not return a topic's offsets."""


class NewPartitions(RacetrackError):
    """A topic got partitions during the run."""

    def __init__(self, topic: str, new: Sequence[int]) -> None:
        numbers = f"partition{'s' * (len(new) > 1)} {', '.join(map(str, new))}"
        super().__init__(
            f"The topic {topic!r} got {numbers} during the run, which generator and figures leave"
            " out. Run it again, and don't add partitions (EVENTS_PARTITIONS sets those of the"
            " main topic)."
        )


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

    def end_offsets(
        self, within_s: float = ANSWER_WITHIN_S, stop: threading.Event | None = None
    ) -> list[int]:
        """Return the end offset of each partition, in the order of the partitions. Once `stop` is
        set, a failed request is not repeated.

        Raises:
            OffsetsError: the broker does not answer in `within_s`, or has no such topic.
        """
        return self._offsets(OFFSET_END, within_s, stop)

    def begin_offsets(self, within_s: float = ANSWER_WITHIN_S) -> list[int]:
        """Return the offset of the oldest message in each partition, in the order of the
        partitions.

        Raises:
            OffsetsError: the broker does not answer in time, or has no such topic.
        """
        return self._offsets(OFFSET_BEGINNING, within_s)

    def require_same_partitions(self, within_s: float = ANSWER_WITHIN_S) -> None:
        """Check that the topic has only the partitions that it had at the first query.

        Raises:
            NewPartitions: it has more.
            OffsetsError: the broker does not answer in time, or has no such topic.
        """
        give_up, listed = time.monotonic() + within_s, list[Partition]()
        with self._explaining_failures():
            while not listed:
                listed = self._find_partitions(give_up)
        self._partitions = self._partitions or listed
        if new := [number for _, number in listed[len(self._partitions) :]]:
            raise NewPartitions(self._topic, new)

    def _offsets(
        self, which: int, within_s: float, stop: threading.Event | None = None
    ) -> list[int]:
        give_up = time.monotonic() + within_s
        with self._explaining_failures():
            while not self._partitions:
                self._partitions = self._find_partitions(give_up)
            left_s = give_up - time.monotonic()
            offsets = ends(self._client, self._partitions, which, left_s, stop)
        return [offsets[partition] for partition in self._partitions]

    @contextmanager
    def _explaining_failures(self) -> Iterator[None]:
        try:
            yield
        except (KafkaException, NoOffsets) as why:
            raise OffsetsError(
                f"The broker at {self._kafka} does not return the offsets of {self._topic!r}:"
                f" {why}.{'' if self._kafka.is_elsewhere else ' Its log is stack/broker.log.'}"
            ) from why

    def end_offsets_reaching(self, handed_over: list[int], within_s: float) -> list[int]:
        """Return the end offsets once they equal `handed_over`, the messages that the generator has
        handed to its Kafka client; after `within_s`, return them as they are. With acks=0, a record
        that has left the client may still be in flight.

        Raises:
            NewPartitions: the topic has more partitions than the generator.
        """
        for _ in attempts(within_s, RETRY_EVERY_S):
            if (offsets := self.end_offsets()) == handed_over:
                break
        self.require_known(offsets, handed_over)
        return offsets

    def require_known(self, offsets: Sequence[int], counts: Sequence[int]) -> None:
        """Check that the generator, whose counts by partition are `counts`, knows all partitions.

        Raises:
            NewPartitions: the topic has more.
        """
        if new := range(len(counts), len(offsets)):
            raise NewPartitions(self._topic, new)

    def _find_partitions(self, give_up: float) -> list[Partition]:
        """Return the topic's partitions; an empty list if a temporary error occurred before
        `give_up`, so that the caller tries again."""
        left_s = max(0.0, give_up - time.monotonic())
        try:
            metadata = self._client.list_topics(self._topic, timeout=left_s)
            topic = metadata.topics[self._topic]
            if topic.error:
                raise KafkaException(topic.error)
        except KafkaException as failure:
            if not is_retriable(failure.args[0]) or time.monotonic() >= give_up:
                raise
            time.sleep(RETRY_EVERY_S)
            return []
        return [(self._topic, number) for number in sorted(topic.partitions)]


class EndOffsetsProbe(Probe):
    """Writes the `published` curve: all end offsets in one request, five times a second. The time
    of a row is when the broker's answer arrived. Also writes the start offsets as the curve
    `deleted`, whenever they have changed."""

    name = "The broker's end offsets"

    def __init__(
        self,
        broker: TopicOffsets,
        curves: CurvesFile,
        had_outage: HadOutage = no_outage,
    ) -> None:
        super().__init__()
        self._broker, self._curves, self._had_outage = broker, curves, had_outage
        self._deleted: dict[int, int] = {}
        self._deleted_due_s = 0.0

    def run(self) -> None:
        """Query at fixed times, less often while the broker is slow. Ignore errors of an expected
        outage."""
        for _ in self.ticks(OFFSETS_EVERY_S):
            began_s = time.monotonic()
            try:
                offsets = self._broker.end_offsets(stop=self.stopping)
                self._curves.write(now_ms(), "published", enumerate(offsets))
                if began_s >= self._deleted_due_s:
                    self._deleted_due_s = began_s + START_OFFSETS_EVERY_S
                    self._write_deleted(dict(enumerate(self._broker.begin_offsets())))
            except RacetrackError:
                if not self._had_outage(began_s):
                    raise

    def _write_deleted(self, offsets: dict[int, int]) -> None:
        changed = {
            number: at for number, at in offsets.items() if at != self._deleted.get(number, 0)
        }
        if changed:
            self._curves.write(now_ms(), "deleted", changed.items())
            self._deleted = offsets


class TopicsProbe(Probe):
    """Watches the topics that an engine reads: fails if one gets new partitions, and notes how many
    messages of each CDC topic the broker has deleted. Topics that don't exist yet are skipped; a
    broker that does not answer is reported by `EndOffsetsProbe`."""

    name = "The topics"

    def __init__(self, kafka: KafkaEndpoint, main: str, cdc: Sequence[str]) -> None:
        super().__init__()
        self._topics = {name: TopicOffsets(kafka, name) for name in (main, *cdc)}
        self._cdc = cdc
        self.deleted: dict[str, int] = {}  # CDC topic -> number of messages

    def run(self) -> None:
        """Look at all topics every few seconds."""
        for _ in self.ticks(TOPICS_EVERY_S):
            for name, topic in self._topics.items():
                if self.stopping.is_set():
                    return
                with suppress(OffsetsError):
                    topic.require_same_partitions(TOPIC_WITHIN_S)
                    if name in self._cdc and (deleted := sum(topic.begin_offsets(TOPIC_WITHIN_S))):
                        self.deleted[name] = deleted

    def check(self) -> None:
        """Raise the error that ended the probe, if there is one.

        Raises:
            NewPartitions: a topic got partitions.
        """
        if isinstance(self._failure, NewPartitions):
            raise self._failure
        super().check()
