"""A small shop generated from a seed, and the demo's views of it in plain Python, written from the
comments in `scripts/demo.py` and independently of the SQL that is tested with it."""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

Row = dict[str, Any]
START = datetime(2026, 3, 22, 5, 4, 28, tzinfo=UTC)
START_MS = int(START.timestamp() * 1000)
WINDOW_MS = 600_000


@dataclass
class Shop:
    """MySQL's tables as lists of rows, and the topics as lists of messages."""

    users: list[Row] = field(default_factory=list)
    items: list[Row] = field(default_factory=list)
    purchases: list[Row] = field(default_factory=list)
    pageviews: list[Row] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    now_ms: int = START_MS + 900_000

    def copy(self) -> "Shop":
        """Return a copy that can be changed."""
        return deepcopy(self)


def make(seed: int = 1, users: int = 30, items: int = 40, pageviews: int = 3_000) -> Shop:
    """Return a shop with unviewed users and items, views of missing ones, and many ties."""
    r = random.Random(seed)  # noqa: S311  # the same shop for the same seed
    shop = Shop(flags=["3", '"7"', "3", "nonsense", "", "-4", "999"])
    for id_ in range(1, users + 1):
        shop.users.append({"id": id_, "email": f"u{id_}@example.com", "is_vip": id_ % 6 == 0})
    for id_ in range(1, items + 1):
        price = Decimal(r.randrange(100, 99_999)) / 100
        shop.items.append({"id": id_, "name": f"item {id_}", "category": "toys", "price": price})
        shop.items[-1] |= {"inventory": r.randrange(100), "inventory_updated_at": START}
    for id_ in range(1, 201):
        buy = {"id": id_, "user_id": r.randrange(1, users + 3), "item_id": r.randrange(1, items)}
        buy |= {"status": 1, "quantity": r.randrange(1, 5), "deleted": False}
        shop.purchases.append({**buy, "purchase_price": Decimal(r.randrange(100, 400_000)) / 100})
    for row in [*shop.users, *shop.items, *shop.purchases]:
        row |= {"created_at": START, "updated_at": START + timedelta(seconds=1)}
    offsets: Counter[int] = Counter()
    for number in range(pageviews):
        partition = r.randrange(3)
        target = r.randrange(1, items + 3)
        kind = r.choice(("products", "profiles"))
        shop.pageviews.append(
            {
                "partition": partition,
                "offset": offsets[partition],
                "user_id": r.randrange(1, users + 3),
                "url": r.choice((f"/{kind}/{target}", f"/{kind}/{target}", "/help")),
                "channel": r.choice(("social", "referral")),
                "received_at": START_MS + number // 4 * 1_200,
            }
        )
        offsets[partition] += 1
    return shop


def views(shop: Shop) -> dict[str, pa.Table]:
    """Return the rows of every view in a correct engine, with the types of a columnar engine."""
    by_name: dict[str, Callable[[Shop], Iterable[Row]]] = {
        "users": lambda s: s.users,
        "items": lambda s: s.items,
        "purchases": lambda s: s.purchases,
        "pageviews_progress": _progress,
        "pageviews_summary": _summary,
        "purchases_by_item": _purchases_by_item,
        "pageviews_by_item": _pageviews_by_item,
        "item_summary": _item_summary,
        "top_viewed_items": lambda s: _top(s, "pageviews"),
        "top_converting_items": lambda s: _top(s, "conversion_rate"),
        "profile_views_per_minute_last_10": _per_minute,
        "profile_views": _profile_views,
        "profile_views_enriched": _enriched,
        "dd_flagged_profiles": lambda s: [{"user_id": id_} for id_ in sorted(_flagged(s))],
        "dd_flagged_profile_view": lambda s: [
            row for row in _staged(s) if row["user_id"] in _flagged(s)
        ],
        "high_value_users": _high_value_users,
        "hvu_test": _high_value_users,
    }
    return {name: pa.Table.from_pylist(list(make_(shop))) for name, make_ in by_name.items()}


def _staged(shop: Shop) -> list[Row]:
    rows = []
    for row in shop.pageviews:
        _, kind, *target = row["url"].split("/")
        at = datetime.fromtimestamp(row["received_at"] / 1000, UTC)
        known = kind in {"products", "profiles"}
        rows.append(
            {
                **row,
                "received_at": at,
                "pageview_type": kind if known else None,
                "target_id": int(target[0]) if known else None,
            }
        )
    return rows


def _of_type(shop: Shop, kind: str) -> list[Row]:
    return [row for row in _staged(shop) if row["pageview_type"] == kind]


def _progress(shop: Shop) -> list[Row]:
    newest: dict[int, int] = {}
    for row in shop.pageviews:
        partition = row["partition"]
        newest[partition] = max(newest.get(partition, 0), row["received_at"])
    total = Counter(row["partition"] for row in shop.pageviews)
    return [{"partition": p, "total": total[p], "max_received_at": at} for p, at in newest.items()]


def _summary(shop: Shop) -> list[Row]:
    newest = max(row["received_at"] for row in shop.pageviews)
    return [{"total": len(shop.pageviews), "max_received_at": newest, "dt_ms": 12.5}]


def _purchases_by_item(shop: Shop) -> list[Row]:
    sums: dict[int, Row] = {}
    for buy in shop.purchases:
        empty = {"item_id": buy["item_id"], "revenue": Decimal(0), "orders": 0, "items_sold": 0}
        row = sums.setdefault(buy["item_id"], empty)
        row["revenue"] += buy["purchase_price"]
        row["orders"] += 1
        row["items_sold"] += buy["quantity"]
    return list(sums.values())


def _pageviews_by_item(shop: Shop) -> list[Row]:
    counts = Counter(row["target_id"] for row in _of_type(shop, "products"))
    return [{"item_id": item, "pageviews": count} for item, count in counts.items()]


def _item_summary(shop: Shop) -> list[Row]:
    sold = {row["item_id"]: row for row in _purchases_by_item(shop)}
    viewed = {row["item_id"]: row["pageviews"] for row in _pageviews_by_item(shop)}
    rows = []
    for item in shop.items:
        buys = sold.get(item["id"], {"revenue": Decimal(0), "orders": 0, "items_sold": 0})
        pageviews = viewed.get(item["id"], 0)
        rate = buys["orders"] / pageviews if pageviews else None
        row = {"item_id": item["id"], "name": item["name"], "category": item["category"]}
        rows.append({**row, **buys, "pageviews": pageviews, "conversion_rate": rate})
        rows[-1]["item_id"] = item["id"]
    return rows


def _top(shop: Shop, by: str) -> list[Row]:
    def place(row: Row) -> tuple[bool, float, int]:
        return row[by] is None, -(row[by] or 0), row["item_id"]

    return sorted(_item_summary(shop), key=place)[:20]


def _per_minute(shop: Shop) -> list[Row]:
    counts: Counter[tuple[int, int]] = Counter()
    for row in shop.pageviews:
        kind, target = row["url"].split("/")[1:3] if row["url"].count("/") == 2 else ("", "")
        if kind == "profiles" and shop.now_ms - row["received_at"] < WINDOW_MS:
            counts[int(target), row["received_at"] // 60_000] += 1
    return [
        {
            "user_id": owner,
            "received_at_minute": datetime.fromtimestamp(minute * 60, UTC),
            "pageviews": count,
        }
        for (owner, minute), count in counts.items()
    ]


def _profile_views(shop: Shop) -> list[Row]:
    by_owner: dict[int, list[Row]] = defaultdict(list)
    for row in _of_type(shop, "profiles"):
        by_owner[row["target_id"]].append(
            {
                "owner_id": row["target_id"],
                "viewer_id": row["user_id"],
                **{name: row[name] for name in ("received_at", "partition", "offset")},
            }
        )

    def age(row: Row) -> tuple[datetime, int, int]:
        return row["received_at"], row["partition"], row["offset"]

    return [row for rows in by_owner.values() for row in sorted(rows, key=age)[-10:]]


def _enriched(shop: Shop) -> list[Row]:
    emails = {user["id"]: user["email"] for user in shop.users}
    return [
        {
            **row,
            "owner_email": emails.get(row["owner_id"]),
            "viewer_email": emails.get(row["viewer_id"]),
        }
        for row in _profile_views(shop)
    ]


def _flagged(shop: Shop) -> set[int]:
    return {int(flag.strip('"')) for flag in shop.flags if flag.strip('"').isdigit()}


def _high_value_users(shop: Shop) -> list[Row]:
    emails = {user["id"]: user["email"] for user in shop.users}
    worth: dict[int, Decimal] = defaultdict(Decimal)
    for buy in shop.purchases:
        worth[buy["user_id"]] += buy["purchase_price"] * buy["quantity"]
    count = Counter(buy["user_id"] for buy in shop.purchases)
    return [
        {"id": id_, "email": emails.get(id_), "lifetime_value": value, "purchases": count[id_]}
        for id_, value in worth.items()
        if value > 10_000
    ]
