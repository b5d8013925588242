"""Tests of an engine whose views are topics: its progress, reads of its views, and the rows that a
client keeps of them: the last one of each key, indexed by the first column."""

import json
import threading
from decimal import Decimal
from unittest.mock import Mock

import confluent_kafka
import pytest
from confluent_kafka import Message

from racetrack.engines.contract import NoSuchView, Progress, Summary
from racetrack.engines.shared.tests.fakes import AT_MS, FakeTopics, stack, topics
from racetrack.engines.shared.upsert.engine import UpsertEngine
from racetrack.engines.shared.upsert.topics import Written
from racetrack.engines.shared.upsert.views import Table, Tables
from racetrack.kafka_endpoint import KafkaEndpoint
from tests.waiting import wait_until

PROGRESS, SUMMARY = "upsert.pageviews_progress", "upsert.pageviews_summary"
ITEMS = "upsert.item_summary"
PARTITION = b'{"partition":2,"total":5,"max_received_at":1700000000040}'
ALL = b'{"summary_of":"all","total":7,"max_received_at":1700000000050,"dt_ms":70}'
ITEM = (
    b'{"item_id":1,"name":"a","category":null,"revenue":12345678901234567890.10,'
    b'"orders":2,"items_sold":3,"pageviews":7,"conversion_rate":0.2857142857142857}'
)
UNSOLD = (
    b'{"item_id":2,"name":"b","category":"c","revenue":0,'
    b'"orders":0,"items_sold":0,"pageviews":0,"conversion_rate":null}'
)


class Upsert(UpsertEngine):
    """An engine that adds nothing to the base class."""

    name = "upsert"
    title = "Upsert"

    def usage_hints(self, stack: object) -> list[str]:
        return []


def engine(**values: list[bytes]) -> Upsert:
    """Return an engine that has written these values for each view, and its summary."""
    of = {f"upsert.{view}": rows for view, rows in values.items()}
    return Upsert(topics({SUMMARY: [ALL], **of}))


def test_progress_is_what_the_topics_say() -> None:
    stop = threading.Event()
    stop.set()
    events = engine(pageviews_progress=[PARTITION]).updates(stack(), stop)
    assert sorted(events, key=lambda update: update.total) == [
        Progress(AT_MS, 2, 5, 1_700_000_000_040),
        Summary(AT_MS, 7, 1_700_000_000_050, 73.0),
    ]


def test_a_view_comes_back_without_loss() -> None:
    rows = engine(item_summary=[ITEM, UNSOLD]).read_view(stack(), "item_summary").to_pylist()
    assert [row["revenue"] for row in rows] == [Decimal("12345678901234567890.10"), Decimal(0)]
    assert [row["conversion_rate"] for row in rows] == [2 / 7, None]
    assert [row["category"] for row in rows] == [None, "c"]


def test_rows_without_a_key_are_all_kept_with_all_their_digits() -> None:
    bid = b'{"auction":1,"bidder":2,"price":0.908,"dateTime":1700000000040,"extra":""}'
    written = [Written("upsert.q1", n, AT_MS, b"", bid) for n in range(3)]

    def open_topics(_kafka: KafkaEndpoint) -> FakeTopics:
        return FakeTopics({"upsert.q1": written})

    nexmark = stack(WORKLOAD="nexmark", NEXMARK_QUERIES="q1")
    rows = Upsert(open_topics).read_view(nexmark, "q1")
    assert rows["price"].to_pylist() == [Decimal("0.908")] * 3


def test_a_view_that_it_does_not_make_or_has_not_written_yet_is_not_an_empty_one() -> None:
    for view in ("nothing_such", "items"):
        with pytest.raises(NoSuchView, match=view):
            engine().read_view(stack(), view)
    with pytest.raises(NoSuchView, match="no view yet"):
        Upsert(topics({SUMMARY: [], ITEMS: []})).read_view(stack(), "item_summary")


# ---- The rows that a client keeps ----------------------------------------------------------------


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


def test_a_deletion_that_arrives_alone_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a message without a value counts as a message, although it is false."""
    key, value = message(1, 1)
    messages = iter([Message("t", 0, 0, key, value), Message("t", 0, 1, key, None)])
    consumer = Mock()
    consumer.get_watermark_offsets.return_value = (0, 1)
    consumer.poll = lambda _within_s: next(messages, None)
    consumer.consume.return_value = []
    monkeypatch.setattr(confluent_kafka, "Consumer", lambda _settings: consumer)
    with Tables(KafkaEndpoint("127.0.0.1:1"), ["t"]) as tables:
        wait_until(lambda: tables.rows("t") == [], "the deletion")
