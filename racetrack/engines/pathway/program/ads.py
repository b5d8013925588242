"""The views of the workload `ads` on Pathway: how often ads were viewed, by campaign and window of
ten seconds. `scripts/ads.py` defines each view exactly; `demo.pathway.py` explains the topics."""

import pathway as pw  # type: ignore[import-not-found]

from racetrack.engines.pathway.program.dataflow import TEXT, Dataflow

WINDOW_MS = 10_000


def build(flow: Dataflow) -> None:
    """Build the dataflow of all views."""
    campaigns = flow.table("mysql.ads.campaigns", campaign_id=str)
    ads = flow.table("mysql.ads.ads", ad_id=str, campaign_id=TEXT)
    flow.write("campaigns", campaigns, "campaign_id")
    flow.write("ads", ads, "ad_id")

    events = flow.events("ad-events", ad_id=str, event_type=str, event_time=int)
    flow.write_progress("ad_events_progress", "ad_events_summary", events, "event_time")

    # Views are counted by ad before the join, so no events are kept, and an ad that moves takes its
    # counts along.
    views = events.filter(pw.this.event_type == "view").select(
        pw.this.ad_id, window_start_ms=pw.this.event_time // WINDOW_MS * WINDOW_MS
    )
    by_ad = views.groupby(pw.this.ad_id, pw.this.window_start_ms).reduce(
        ad_id=pw.reducers.any(pw.this.ad_id),
        window_start_ms=pw.reducers.any(pw.this.window_start_ms),
        seen=pw.reducers.count(),
    )
    joined = by_ad.join(ads, by_ad.ad_id == ads.ad_id).select(
        ads.campaign_id, by_ad.window_start_ms, by_ad.seen
    )
    windows = joined.groupby(pw.this.campaign_id, pw.this.window_start_ms).reduce(
        pw.this.campaign_id, pw.this.window_start_ms, seen_count=pw.reducers.sum(pw.this.seen)
    )
    flow.write("campaign_windows", windows, "campaign_id", "window_start_ms")
    flow.create_topics()
