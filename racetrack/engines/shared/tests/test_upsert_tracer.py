"""Tests that only traced rows of a view's topic are reported."""

from racetrack.config import load
from racetrack.engines.contract import Seen
from racetrack.engines.shared.upsert import tracer
from racetrack.workloads.contract import ALL_PARTITIONS, find_workload, workload_in

SETTINGS = load()
TRACED_VIEWS = find_workload("shop").traced_views
AT_MS = 1_795_000_000_000
ROWS = tracer.by_topic(TRACED_VIEWS, SETTINGS, "engine.{}".format)
ITEM = (
    b'{"item_id":%d,"name":"mark 1001","category":"widgets","revenue":35.00,"orders":7,'
    b'"items_sold":7,"pageviews":4,"conversion_rate":1.75}'
)


def test_each_topic_of_a_traced_view_is_read_once() -> None:
    assert ROWS.keys() == {"engine.item_summary", "engine.profile_views_enriched"}
    assert [view.column for view in ROWS["engine.item_summary"].views] == ["pageviews", "orders"]


def test_the_row_of_a_partition_s_product_shows_both_its_sources() -> None:
    recorded = list(ROWS["engine.item_summary"].seen(ITEM % 1_003, AT_MS))
    assert recorded == [
        Seen(AT_MS, "item_summary.pageviews", 2, 4),
        Seen(AT_MS, "item_summary.orders", 2, 7),
    ]


def test_the_row_of_a_profile_shows_when_its_newest_tracer_event_was_due() -> None:
    row = b'{"owner_id":10001,"viewer_id":10009,"received_at":1794999999123,"partition":0}'
    rows = ROWS["engine.profile_views_enriched"]
    name = "profile_views_enriched.received_at"
    assert list(rows.seen(row, AT_MS)) == [Seen(AT_MS, name, 0, 1_794_999_999_123)]


def test_a_row_that_is_a_tracer_row_of_another_topic_only_is_left_out() -> None:
    """Keys of different views may look alike, such as ids of auctions and of categories."""
    assert not [*ROWS["engine.profile_views_enriched"].seen(ITEM % 1_003, AT_MS)]


def test_the_windows_of_a_partition_s_campaign_are_summed_up() -> None:
    rows = tracer.by_topic(find_workload("ads").traced_views, SETTINGS, "engine.{}".format)
    of_topic = rows["engine.campaign_windows"]
    key = b'{"campaign_id":"00000000-0000-4000-8000-000000000002",'
    assert key in of_topic.beginnings
    texts = [key + b'"window_start_ms":%d,"seen_count":%d}' % row for row in ((0, 7), (10_000, 2))]
    recorded = [seen for text in texts for seen in of_topic.seen(text, AT_MS)]
    assert [(seen.partition, seen.value) for seen in recorded] == [(1, 7), (1, 9)]


def nexmark(query: str) -> tracer.Rows:
    settings = load({"WORKLOAD": "nexmark", "NEXMARK_QUERIES": query})
    (rows,) = tracer.by_topic(
        workload_in(settings).traced_views, settings, "engine.{}".format
    ).values()
    return rows


def test_each_row_of_a_view_of_windows_shows_until_when_no_event_is_missing() -> None:
    """Windows of ten seconds begin every two; the next one ends two seconds later."""
    rows = nexmark("q5")
    (seen,) = rows.seen(b'{"auction":1,"num":2,"starttime":"2026-03-22 05:04:28"}', AT_MS)
    until_ms = 1_774_155_868_000 + 10_000 + 2_000 - 1
    assert seen == Seen(AT_MS, "q5.starttime", ALL_PARTITIONS, until_ms)
    assert b'{"auction":1,'.startswith(rows.beginnings)


def test_the_days_of_a_view_that_counts_all_bids_are_summed_up() -> None:
    rows = nexmark("q15")
    texts = [b'{"day":"2026-03-2%d","total_bids":%d}' % row for row in ((2, 7), (3, 2), (3, 4))]
    recorded = [seen for text in texts for seen in rows.seen(text, AT_MS)]
    assert [(seen.partition, seen.value) for seen in recorded] == [
        (ALL_PARTITIONS, total) for total in (7, 9, 11)
    ]
