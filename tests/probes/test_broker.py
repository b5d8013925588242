"""Tests of a topic's end offsets, and of answers without them. The client is fake, because real
brokers give such answers too rarely."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import pytest
from confluent_kafka import OFFSET_END, Consumer, KafkaError, TopicPartition

from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.probes import broker

REFUSED, FENCED = -1, -2
ERRORS = {
    REFUSED: KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART),
    # Answer of a broker that was paused so long that it fenced itself.
    FENCED: KafkaError(KafkaError.FENCED_LEADER_EPOCH),
}


class Client:
    """A fake client that reports `answers` in turn, and then repeats the last one. An answer has
    the offsets of a topic's two partitions."""

    def __init__(self, answers: Sequence[Sequence[int]]) -> None:
        self._answers = list(answers)

    def list_topics(self, topic: str, timeout: float) -> SimpleNamespace:
        found = SimpleNamespace(error=None, partitions={1: None, 0: None})
        return SimpleNamespace(topics={topic: found})

    def offsets_for_times(
        self, wanted: list[TopicPartition], timeout: float
    ) -> list[SimpleNamespace]:
        """Return the next answer, with the last partition first."""
        assert timeout >= 0
        assert {each.offset for each in wanted} == {OFFSET_END}
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return [
            SimpleNamespace(
                topic=each.topic,
                partition=each.partition,
                offset=answer[each.partition],
                error=ERRORS.get(answer[each.partition]),
            )
            for each in reversed(wanted)
        ]


def topic(*answers: Sequence[int]) -> broker.TopicOffsets:
    """Return a topic's offsets, as read from these answers."""
    client = cast(Consumer, Client(answers))
    return broker.TopicOffsets(KafkaEndpoint("here:9092"), "pageviews", lambda _settings: client)


@pytest.mark.parametrize(("second", "says"), [(-1001, "-1001"), (REFUSED, "UNKNOWN_TOPIC_OR_PART")])
def test_an_answer_without_offsets_is_reported_with_its_reason(second: int, says: str) -> None:
    with pytest.raises(broker.OffsetsError, match=says):
        topic((3, second)).end_offsets(within_s=0.1)


def test_end_offsets_of_unknown_partitions_are_no_difference_of_counts() -> None:
    with pytest.raises(broker.NewPartitions, match="partition 1 "):
        topic((3, 0)).end_offsets_reaching([3], within_s=0.1)


def test_an_error_that_passes_is_retried() -> None:
    assert topic((FENCED, FENCED), (3, FENCED), (4, 5)).end_offsets() == [4, 5]
