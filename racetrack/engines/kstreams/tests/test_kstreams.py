"""Kafka Streams' module without Kafka: what it makes of what it reads, and what is in its
program."""

import re
import threading
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from racetrack import config as settings
from racetrack.clock import now_ms
from racetrack.engines import find_engine
from racetrack.engines.contract import NoSuchView, Progress, Seen, Summary
from racetrack.engines.kstreams.recipe import RECIPE
from racetrack.engines.shared.upsert import engine, marks, totals
from racetrack.engines.shared.upsert.topics import Written
from racetrack.workloads.shop.catalogue import TRACED_VIEWS, VIEWS

KSTREAMS = find_engine("kstreams")
PROGRAM = RECIPE.sources[0] / "racetrack" / "kstreams"
KAFKA = "127.0.0.1:54092"
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
TOLD = [
    Written(
        "kstreams.pageviews_progress",
        0,
        1_700_000_000_100,
        b"2",
        b'{"partition":2,"total":5,"max_received_at":1700000000040}',
    ),
    None,
    Written(
        "kstreams.pageviews_summary",
        0,
        1_700_000_000_123,
        b'"all"',
        b'{"summary_of":"all","total":7,"max_received_at":1700000000050,"dt_ms":70}',
    ),
]


def stack(**overrides: str) -> Any:
    return SimpleNamespace(
        settings=settings.load(overrides),
        endpoints=SimpleNamespace(kafka=KAFKA),
        log_of=lambda service: Path(f"/logs/{service}.log"),
    )


def test_progress_is_what_the_topics_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(totals, "follow", lambda *_: iter(TOLD))
    assert list(KSTREAMS.updates(stack(), threading.Event())) == [
        Progress(1_700_000_000_100, 2, 5, 1_700_000_000_040),
        Summary(1_700_000_000_123, 7, 1_700_000_000_050, 73.0),
    ]


def test_what_a_transaction_wrote_counts_from_when_it_was_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the broker's time of a message it could be read before its transaction was over."""
    monkeypatch.setattr(totals, "follow", lambda *_: iter(TOLD))
    seen = Seen(1_700_000_000_100, "a.b", 0, 3)
    monkeypatch.setattr(marks, "follow", lambda *_: iter([seen]))
    before = now_ms()
    written = {f"kstreams.{view.view}" for view in TRACED_VIEWS}
    monkeypatch.setattr(engine, "names", lambda _: written)
    there = stack(KSTREAMS_GUARANTEE="exactly_once_v2")
    told = [*KSTREAMS.updates(there, threading.Event())]
    told_seen = [*KSTREAMS.seen(there, TRACED_VIEWS, threading.Event())]
    for each in (*told, *told_seen):
        assert before <= each.timestamp_ms <= now_ms()
    assert isinstance(told[1], Summary)
    assert told[1].dt_ms == told[1].timestamp_ms - 1_700_000_000_050
    assert [*KSTREAMS.seen(stack(), TRACED_VIEWS, threading.Event())] == [seen]


def test_a_view_comes_back_without_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    row = (
        b'{"item_id":1,"name":"a","category":null,"revenue":12345678901234567890.10,'
        b'"orders":2,"items_sold":3,"pageviews":7,"conversion_rate":0.2857142857142857}'
    )
    asked = []

    def latest(kafka: str, topic: str) -> list[bytes]:
        asked.append((kafka, topic))
        return [row]

    monkeypatch.setattr(engine, "names", lambda _: {"kstreams.item_summary"})
    monkeypatch.setattr(engine, "is_written", lambda *_: True)
    monkeypatch.setattr(engine, "latest", latest)
    (found,) = KSTREAMS.read_view(stack(), "item_summary").to_pylist()
    assert asked == [(KAFKA, "kstreams.item_summary")]
    assert found["revenue"] == Decimal("12345678901234567890.10")
    assert found["conversion_rate"] == 2 / 7


def test_a_view_that_it_does_not_have_is_no_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NoSuchView, match="nothing_such"):
        KSTREAMS.read_view(stack(), "nothing_such")
    monkeypatch.setattr(engine, "names", lambda _: {"kstreams.item_summary"})
    with pytest.raises(NoSuchView, match="does not make the view 'items'"):
        KSTREAMS.read_view(stack(), "items")
    monkeypatch.setattr(engine, "is_written", lambda *_: False)
    with pytest.raises(NoSuchView, match="no view yet"):
        KSTREAMS.read_view(stack(), "item_summary")


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
