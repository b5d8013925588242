"""Tests of the baseline engine on a real PostgreSQL: batches of messages like Kafka's go in, and
its views are read."""

import threading
from decimal import Decimal
from pathlib import Path

import pytest
from confluent_kafka import Message

from racetrack.engines.contract import DemoError, NoSuchView, Progress, Summary
from racetrack.engines.pg import engine as pg
from racetrack.engines.pg.feed import consumer as feed
from racetrack.engines.pg.services import postgres
from racetrack.engines.pg.tests.brought import (
    NOW_MS,
    WITHIN_S,
    Loaded,
    change,
    demo,
    pageview,
    purchase,
    user,
)
from racetrack.engines.shared.tests.postgres import Postgres
from racetrack.errors import RacetrackError
from racetrack.stack.contract import Stack
from racetrack.workloads.shop.catalogue import VIEWS
from tests.json_messages import VALID

pytestmark = pytest.mark.slow


def test_the_script_makes_every_view_with_its_columns(loaded: Loaded) -> None:
    for view in VIEWS:
        table = pg.ENGINE.read_view(loaded.stack, view.name)
        assert set(view.columns) <= set(table.column_names), view.name
        assert table.num_rows == 0
    with pytest.raises(NoSuchView, match="nowhere"):
        pg.ENGINE.read_view(loaded.stack, "nowhere")
    with pytest.raises(DemoError, match='relation "pageviews" already exists'):
        pg.ENGINE.load_demo(loaded.stack)


KIND = "SELECT relkind FROM pg_class WHERE relname = 'pageviews_by_item'"


@pytest.mark.parametrize(("triggers", "kind"), [(False, "v"), (True, "r")])
def test_items_pageviews_are_the_same_whether_counted_when_they_come_or_when_read(
    stack: Stack, triggers: bool, kind: str
) -> None:
    with demo(stack, postgres_triggers=triggers) as loaded:
        loaded.bring(pageview(0, "/products/3"), pageview(1, "/profiles/3"))
        loaded.bring(pageview(2, "/products/4"), *(pageview(n, "/products/3") for n in (3, 4)))
        assert loaded.connection.execute(KIND).fetchone() == (kind,)
        counted = {row["item_id"]: row["pageviews"] for row in loaded.rows("pageviews_by_item")}
    assert counted == {3: 3, 4: 1}


def test_a_script_is_loaded_whole_or_not_at_all(stack: Stack, tmp_path: Path) -> None:
    script = tmp_path / "scripts" / "demo.pg.sql"
    script.parent.mkdir()
    whole = pg.ENGINE.script(stack.settings).read_text()
    script.write_text(whole.replace("COMMIT;", "SELECT nothing;\nCOMMIT;"))
    with pytest.raises(DemoError, match="nothing"):
        pg.PostgreSQL(script).load_demo(stack)
    with postgres.connect(stack.settings) as connection:
        assert connection.execute(feed.MADE).fetchone() == (False,)


def test_pageviews_are_counted_with_the_batch_that_brings_them(loaded: Loaded) -> None:
    loaded.bring(pageview(0, "/products/3"), pageview(1, "/profiles/9", where=4))
    loaded.bring(pageview(1, "/products/3"), pageview(2, "/about"))
    assert loaded.rows("pageviews_progress") == [
        {"partition": 4, "total": 1, "max_received_at": NOW_MS + 1},
        {"partition": 0, "total": 3, "max_received_at": NOW_MS + 2},
    ]
    assert loaded.rows("pageviews_by_item") == [{"item_id": 3, "pageviews": 2}]
    with pytest.raises(feed.Refused, match="pageviews"):
        loaded.bring(pageview(3, "/x"), Message("pageviews", 0, 4, value=b""))
    assert loaded.rows("pageviews_summary")[0]["total"] == 4
    assert feed.wait_for_tables(loaded.connection) == {("pageviews", 0): 3, ("pageviews", 4): 2}


def test_valid_messages_are_read_as_by_all_engines(loaded: Loaded) -> None:
    read = [(row.user_id, row.text, row.due_ms) for row in VALID]
    values = [row.value for row in VALID]
    # Together with the longest text, these exceed the blocks in which pyarrow reads.
    messages = [Message("pageviews", 0, n, value=value) for n, value in enumerate(20 * values)]
    loaded.bring(*messages)
    rows = loaded.connection.execute(
        "SELECT user_id, channel, 1000 * extract(epoch FROM received_at) FROM pageviews"
        ' ORDER BY "offset"'
    ).fetchall()
    assert [(user, text, int(due_ms)) for user, text, due_ms in rows] == 20 * read


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (b"no json", "JSON parse error"),
        (None, "2 messages hold 1 pageviews|1 messages hold 0 pageviews|[Ee]mpty"),
        (b'{"user_id": 1, "url": "/", "channel": "c", "received_at": "later"}', "received_at"),
        (b'{"user_id": 1, "url": "/", "received_at": 1}', "channel"),
        (b'{"user_id": 1, "url": "/products/x", "channel": "c", "received_at": 1}', '"x"'),
    ],
)
def test_a_message_that_is_no_pageview_is_named_and_changes_nothing(
    loaded: Loaded, wrong: bytes | None, reason: str
) -> None:
    before, after = pageview(10, "/products/3", where=4), pageview(12, "/products/3", where=4)
    place = "topic=pageviews, partition=4, offset=11, field=, reason=.*"
    with pytest.raises(feed.Refused, match=f"^RACETRACK refused {place}({reason})"):
        loaded.bring(before, Message("pageviews", 4, 11, value=wrong), after)
    assert loaded.rows("pageviews") == []
    assert feed.wait_for_tables(loaded.connection) == {}


def test_rows_are_changed_and_deleted_in_order(loaded: Loaded) -> None:
    first, second = purchase(1, "10.50"), purchase(2, "99999.99")
    loaded.bring(change("purchases", 0, None, first), change("purchases", 1, None, second))
    assert loaded.rows("purchases_by_item")[0]["revenue"] == Decimal("100010.49")
    cheaper = purchase(2, "0.01")
    loaded.bring(
        change("purchases", 2, first, None),
        change("purchases", 3, second, cheaper),
        change("purchases", 4, None, purchase(3, "5")),
        change("purchases", 5, purchase(3, "5"), None),
        change("users", 0, None, user(7, None)),
    )
    assert [(row["id"], row["purchase_price"]) for row in loaded.rows("purchases")] == [
        (2, Decimal("0.01"))
    ]
    assert [(row["id"], row["email"]) for row in loaded.rows("users")] == [(7, None)]


def test_flags_are_ids_and_all_else_is_left_out(loaded: Loaded) -> None:
    flags = [b"7", b'"8"', b"7", b"no id", b"\xff", b"", b"1" * 19]
    topic = "dd_flagged_profiles"
    loaded.bring(*(Message(topic, 0, at, value=flag) for at, flag in enumerate(flags)))
    loaded.bring(pageview(0, "/a", user=8), pageview(1, "/b", user=9))
    assert [row["user_id"] for row in loaded.rows("dd_flagged_profiles")] == [7, 8]
    assert [row["url"] for row in loaded.rows("dd_flagged_profile_view")] == ["/a"]


def test_progress_is_reported_when_it_is_committed(loaded: Loaded) -> None:
    loaded.bring(pageview(0, "/a"))
    stop = threading.Event()
    events = pg.ENGINE.updates(loaded.stack, stop)
    stood = [next(events), next(events)]
    assert [(p.partition, p.total) for p in stood if isinstance(p, Progress)] == [(0, 1)]
    with loaded.connection.transaction():
        loaded.bring(pageview(1, "/a"), pageview(2, "/b", where=1))
        threading.Timer(0.2, stop.set).start()
        assert list(events) == []  # nothing was committed, so there is no event until `stop`
    stop.clear()
    events = pg.ENGINE.updates(loaded.stack, stop)
    assert [type(next(events)) for _ in range(3)] == [Progress, Progress, Summary]
    loaded.bring(pageview(2, "/a"))
    one, both = next(events), next(events)
    stop.set()
    assert isinstance(one, Progress) and isinstance(both, Summary)
    assert (one.partition, one.total, one.max_received_at_ms) == (0, 3, NOW_MS + 2)
    assert (both.total, both.max_received_at_ms) == (4, NOW_MS + 2)
    assert both.dt_ms == both.timestamp_ms - both.max_received_at_ms


def test_a_server_that_ends_is_reported(loaded: Loaded, server: Postgres) -> None:
    loaded.bring(pageview(0, "/a"))
    stop = threading.Event()
    events = pg.ENGINE.updates(loaded.stack, stop)
    assert len([next(events), next(events)]) == 2
    ended = server.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = 'shop' AND query LIKE 'SELECT total, max_received_at%'"
    )
    assert ended == [(True,)]
    threading.Timer(WITHIN_S, stop.set).start()
    with pytest.raises(RacetrackError, match="PostgreSQL no longer reports"):
        list(events)
