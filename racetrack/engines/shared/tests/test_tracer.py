"""Tests that only increases of traced rows are reported, with times in epoch milliseconds."""

from collections.abc import Mapping

from racetrack.config import load
from racetrack.engines.contract import Seen
from racetrack.engines.shared.tracer import only_more
from racetrack.engines.shared.upsert import tracer
from racetrack.workloads.contract import ALL_PARTITIONS, workload_in

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


ITEM = (
    b'{"item_id":%d,"name":"mark 1001","category":"widgets","revenue":35.00,"orders":7,'
    b'"items_sold":7,"pageviews":4,"conversion_rate":1.75}'
)


def rows_of(**settings: str) -> Mapping[str, tracer.Rows]:
    """Return the tracer rows of a workload's traced views, by topic."""
    loaded = load(settings)
    return tracer.by_topic(workload_in(loaded).traced_views, loaded, "engine.{}".format)


def test_a_tracer_row_shows_each_source_and_counts_in_its_own_topic_only() -> None:
    """Keys of different views may look alike, such as ids of auctions and of categories."""
    topics = rows_of()
    assert topics.keys() == {"engine.item_summary", "engine.profile_views_enriched"}
    items, profiles = topics["engine.item_summary"], topics["engine.profile_views_enriched"]
    assert list(items.seen(ITEM % 1_003, AT_MS)) == [
        Seen(AT_MS, "item_summary.pageviews", 2, 4),
        Seen(AT_MS, "item_summary.orders", 2, 7),
    ]
    assert not list(profiles.seen(ITEM % 1_003, AT_MS))
    row = b'{"owner_id":10001,"viewer_id":10009,"received_at":1794999999123,"partition":0}'
    name = "profile_views_enriched.received_at"
    assert list(profiles.seen(row, AT_MS)) == [Seen(AT_MS, name, 0, 1_794_999_999_123)]


CAMPAIGN = b'{"campaign_id":"00000000-0000-4000-8000-000000000002",'


def test_the_windows_of_a_partition_and_the_days_of_all_bids_are_summed_up() -> None:
    windows = (7, 0), (2, 10_000)
    text = CAMPAIGN + b'"seen_count":%d,"window_start_ms":%d}'
    assert values("ads", "", [text % window for window in windows]) == [(1, 7), (1, 9)]
    days = [b'{"day":"2026-03-2%d","total_bids":%d}' % day for day in ((2, 7), (3, 2), (3, 4))]
    totals = [(ALL_PARTITIONS, total) for total in (7, 9, 11)]
    assert values("nexmark", "q15", days) == totals


def values(workload: str, queries: str, texts: list[bytes]) -> list[tuple[int, int]]:
    """Return partition and value of what these texts of the only traced view show."""
    (rows,) = rows_of(WORKLOAD=workload, NEXMARK_QUERIES=queries or "q0").values()
    assert all(text.startswith(rows.beginnings) for text in texts)
    return [(seen.partition, seen.value) for text in texts for seen in rows.seen(text, AT_MS)]


def test_each_row_of_a_view_of_windows_shows_until_when_no_event_is_missing() -> None:
    """Windows of ten seconds begin every two; the next one ends two seconds later."""
    (rows,) = rows_of(WORKLOAD="nexmark", NEXMARK_QUERIES="q5").values()
    (seen,) = rows.seen(b'{"auction":1,"num":2,"starttime":"2026-03-22 05:04:28"}', AT_MS)
    until_ms = 1_774_155_868_000 + 10_000 + 2_000 - 1
    assert seen == Seen(AT_MS, "q5.starttime", ALL_PARTITIONS, until_ms)
    assert b'{"auction":1,'.startswith(rows.beginnings)
