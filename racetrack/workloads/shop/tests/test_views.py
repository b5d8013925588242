"""Tests of the views' SQL against the demo in plain Python. To check that every error is found,
tests alter the engine's input or its rows, and expect the error to be named."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from racetrack.verify.compare import Compared
from racetrack.workloads.shop.catalogue import VIEWS
from racetrack.workloads.shop.tests import shop
from racetrack.workloads.shop.tests.conftest import Faultless, Judge
from racetrack.workloads.shop.tests.shop import Shop

pytestmark = pytest.mark.slow


def wrong(found: dict[str, Compared]) -> set[str]:
    return {name for name, compared in found.items() if not compared.right}


def changed(table: pa.Table, row: int, **values: Any) -> pa.Table:
    """Return the table with other values in one row."""
    rows = table.to_pylist()
    rows[row] |= values
    return pa.Table.from_pylist(rows, schema=table.schema)


@pytest.mark.parametrize("seed", range(5))
def test_a_faultless_engine_is_right_in_every_view(judge: Judge, seed: int) -> None:
    truth = shop.make(seed)
    found = judge(truth, shop.views(truth))
    assert found.keys() == {view.name for view in VIEWS}
    assert not wrong(found), {name: found[name] for name in wrong(found)}
    assert all(compared.compared > 0 for compared in found.values())


def test_before_the_first_event_all_is_empty(judge: Judge) -> None:
    truth = Shop(flags=["3"])
    nothing = {
        view.name: pa.table({name: pa.nulls(0) for name in view.columns})
        for view in VIEWS
        if view.name != "dd_flagged_profiles"
    }
    assert not wrong(judge(truth, nothing))


@pytest.mark.parametrize("view", [view.name for view in VIEWS])
def test_one_row_that_is_gone_is_missing_and_one_that_is_there_twice_is_extra(
    faultless: Faultless, view: str
) -> None:
    table = faultless.views[view]
    found = faultless.judge(view, table.slice(1))
    assert (found.missing, found.extra, found.different) == (1, 0, 0)
    assert (found.findings[0].finding, found.findings[0].engine) == ("missing", None)
    found = faultless.judge(view, pa.concat_tables([table, table.slice(3 % len(table), 1)]))
    assert (found.missing, found.extra, found.different) == (0, 1, 0)
    assert found.findings[0].source is None


@pytest.mark.parametrize(
    ("view", "column", "alter"),
    [
        ("users", "email", lambda value: value + "x"),
        ("users", "is_vip", lambda value: not value),
        ("items", "price", lambda value: value + Decimal("0.01")),
        ("purchases", "updated_at", lambda value: value.replace(microsecond=1_000)),
        ("pageviews_progress", "max_received_at", lambda value: value - 1),
        ("pageviews_summary", "total", lambda value: value - 1),
        ("purchases_by_item", "revenue", lambda value: value - Decimal("0.01")),
        ("pageviews_by_item", "pageviews", lambda value: value + 1),
        ("item_summary", "conversion_rate", lambda value: (value or 1.0) * (1 + 1e-8)),
        ("top_viewed_items", "name", lambda _: None),
        ("top_converting_items", "orders", lambda value: value + 1),
        ("profile_views_per_minute_last_10", "pageviews", lambda value: value + 1),
        ("profile_views", "viewer_id", lambda value: value + 1),
        ("profile_views_enriched", "viewer_email", lambda _: "x"),
        ("dd_flagged_profile_view", "target_id", lambda _: 4_711),
        ("high_value_users", "lifetime_value", lambda value: value + Decimal("0.01")),
        ("hvu_test", "purchases", lambda value: value + 1),
    ],
)
def test_one_value_that_is_wrong_makes_its_row_different(
    faultless: Faultless, view: str, column: str, alter: Callable[[Any], Any]
) -> None:
    table = faultless.views[view]
    value = table.column(column)[0].as_py()
    found = faultless.judge(view, changed(table, 0, **{column: alter(value)}))
    assert (found.missing, found.extra, found.different) == (0, 0, 1)
    finding = found.findings[0]
    assert finding.source is not None
    assert finding.engine is not None
    assert [name for name in finding.source if finding.source[name] != finding.engine[name]] == [
        column
    ]


def test_a_pageview_that_was_dropped_is_named(judge: Judge) -> None:
    truth = shop.make()
    seen = truth.copy()
    dropped = next(row for row in reversed(seen.pageviews) if row["url"].startswith("/profiles"))
    seen.pageviews.remove(dropped)
    found = judge(truth, shop.views(seen))
    assert wrong(found) >= {"pageviews_progress", "pageviews_summary", "profile_views"}
    assert "purchases" not in wrong(found)
    missing = next(f for f in found["profile_views"].findings if f.finding == "missing")
    assert missing.source is not None
    assert missing.source["offset"] == dropped["offset"]


def test_a_purchase_that_was_counted_twice_is_named(judge: Judge) -> None:
    truth = shop.make()
    seen = truth.copy()
    twice = seen.purchases[17]
    seen.purchases.append(twice)
    found = judge(truth, shop.views(seen))
    assert wrong(found) >= {"purchases", "purchases_by_item", "item_summary"}
    assert found["purchases"].extra == 1
    (finding,) = found["purchases_by_item"].findings
    assert finding.source is not None
    assert finding.engine is not None
    assert finding.source["item_id"] == twice["item_id"]
    orders = finding.source["orders"]
    assert isinstance(orders, int) and finding.engine["orders"] == orders + 1


def test_a_deletion_that_is_late_is_named(judge: Judge) -> None:
    seen = shop.make()
    truth = seen.copy()
    gone = truth.purchases.pop(100)
    found = judge(truth, shop.views(seen))
    assert wrong(found) >= {"purchases", "purchases_by_item", "item_summary"}
    (finding,) = found["purchases"].findings
    assert (finding.finding, finding.source) == ("extra", None)
    assert finding.engine is not None
    assert finding.engine["id"] == gone["id"]


def test_an_update_that_did_not_go_through_a_join_is_named(judge: Judge) -> None:
    truth = shop.make()
    rows = shop.views(truth)
    truth.users[4]["email"] = "new@example.com"
    found = judge(truth, rows)
    assert wrong(found) >= {"users", "profile_views_enriched"}
    assert not wrong(found) & {"profile_views", "purchases"}


def test_of_equals_any_may_be_among_the_last_ten(judge: Judge) -> None:
    truth = shop.make()
    for row in truth.pageviews:
        row["received_at"] = shop.START_MS
    others = truth.copy()
    for row in others.pageviews:
        row["partition"] = 2 - row["partition"]  # so that other rows with equal values come last
    content = shop.views(others)["profile_views"]
    back = pa.array([2 - p.as_py() for p in content.column("partition")])
    content = content.set_column(content.schema.get_field_index("partition"), "partition", back)
    rows = {(r["partition"], r["offset"]) for r in content.to_pylist()}
    own = {(r["partition"], r["offset"]) for r in shop.views(truth)["profile_views"].to_pylist()}
    assert rows != own
    assert judge(truth, {"profile_views": content})["profile_views"].right
    eleven = pa.concat_tables([content, shop.views(truth)["profile_views"]])
    assert judge(truth, {"profile_views": eleven})["profile_views"].extra > 0


def test_of_equals_any_may_be_among_the_top_twenty_but_no_worse(judge: Judge) -> None:
    truth = Shop(items=shop.make().items)  # without any pageview, all items are equal
    summary = shop.views(shop.make())["item_summary"].schema
    rows = [
        {
            "item_id": item["id"],
            "name": item["name"],
            "category": item["category"],
            "revenue": Decimal(0),
            "orders": 0,
            "items_sold": 0,
            "pageviews": 0,
        }
        for item in truth.items
    ]

    def verdict(some: list[dict[str, Any]]) -> Compared:
        table = pa.Table.from_pylist(some, schema=summary)
        return judge(truth, {"top_viewed_items": table})["top_viewed_items"]

    assert verdict(rows[:20]).right
    assert verdict(rows[-20:]).right
    assert verdict(rows[:19]).missing == 1
    assert verdict(rows[:21]).extra == 1
