"""Tests of the rows that a client keeps of an upsert topic: the last one of each key, indexed by
the first column."""

import json
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import Message

from racetrack.engines.shared.upsert.views import Table, Tables
from racetrack.kafka_endpoint import KafkaEndpoint
from tests.waiting import wait_until


def message(owner: int, nth: int, **rest: int) -> tuple[bytes, bytes]:
    """Return a message as engines write it. The key is not the first column."""
    value = {"owner_id": owner, "nth": nth, **rest}
    return f'{{"nth":{nth}}}'.encode(), json.dumps(value, separators=(",", ":")).encode()


def owners(rows: list[bytes]) -> list[tuple[int, int]]:
    return sorted((row["owner_id"], row["nth"]) for row in map(json.loads, rows))


def test_it_holds_the_last_row_of_each_key_found_by_its_first_column() -> None:
    table = Table()
    for owner, nth, at in ((1, 1, 5), (2, 2, 6), (12, 3, 7), (1, 4, 8), (1, 1, 9)):
        table.take(*message(owner, nth, at=at))
    assert sorted(json.loads(row)["at"] for row in table.rows()) == [6, 7, 8, 9]
    assert owners(table.rows_of("owner_id", [1])) == [(1, 1), (1, 4)]
    assert owners(table.rows_of("owner_id", [2, 12, 99])) == [(2, 2), (12, 3)]
    table.take(*message(2, 1))  # it moves to another
    assert owners(table.rows_of("owner_id", [1])) == [(1, 4)]
    assert owners(table.rows_of("owner_id", [2])) == [(2, 1), (2, 2)]


def test_a_row_that_has_gone_is_gone() -> None:
    table = Table()
    key, value = message(1, 1)
    table.take(key, value)
    table.take(key, None)
    table.take(b'{"nth":9}', None)  # a key that does not exist
    assert table.rows() == table.rows_of("owner_id", [1]) == []


class FakeConsumer:
    """Consumer that receives these messages one by one."""

    def __init__(self, messages: Iterator[Message]) -> None:
        self._messages = messages

    def assign(self, partitions: object) -> None:
        pass

    def get_watermark_offsets(self, partition: object, timeout: float) -> tuple[int, int]:
        return 0, 1

    def poll(self, within_s: float) -> Message | None:
        return next(self._messages, None)

    def consume(self, count: int, within_s: float) -> list[Message]:
        return []

    def close(self) -> None:
        pass


def test_a_deletion_that_arrives_alone_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a message without a value counts as a message, although it is false."""
    key, value = message(1, 1)
    messages = iter([Message("t", 0, 0, key, value), Message("t", 0, 1, key, None)])

    def consumer(_settings: Any) -> FakeConsumer:
        return FakeConsumer(messages)

    monkeypatch.setattr(confluent_kafka, "Consumer", consumer)
    with Tables(KafkaEndpoint("127.0.0.1:1"), ["t"]) as tables:
        wait_until(lambda: tables.rows("t") == [], "the deletion")
