# Yahoo's streaming benchmark, kept up to date by Deephaven: how often ads were viewed, by campaign
# and window of ten seconds.
#
# Paste it into the IDE piece by piece, or load it whole: exec(open('/scripts/ads.py').read())
# Topics and schemas must be there: they are once `./race up dh --workload ads` has returned.
#
# What each view holds is said beside it, exactly. As in demo.py, a view is a set of rows, counts
# are 64-bit integers, and times are epoch milliseconds, as they come.

import os

from deephaven import agg
from deephaven.execution_context import get_exec_ctx
from deephaven.json import jackson, long_val, object_val, string_val
from deephaven.stream.kafka import cdc
from deephaven.stream.kafka import consumer as kc
from deephaven.update_graph import shared_lock

KAFKA = os.environ.get("KAFKA_BOOTSTRAP", "redpanda:9092")
REGISTRY = os.environ.get("SCHEMA_REGISTRY_URL", "http://redpanda:8081")

kafka_properties = {"bootstrap.servers": KAFKA, "schema.registry.url": REGISTRY}

# ---- The database --------------------------------------------------------------------------------
# `campaigns`, `ads`: MySQL's tables as they are now: ads say which campaign each belongs to.
campaigns = cdc.consume(kafka_properties, cdc.cdc_short_spec("mysql", "ads", "campaigns"))
ads = cdc.consume(kafka_properties, cdc.cdc_short_spec("mysql", "ads", "ads"))

# ---- Events --------------------------------------------------------------------------------------
# Of an event's seven fields only these are read: nothing else is asked for.
#
# A message that is not JSON, or a time that is not an integer, ends all that depends on it, with an
# error in the server's log. In a measurement, loud is right.
ad_event_json = jackson.provider(
    object_val(
        {
            "ad_id": string_val(allow_missing=False, allow_null=False),
            "event_type": string_val(allow_missing=False, allow_null=False),
            "event_time": long_val(allow_missing=False, allow_null=False),
        }
    )
)

# `ad_events` is a blink table: it holds the events of one update cycle, and what is counted of them
# stays. So memory grows with ads and windows, and not with events. The lock lets no cycle pass
# between the consumer's start and the two tables that count, or they would miss its first events.
with shared_lock(get_exec_ctx().update_graph):
    ad_events = kc.consume(
        {
            **kafka_properties,
            "deephaven.partition.column.name": "partition",
            "deephaven.offset.column.name": "",
            "deephaven.timestamp.column.name": "",
        },
        "ad-events",
        offsets=kc.ALL_PARTITIONS_SEEK_TO_BEGINNING,
        key_spec=kc.KeyValueSpec.IGNORE,
        value_spec=kc.object_processor_spec(ad_event_json),
        table_type=kc.TableType.blink(),
    )

    # `ad_events_progress`: per partition that has any, how many events were counted, and the newest
    # `event_time` among them.
    ad_events_progress = ad_events.agg_by(
        [agg.count_("total"), agg.max_("max_received_at = event_time")], "partition"
    )

    # `views_by_ad`: how many events of each ad and window are views.
    views_by_ad = (
        ad_events.where("event_type = `view`")
        .update_view("window_start_ms = lowerBin(event_time, 10000L)")
        .count_by("seen", ["ad_id", "window_start_ms"])
    )

# `ad_events_summary`: one row, none before the first event: the same over all partitions, and
# dt_ms: how old the newest event was when this row was computed. demo.py says why it is made so.
ad_events_summary = ad_events_progress.agg_by(
    [agg.sum_("total"), agg.max_("max_received_at")]
).update("dt_ms = total == 0 ? NULL_DOUBLE : epochNanos(now()) / 1e6 - max_received_at")

# ---- Campaigns -----------------------------------------------------------------------------------
# `campaign_windows`: per campaign and window that has any, how many of its ads' events are views.
# `window_start_ms` is the window's first millisecond, a multiple of 10,000. Views are counted by ad
# first, so that an ad whose row comes late, or changes, is counted where it belongs, and nobody has
# to keep its events for that. An ad that `ads` does not have counts nowhere.
campaign_windows = (
    views_by_ad.natural_join(ads, "ad_id", "campaign_id")
    .where("campaign_id != null")
    .agg_by(agg.sum_("seen_count = seen"), ["campaign_id", "window_start_ms"])
)

# ---- For sample_dt.py ----------------------------------------------------------------------------
# The views that say what was counted, and those that no other reads: once they are through with an
# update cycle, all are.
sampled = {
    "summary": ad_events_summary,
    "progress": ad_events_progress,
    "last_views": [campaigns, campaign_windows],
}
