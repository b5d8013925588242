"""What the broker says of a topic's end offsets, and what is no answer. The client is made up: a
real one says such things too seldom to wait for."""

from collections.abc import Sequence
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from confluent_kafka import TopicPartition

from racetrack.probes import broker

NOT_TOLD = -1001


class Client:
    """Tells the offsets of a topic of two partitions: those of `answers`, the last one again."""

    def __init__(self, answers: Sequence[Sequence[int]]) -> None:
        self._answers = list(answers)

    def list_topics(self, topic: str, timeout: float) -> SimpleNamespace:
        """Its two partitions."""
        found = SimpleNamespace(error=None, partitions={1: None, 0: None})
        return SimpleNamespace(topics={topic: found})

    def list_offsets(
        self, wanted: dict[TopicPartition, object], request_timeout: float
    ) -> dict[TopicPartition, "Future[SimpleNamespace]"]:
        """The next answer."""
        assert request_timeout >= 0
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        told: dict[TopicPartition, Future[SimpleNamespace]] = {}
        for partition in wanted:
            told[partition] = Future()
            told[partition].set_result(SimpleNamespace(offset=answer[partition.partition]))
        return told


def topic(monkeypatch: pytest.MonkeyPatch, *answers: Sequence[int]) -> broker.TopicOffsets:
    """As the client above tells it."""
    monkeypatch.setattr(broker, "AdminClient", lambda _settings: Client(answers))
    return broker.TopicOffsets("here:9092", "pageviews")


def test_offsets_come_in_the_order_of_the_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    assert topic(monkeypatch, (3, 5)).end_offsets() == [3, 5]


def test_a_negative_offset_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert topic(monkeypatch, (3, NOT_TOLD), (NOT_TOLD, 5), (4, 5)).end_offsets() == [4, 5]


def test_one_that_stays_negative_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(broker.OffsetsError, match=r"offsets of 'pageviews': it says \[3, -1001\]"):
        topic(monkeypatch, (3, NOT_TOLD)).end_offsets(within_s=0.1)
