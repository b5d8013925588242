"""The shop's verified views with their columns and keys.

Engines create these views, in scripts such as `scripts/demo.py`. The files
`racetrack/workloads/shop/views/<view>.sql` compute the expected rows from the sources."""

from racetrack.workloads.contract import (
    DECIMAL,
    FLOAT,
    INTEGER,
    TEXT,
    TIME,
    Query,
    TopN,
    TracedView,
    View,
)

_ITEM = {
    "item_id": INTEGER,
    "name": TEXT,
    "category": TEXT,
    "revenue": DECIMAL,
    "orders": INTEGER,
    "items_sold": INTEGER,
    "pageviews": INTEGER,
    "conversion_rate": FLOAT,
}
_HIGH_VALUE_USER = {
    "id": INTEGER,
    "email": TEXT,
    "lifetime_value": DECIMAL,
    "purchases": INTEGER,
}
_PROFILE_VIEW = {
    "owner_id": INTEGER,
    "viewer_id": INTEGER,
    "received_at": TIME,
    "partition": INTEGER,
    "offset": INTEGER,
}
_MADE_AND_CHANGED = {"created_at": TIME, "updated_at": TIME}

VIEWS = (
    View(
        "users",
        ("id",),
        {"id": INTEGER, "email": TEXT, "is_vip": INTEGER, **_MADE_AND_CHANGED},
    ),
    View(
        "items",
        ("id",),
        {
            "id": INTEGER,
            "name": TEXT,
            "category": TEXT,
            "price": DECIMAL,
            "inventory": INTEGER,
            "inventory_updated_at": TIME,
            **_MADE_AND_CHANGED,
        },
    ),
    View(
        "purchases",
        ("id",),
        {
            "id": INTEGER,
            "user_id": INTEGER,
            "item_id": INTEGER,
            "status": INTEGER,
            "quantity": INTEGER,
            "purchase_price": DECIMAL,
            "deleted": INTEGER,
            **_MADE_AND_CHANGED,
        },
    ),
    View(
        "pageviews_progress",
        ("partition",),
        {"partition": INTEGER, "total": INTEGER, "max_received_at": TIME},
        counts="total",
    ),
    # Has one row. Its column dt_ms is not verified, because it depends on the engine's clock.
    View("pageviews_summary", (), {"total": INTEGER, "max_received_at": TIME}, counts="total"),
    View(
        "purchases_by_item",
        ("item_id",),
        {"item_id": INTEGER, "revenue": DECIMAL, "orders": INTEGER, "items_sold": INTEGER},
    ),
    View(
        "pageviews_by_item",
        ("item_id",),
        {"item_id": INTEGER, "pageviews": INTEGER},
        counts="pageviews",
    ),
    View("item_summary", ("item_id",), _ITEM),
    View("top_viewed_items", ("item_id",), _ITEM, TopN(20, "pageviews")),
    View("top_converting_items", ("item_id",), _ITEM, TopN(20, "conversion_rate")),
    View(
        "profile_views_per_minute_last_10",
        ("user_id", "received_at_minute"),
        {"user_id": INTEGER, "received_at_minute": TIME, "pageviews": INTEGER},
        window="pageviews",
    ),
    View(
        "profile_views",
        ("partition", "offset"),
        _PROFILE_VIEW,
        TopN(10, "received_at", per=("owner_id",)),
    ),
    View(
        "profile_views_enriched",
        ("partition", "offset"),
        {**_PROFILE_VIEW, "owner_email": TEXT, "viewer_email": TEXT},
        TopN(10, "received_at", per=("owner_id",)),
    ),
    View("dd_flagged_profiles", ("user_id",), {"user_id": INTEGER}),
    View(
        "dd_flagged_profile_view",
        ("partition", "offset"),
        {
            "user_id": INTEGER,
            "url": TEXT,
            "channel": TEXT,
            "received_at": TIME,
            "partition": INTEGER,
            "offset": INTEGER,
            "pageview_type": TEXT,
            "target_id": INTEGER,
        },
    ),
    View("high_value_users", ("id",), _HIGH_VALUE_USER),
    # Contains the messages of the topic into which the engine writes high-value users.
    View("hvu_test", ("id",), _HIGH_VALUE_USER),
)

# `racetrack/workloads/shop/load/tracers.py` defines the tracer events: each consists of a purchase
# of the partition's reserved product, and a pageview, alternately of that product and of the
# partition's reserved profile.
TRACED_VIEWS = (
    TracedView("item_summary", "pageviews", "item_id", "shop_items", "pageviews", parity=0),
    TracedView("item_summary", "orders", "item_id", "shop_items", "purchases"),
    TracedView(
        "profile_views_enriched",
        "received_at",
        "owner_id",
        "shop_users",
        "pageviews",
        parity=1,
        is_time=True,
    ),
)
_PAGEVIEWS, _, _RECEIVED_AT = TRACED_VIEWS

# Queries that the harness repeats to measure the age of answers: the top 20 products, some products
# by id, and the viewers of some profiles.
QUERIES = (
    Query("top_viewed_items"),
    Query(_PAGEVIEWS.view, by=_PAGEVIEWS),
    Query(_RECEIVED_AT.view, by=_RECEIVED_AT),
)
