"""Tests of the workload `ads` in the baseline engine (PostgreSQL): the consumer reads the topics
that the workload's script names, into the script's own tables."""

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Message

from racetrack.engines.pg.tests.brought import NOW_MS, Loaded, demo
from racetrack.stack.contract import Stack

pytestmark = pytest.mark.slow

WINDOW_MS = 10_000
FIRST = NOW_MS // WINDOW_MS * WINDOW_MS


@pytest.fixture
def loaded(stack: Stack) -> Iterator[Loaded]:
    with demo(stack, workload="ads") as found:
        yield found


def event(at: int, ad: str, kind: str = "view", when: int = FIRST, where: int = 0) -> Message:
    what = {"user_id": "u", "page_id": "p", "ad_id": ad, "ad_type": "mail", "event_type": kind}
    body = json.dumps({**what, "event_time": when, "ip_address": "1.2.3.4"})
    return Message("ad-events", where, at, value=body.encode())


def row(at: int, table: str, after: object, before: object = None) -> Message:
    body = {"before": before, "after": after}
    return Message(f"mysql.ads.{table}", 0, at, value=json.dumps(body).encode())


def ad(name: str, campaign: str) -> dict[str, str]:
    return {"ad_id": name, "campaign_id": campaign}


def windows(loaded: Loaded) -> set[tuple[str, int, int]]:
    found = loaded.rows("campaign_windows")
    return {(one["campaign_id"], one["window_start_ms"], one["seen_count"]) for one in found}


def test_views_are_counted_by_campaign_and_window(loaded: Loaded) -> None:
    loaded.bring(
        row(0, "campaigns", {"campaign_id": "c"}),
        row(0, "ads", ad("a", "c")),
        row(1, "ads", ad("b", "c")),
        event(0, "a"),
        event(1, "b", when=FIRST + WINDOW_MS - 1),
        event(2, "a", when=FIRST + WINDOW_MS),
        event(3, "a", kind="click"),
        event(4, "a", kind="purchase"),
        event(0, "nobody's", where=1),
    )
    assert windows(loaded) == {("c", FIRST, 2), ("c", FIRST + WINDOW_MS, 1)}
    assert [one["campaign_id"] for one in loaded.rows("campaigns")] == ["c"]


def test_an_ad_counts_where_it_belongs_however_late_that_is_known(loaded: Loaded) -> None:
    loaded.bring(event(0, "a"), event(1, "a"))
    assert windows(loaded) == set()
    loaded.bring(row(0, "ads", ad("a", "c")))
    assert windows(loaded) == {("c", FIRST, 2)}
    loaded.bring(row(1, "ads", ad("a", "d"), ad("a", "c")))
    assert windows(loaded) == {("d", FIRST, 2)}
