"""Tests that only increases of traced rows are reported, with times in epoch milliseconds."""

import pyarrow as pa

from racetrack.config import load
from racetrack.engines.contract import Seen
from racetrack.engines.shared.tracer import Tally, only_more, value_in_sql
from racetrack.engines.shared.upsert import tracer
from racetrack.workloads.contract import ALL_PARTITIONS, find_workload, workload_in

AT_MS = 1_795_000_000_000


def test_what_is_no_more_than_before_is_left_out_for_each_row_by_itself() -> None:
    found = [
        Seen(AT_MS, "a.b", 0, 3),
        Seen(AT_MS, "a.b", 1, 3),
        Seen(AT_MS + 1, "a.b", 0, 3),
        Seen(AT_MS + 2, "a.c", 0, 0),
        Seen(AT_MS + 3, "a.b", 0, 2),
        Seen(AT_MS + 4, "a.b", 0, 5),
    ]
    assert list(only_more(found)) == [found[0], found[1], found[3], found[5]]


def test_a_count_is_read_as_it_is_and_a_time_in_epoch_milliseconds() -> None:
    traced = {view.name: view for view in find_workload("shop").traced_views}
    assert value_in_sql(traced["item_summary.orders"], "max(orders)") == "max(orders)"
    newest = traced["profile_views_enriched.received_at"]
    in_sql = value_in_sql(newest, newest.column)
    assert in_sql == "(1000 * extract(epoch FROM received_at))::bigint"


def test_the_windows_of_a_partition_are_summed_up() -> None:
    (windows,) = find_workload("ads").traced_views
    tally = Tally()
    rows = [(0, 3, 10_000), (0, 4, 10_000), (1, 9, 10_000), (0, 1, 20_000), (0, 5, 10_000)]
    assert [tally.value(windows, *row) for row in rows] == [3, 4, 9, 5, 6]


def test_of_the_rows_of_windows_that_change_together_the_newest_counts() -> None:
    settings = load({"WORKLOAD": "nexmark", "NEXMARK_QUERIES": "q8"})
    (view,) = workload_in(settings).traced_views
    rows = pa.table({"id": [1, 2, 3], "stime": [20_000, 30_000, 10_000]})
    assert list(Tally().values(rows, view, [])) == [(ALL_PARTITIONS, 49_999)]


SETTINGS = load()
TRACED_VIEWS = find_workload("shop").traced_views
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
