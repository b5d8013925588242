"""Tests of an engine whose views are topics: its progress, and reads of its views."""

import threading
from decimal import Decimal

import pytest

from racetrack.engines.contract import NoSuchView, Progress, Summary
from racetrack.engines.shared.tests.fakes import AT_MS, FakeTopics, stack, topics
from racetrack.engines.shared.upsert.engine import UpsertEngine
from racetrack.engines.shared.upsert.topics import Written
from racetrack.kafka_endpoint import KafkaEndpoint

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


def test_a_view_that_is_read_once_can_be_asked_for_by_its_key() -> None:
    upsert = engine(item_summary=[ITEM, UNSOLD])
    with upsert.reader(upsert.access(stack())) as reader:
        assert reader.rows("item_summary", "item_id", [2, 3])["name"].to_pylist() == ["b"]
