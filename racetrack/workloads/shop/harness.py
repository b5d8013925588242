"""The harness's part of the shop: sources and views."""

import re
from pathlib import Path

from racetrack.workloads.contract import SourceTopic, Workload
from racetrack.workloads.message import USUAL_INTEGER, USUAL_TEXT, USUAL_TIME, usual_json
from racetrack.workloads.shop.catalogue import QUERIES, TRACED_VIEWS, VIEWS

# Pattern of valid urls: the url of a product or a profile ends with a number; other urls may be any
# text.
_URL = re.compile(r"/(products|profiles)/[0-9]{1,18}|(?!/products/|/profiles/).*", re.DOTALL)
PAGEVIEWS = SourceTopic(
    name="pageviews",
    table="pageviews",
    event="pageview",
    usual=usual_json(
        user_id=USUAL_INTEGER,
        url='"/(?:products|profiles)/[0-9]{1,18}"',
        channel=USUAL_TEXT,
        received_at=USUAL_TIME,
    ),
    fields={"user_id": int, "url": _URL, "channel": str, "received_at": int},
    due_field="received_at",
)
FLAGGED = SourceTopic(
    name="dd_flagged_profiles",
    table="dd_flagged_profiles",
    event="flag",
    usual='"?[0-9]{1,18}"?',
)
# SQL that creates tables for the topics, and a view of pageviews with parsed urls. Times are epoch
# milliseconds.
_CREATE = """
CREATE TABLE source.pageviews (
    "partition" INTEGER, "offset" BIGINT,
    user_id BIGINT, url VARCHAR, channel VARCHAR, received_at BIGINT
);
CREATE TABLE source.dd_flagged_profiles (message VARCHAR);
-- `/products/7` is type `products`, target 7; `/profiles/7` is type `profiles`, target 7.
CREATE VIEW source.pageviews_stg AS
SELECT *,
    CASE WHEN starts_with(url, '/products/') THEN 'products'
         WHEN starts_with(url, '/profiles/') THEN 'profiles' END AS pageview_type,
    CASE WHEN pageview_type IS NOT NULL THEN url[11:]::BIGINT END AS target_id
FROM source.pageviews;
"""

WORKLOAD = Workload(
    name="shop",
    topic=PAGEVIEWS,
    topics=(FLAGGED,),
    stored_bytes=112,
    size_setting="shop_pageview_bytes",
    database="shop",
    tables=("purchases", "items", "users"),
    watched_table="purchases",
    watched_kinds=("purchases", "tracer_events"),
    rates=("tracer_events_per_second", "updates_per_second", "deletes_per_second"),
    views=VIEWS,
    traced_views=TRACED_VIEWS,
    queries=QUERIES,
    progress="pageviews_progress",
    summary="pageviews_summary",
    scripts="demo",
    sink="high_value_users_sink",
    event_window_ms=None,
    sql=Path(__file__).with_name("views"),
    create=_CREATE,
)
