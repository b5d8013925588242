"""The harness's part of Yahoo's benchmark: sources and views."""

from pathlib import Path

from racetrack.workloads.contract import (
    INTEGER,
    TEXT,
    TIME,
    Query,
    SourceTopic,
    TracedView,
    View,
    Workload,
)
from racetrack.workloads.message import USUAL_TEXT, USUAL_TIME, usual_json

_TEXTS = dict.fromkeys(("user_id", "page_id", "ad_id", "ad_type", "event_type"), USUAL_TEXT)
EVENTS = SourceTopic(
    name="ad-events",
    table="ad_events",
    event="ad event",
    usual=usual_json(**_TEXTS, event_time=USUAL_TIME, ip_address=USUAL_TEXT),
    # Only the fields that views use.
    fields={"ad_id": str, "event_type": str, "event_time": int},
    due_field="event_time",
)
_CREATE = """
CREATE TABLE source.ad_events (
    "partition" INTEGER, "offset" BIGINT, ad_id VARCHAR, event_type VARCHAR, event_time BIGINT
);
"""

VIEWS = (
    View("campaigns", ("campaign_id",), {"campaign_id": TEXT}),
    View("ads", ("ad_id",), {"ad_id": TEXT, "campaign_id": TEXT}),
    View(
        "ad_events_progress",
        ("partition",),
        {"partition": INTEGER, "total": INTEGER, "max_received_at": TIME},
        counts="total",
    ),
    # Has one row. Its column dt_ms is not verified, because it depends on the engine's clock.
    View("ad_events_summary", (), {"total": INTEGER, "max_received_at": TIME}, counts="total"),
    # The number of view events per campaign and window; `window_start_ms` is the first millisecond
    # of the window, a multiple of 10,000. A window without view events has no row.
    View(
        "campaign_windows",
        ("campaign_id", "window_start_ms"),
        {"campaign_id": TEXT, "window_start_ms": INTEGER, "seen_count": INTEGER},
        counts="seen_count",
    ),
)

# `racetrack/workloads/ads/load/tracers.py` defines the tracer events: views of the partition's
# reserved ad. Each counts in the window of its due time.
TRACED_VIEWS = (
    TracedView(
        "campaign_windows",
        "seen_count",
        "campaign_id",
        "00000000-0000-4000-8000-{:012d}",
        EVENTS.name,
        summed_over="window_start_ms",
    ),
)

WORKLOAD = Workload(
    name="ads",
    topic=EVENTS,
    topics=(),
    stored_bytes=265,
    size_setting="ads_event_bytes",
    database="ads",
    tables=("campaigns", "ads"),
    watched_table=None,
    watched_kinds=(),
    rates=("tracer_events_per_second", "updates_per_second"),
    views=VIEWS,
    traced_views=TRACED_VIEWS,
    queries=(Query("campaign_windows"),),
    progress="ad_events_progress",
    summary="ad_events_summary",
    scripts="ads",
    sink=None,
    event_window_ms=10_000,
    sql=Path(__file__).with_name("views"),
    create=_CREATE,
)
