"""Tests of the baseline engine on a real PostgreSQL: batches of messages like Kafka's go in, and
its views are read."""

import threading
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

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
from racetrack.workloads.shop.catalogue import TRACED_VIEWS, VIEWS
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


def test_values_beyond_the_declared_types_come_through(loaded: Loaded) -> None:
    nothing = dict.fromkeys(purchase(1, "1"))
    huge = purchase(2, "9999999999.99") | {"quantity": 2**32 - 1, "updated_at": 253_402_300_799_000}
    item = {"id": 1, "name": "🙂 \"q\" 'a'\r\n<b>\\N", "price": Decimal("-99999.9999")}
    loaded.bring(
        change("purchases", 0, None, {**nothing, "id": 1}),
        change("purchases", 1, None, huge),
        change("items", 0, None, {**dict.fromkeys(("category", "inventory")), **item}),
        change("users", 0, None, {**dict.fromkeys(user(1)), "id": 1}),
    )
    (sold,) = [row for row in loaded.rows("purchases_by_item") if row["item_id"] is None]
    assert (sold["revenue"], sold["orders"], sold["items_sold"]) == (None, 1, None)
    (worth,) = loaded.rows("high_value_users")
    assert worth["lifetime_value"] == Decimal("9999999999.99") * (2**32 - 1)
    (found,) = loaded.rows("items")
    assert (found["name"], found["price"]) == (item["name"], item["price"])


@pytest.mark.parametrize(
    ("row", "field", "reason"),
    [
        (purchase(1, "no number"), "purchase_price", "invalid input syntax for type numeric"),
        (purchase(1, "1") | {"quantity": 2**63}, "quantity", "out of range for type bigint"),
    ],
)
def test_a_change_that_the_tables_can_not_take_is_named_with_its_field(
    loaded: Loaded, row: dict[str, Any], field: str, reason: str
) -> None:
    table = "users" if "email" in row else "purchases"
    named = f"topic=mysql.shop.{table}, partition=0, offset=1, field={field}, reason=.*{reason}"
    with pytest.raises(feed.Refused, match=named):
        loaded.bring(
            pageview(0, "/products/3"),
            change("purchases", 0, None, purchase(7, "1")),
            change(table, 1, None, row),
        )


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


def test_a_view_determines_which_tracer_events_it_holds_and_again_when_it_holds_more(
    loaded: Loaded,
) -> None:
    views = {view.name: view for view in TRACED_VIEWS}
    wanted = [views["item_summary.pageviews"], views["profile_views_enriched.received_at"]]
    items, owners = (view.keys(loaded.stack.settings) for view in wanted)
    item, owner = f"/products/{items[2]}", f"/profiles/{owners[0]}"
    loaded.connection.execute("INSERT INTO items (id) VALUES (%s)", [items[2]])
    loaded.bring(pageview(0, item), pageview(1, owner), pageview(2, "/products/3"))
    stop = threading.Event()
    threading.Timer(WITHIN_S, stop.set).start()
    recorded = pg.ENGINE.seen(loaded.stack, wanted, stop)

    def next_two() -> dict[str, tuple[int, int]]:
        return {seen.view: (seen.partition, seen.value) for seen in islice(recorded, 2)}

    summary, enriched = (view.name for view in wanted)
    assert next_two() == {summary: (2, 1), enriched: (0, NOW_MS + 1)}
    loaded.bring(pageview(3, owner), pageview(4, item))
    assert next_two() == {summary: (2, 2), enriched: (0, NOW_MS + 3)}
    stop.set()
    assert list(recorded) == []
