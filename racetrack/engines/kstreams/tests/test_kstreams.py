"""Kafka Streams' module without Kafka: what it makes of what it reads, and what is in its
program."""

import re
import threading
from pathlib import Path

import pytest

from racetrack import config as settings
from racetrack.clock import now_ms
from racetrack.engines import find_engine
from racetrack.engines.contract import Seen, Summary
from racetrack.engines.kstreams.engine import KafkaStreams
from racetrack.engines.kstreams.recipe import RECIPE
from racetrack.engines.shared.tests.fake_topics import KAFKA, stack, topics
from racetrack.workloads.shop.catalogue import TRACED_VIEWS, VIEWS

KSTREAMS = find_engine("kstreams")
PROGRAM = RECIPE.sources[0] / "racetrack" / "kstreams"
SUMMARY = "kstreams.pageviews_summary"
ALL = b'{"summary_of":"all","total":7,"max_received_at":1700000000050,"dt_ms":70}'
# View → the record of its rows.
ROWS = {
    "users": "User",
    "items": "Item",
    "purchases": "Purchase",
    "pageviews_progress": "PartitionRow",
    "pageviews_summary": "SummaryRow",
    "purchases_by_item": "Sales",
    "pageviews_by_item": "ItemViews",
    "item_summary": "ItemSummary",
    "top_viewed_items": "ItemSummary",
    "top_converting_items": "ItemSummary",
    "profile_views_per_minute_last_10": "MinuteViews",
    "profile_views": "ProfileView",
    "profile_views_enriched": "EnrichedView",
    "dd_flagged_profiles": "FlaggedProfile",
    "dd_flagged_profile_view": "FlaggedView",
    "high_value_users": "HighValueUser",
    "hvu_test": "HighValueUser",
}


def test_what_a_transaction_wrote_counts_from_when_it_was_read() -> None:
    """By the broker's time of a message it could be read before its transaction was over."""
    seen = Seen(1_700_000_000_100, "a.b", 0, 3)
    views = {f"kstreams.{view.view}": list[bytes]() for view in TRACED_VIEWS}
    written = topics({"kstreams.pageviews_progress": [], SUMMARY: [ALL], **views})
    engine = KafkaStreams(written, lambda *_: iter([seen]))
    before, stop = now_ms(), threading.Event()
    stop.set()
    there = stack(KSTREAMS_GUARANTEE="exactly_once_v2")
    (told,) = engine.updates(there, stop)
    (told_seen,) = engine.seen(there, TRACED_VIEWS, stop)
    for each in (told, told_seen):
        assert before <= each.timestamp_ms <= now_ms()
    assert isinstance(told, Summary)
    assert told.dt_ms == told.timestamp_ms - 1_700_000_000_050
    assert [*engine.seen(stack(), TRACED_VIEWS, stop)] == [seen]


def test_settings_that_change_what_is_measured_are_caveats() -> None:
    def said(**overrides: str) -> str:
        return " ".join(KSTREAMS.caveats(settings.load(overrides)))

    assert said() == ""
    assert "exactly_once_v2" in said(KSTREAMS_GUARANTEE="exactly_once_v2")
    assert "KSTREAMS_CHANGELOG=off" in said(KSTREAMS_CHANGELOG="off")


def test_where_to_look_can_be_typed() -> None:
    shown, program = KSTREAMS.usage_hints(stack())
    assert f"kcat -b {KAFKA} -C -e -q -t kstreams.pageviews_summary" in shown
    path = re.search(r"/\S+\.java", program)
    assert path
    assert "class ShopTopology" in Path(path[0]).read_text()


def test_it_writes_every_view_of_the_shop() -> None:
    """Each stands in the program, in the words of the catalogue."""
    source = (PROGRAM / "ShopTopology.java").read_text()
    assert [view.name for view in VIEWS if f'"{view.name}"' not in source] == []


def columns_in(*files: str) -> dict[str, list[str]]:
    """Record of the program → its columns."""
    texts = [(PROGRAM / file).read_text() for file in files]
    return {
        name: [snake(word) for word in re.findall(r"(\w+)(?:,|$)", columns.strip())]
        for text in texts
        for name, columns in re.findall(r"\brecord (\w+)\(([^)]*)\)", text)
    }


def snake(name: str) -> str:
    return re.sub(r"([A-Z])", lambda found: f"_{found[1].lower()}", name)


@pytest.mark.parametrize(("view", "record"), [*ROWS.items()])
def test_rows_have_the_columns_of_the_catalogue(view: str, record: str) -> None:
    (columns,) = [list(each.columns) for each in VIEWS if each.name == view]
    ours = columns_in("Shop.java", "Progress.java")[record]
    assert set(columns) <= set(ours)
    # Readers find rows by the first column.
    assert view == "pageviews_summary" or ours[0] == columns[0]
