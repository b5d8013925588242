# Yahoo's streaming benchmark, kept up to date by Deephaven: how often ads were viewed, by campaign
# and window of ten seconds.
#
# Paste it into the IDE piece by piece, or load it whole: exec(open('/scripts/ads.py').read())
# Topics and schemas must exist: `./race up dh --workload ads` creates them before it returns.
#
# The comment above each view defines its content exactly. As in demo.py, a view is a set of rows,
# counts are 64-bit integers, and times are epoch milliseconds, as in the messages.

import json
import os

from deephaven import agg
from deephaven.execution_context import get_exec_ctx
from deephaven.json import jackson, long_val, object_val, string_val
from deephaven.stream.kafka import cdc
from deephaven.stream.kafka import consumer as kc
from deephaven.update_graph import shared_lock

# A server that others use too gets its own values of these variables (docs/own-parts.md).
ENVIRONMENT = globals().get("ENVIRONMENT", os.environ)
KAFKA = ENVIRONMENT.get("KAFKA_BOOTSTRAP", "redpanda:9092")
REGISTRY = ENVIRONMENT.get("SCHEMA_REGISTRY_URL", "http://redpanda:8081")

# For a Kafka that others use too: further properties of clients, and the prefix of all topics.
CLIENT = json.loads(ENVIRONMENT.get("KAFKA_JAVA_CONFIG", "{}"))
PREFIX = ENVIRONMENT.get("KAFKA_TOPIC_PREFIX", "")

kafka_properties = {**CLIENT, "bootstrap.servers": KAFKA, "schema.registry.url": REGISTRY}

# ---- The database --------------------------------------------------------------------------------
# `campaigns`, `ads`: the current content of MySQL's tables. A row of `ads` contains the ad's
# campaign.
campaigns = cdc.consume(kafka_properties, cdc.cdc_short_spec(PREFIX + "mysql", "ads", "campaigns"))
ads = cdc.consume(kafka_properties, cdc.cdc_short_spec(PREFIX + "mysql", "ads", "ads"))

# ---- Events --------------------------------------------------------------------------------------
# Only three of an event's seven fields are read, because no view needs the others.
#
# A message that is not JSON, or a time that is not an integer, ends all tables that depend on it,
# with an error in the server's log: a measurement must not hide errors.
ad_event_json = jackson.provider(
    object_val(
        {
            "ad_id": string_val(allow_missing=False, allow_null=False),
            "event_type": string_val(allow_missing=False, allow_null=False),
            "event_time": long_val(allow_missing=False, allow_null=False),
        }
    )
)

# `ad_events` is a blink table: it contains only the events of one update cycle, while the counts
# are kept. So memory grows with ads and windows, not with events. The lock prevents an update cycle
# between the consumer's start and the creation of the two counting tables, which would miss events.
with shared_lock(get_exec_ctx().update_graph):
    ad_events = kc.consume(
        {
            **kafka_properties,
            "deephaven.partition.column.name": "partition",
            "deephaven.offset.column.name": "",
            "deephaven.timestamp.column.name": "",
        },
        PREFIX + "ad-events",
        offsets=kc.ALL_PARTITIONS_SEEK_TO_BEGINNING,
        key_spec=kc.KeyValueSpec.IGNORE,
        value_spec=kc.object_processor_spec(ad_event_json),
        table_type=kc.TableType.blink(),
    )

    # `ad_events_progress`: a row per partition with events: the number of events counted, and their
    # newest `event_time`.
    ad_events_progress = ad_events.agg_by(
        [agg.count_("total"), agg.max_("max_received_at = event_time")], "partition"
    )

    # `views_by_ad`: the number of views per ad and window.
    views_by_ad = (
        ad_events.where("event_type = `view`")
        .update_view("window_start_ms = lowerBin(event_time, 10000L)")
        .count_by("seen", ["ad_id", "window_start_ms"])
    )

# `ad_events_summary`: one row (none before the first event) with the same values over all
# partitions, and dt_ms: the age of the newest event when the row was computed. demo.py explains the
# formula.
ad_events_summary = ad_events_progress.agg_by(
    [agg.sum_("total"), agg.max_("max_received_at")]
).update("dt_ms = total == 0 ? NULL_DOUBLE : epochNanos(now()) / 1e6 - max_received_at")

# ---- Campaigns -----------------------------------------------------------------------------------
# `campaign_windows`: how often a campaign's ads were viewed, for each campaign and window with at
# least one view. `window_start_ms` is the window's first millisecond, a multiple of 10,000. Views
# are counted by ad before the join, so that they count for the right campaign even if the ad's row
# arrives late or changes; no events have to be kept for this. An ad that is not in `ads` is not
# counted.
campaign_windows = (
    views_by_ad.natural_join(ads, "ad_id", "campaign_id")
    .where("campaign_id != null")
    .agg_by(agg.sum_("seen_count = seen"), ["campaign_id", "window_start_ms"])
)
