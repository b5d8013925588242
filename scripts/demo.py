# The shop's views, kept up to date by Deephaven.
#
# Paste it into the IDE piece by piece, or load it whole: exec(open('/scripts/demo.py').read())
#
# The comment above each view defines its content exactly, also for the versions of this script for
# other engines, and for the verification of views against MySQL and Kafka. For all views: - a view
# is a set of rows, unless an order is stated; - ids and counts are 64-bit integers, money is an
# exact decimal, and nothing is rounded; - times have the exact millisecond of the message. The
# scripts of 2022 for Deephaven and Materialize differed (left joins here, inner joins there). The
# definitions here apply to both; demo.sql lists the differences.

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable

import jpy
from deephaven import SortDirection, agg
from deephaven import dtypes as dht
from deephaven.execution_context import get_exec_ctx
from deephaven.experimental import time_window
from deephaven.json import instant_val, jackson, long_val, object_val, string_val
from deephaven.stream import blink_to_append_only
from deephaven.stream.kafka import cdc
from deephaven.stream.kafka import consumer as kc
from deephaven.stream.kafka import producer as kp
from deephaven.table import Table
from deephaven.update_graph import shared_lock

# A server that others use too gets its own values of these variables (docs/own-parts.md).
ENVIRONMENT = globals().get("ENVIRONMENT", os.environ)
KAFKA = ENVIRONMENT.get("KAFKA_BOOTSTRAP", "redpanda:9092")
REGISTRY = ENVIRONMENT.get("SCHEMA_REGISTRY_URL", "http://redpanda:8081")

# For a Kafka that others use too: further properties of clients, and the prefix of all topics.
CLIENT = json.loads(ENVIRONMENT.get("KAFKA_JAVA_CONFIG", "{}"))
PREFIX = ENVIRONMENT.get("KAFKA_TOPIC_PREFIX", "")
REPLICAS = int(ENVIRONMENT.get("KAFKA_REPLICATION_FACTOR", "1"))

kafka_properties = {**CLIENT, "bootstrap.servers": KAFKA, "schema.registry.url": REGISTRY}

# Without these options, every table has additional columns for Kafka's partition, offset and time.
value_columns_only = {
    **kafka_properties,
    "deephaven.partition.column.name": "",
    "deephaven.offset.column.name": "",
    "deephaven.timestamp.column.name": "",
}

# For Avro topics with decimals and nulls. Deephaven 42.7 decodes the messages of one poll as a
# batch, column by column, and stops filling a decimal column at its first null. So purchases after
# a deleted one in the same batch would have no price. Batches of one message avoid that. These
# topics have only a few messages per second.
one_by_one = {"max.poll.records": "1"}

# ---- Wait for topics and schemas -----------------------------------------------------------------
# A consumer of a missing topic dies without a message, and a table can't be consumed before its
# schema is registered. So check both first. The load generator creates `pageviews`, and Debezium
# `mysql.*`. This script creates the two other topics if they are missing.


def wait_for(what: str, is_there: Callable[[], bool], within_s: float = 60) -> None:
    deadline = time.monotonic() + within_s
    while not is_there():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} is not there after {within_s} s; is its writer running?")
        time.sleep(0.2)


def topics() -> set[str]:
    admin = jpy.get_type("org.apache.kafka.clients.admin.Admin").create(java_properties)
    try:
        return set(admin.listTopics().names().get().toArray())
    finally:
        admin.close()


def make_topic(name: str) -> None:
    if name in topics():
        return
    admin = jpy.get_type("org.apache.kafka.clients.admin.Admin").create(java_properties)
    new_topic = jpy.get_type("org.apache.kafka.clients.admin.NewTopic")(name, 1, REPLICAS)
    try:
        admin.createTopics(
            jpy.get_type("java.util.Collections").singletonList(new_topic)
        ).all().get()
    finally:
        admin.close()


def subject_exists(subject: str) -> bool:
    url = f"{REGISTRY}/subjects/{subject}/versions/latest"
    try:
        with urllib.request.urlopen(url, timeout=10):  # noqa: S310
            return True
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return False
        raise
    except urllib.error.URLError as error:
        raise ConnectionError(f"the schema registry does not answer at {url}: {error}") from error


java_properties = jpy.get_type("java.util.Properties")()
for name, value in {**CLIENT, "bootstrap.servers": KAFKA}.items():
    java_properties.setProperty(name, value)

wait_for("topic pageviews", lambda: PREFIX + "pageviews" in topics())
make_topic(PREFIX + "dd_flagged_profiles")
make_topic(PREFIX + "high_value_users_sink")

# ---- Pageviews -----------------------------------------------------------------------------------
# `pageviews`: every message of the topic, once, with its partition and offset.
#
# It is an append table, which keeps all rows. A blink table would contain the rows of one update
# cycle only, but profile_views, the ten-minute window and the flagged profiles need earlier rows,
# and rows that arrive before the next line of this script is pasted would be lost. The consumer
# itself creates a blink table, so that rows are made smaller before they are kept: there are only
# some thousand different URLs, and sharing their strings halves the memory of a row. The lock
# prevents an update cycle between the start of the consumer and the creation of the append table.
#
# A message that is not JSON, or a time that is not an integer, ends this table and all tables that
# depend on it, with an error in the server's log: a measurement must not hide errors.
pageview_json = jackson.provider(
    object_val(
        {
            "user_id": long_val(allow_missing=False, allow_null=False),
            "url": string_val(allow_missing=False, allow_null=False),
            "channel": string_val(allow_missing=False, allow_null=False),
            "received_at": instant_val(False, False, number_format="ms"),
        }
    )
)

with shared_lock(get_exec_ctx().update_graph):
    pageviews = blink_to_append_only(
        kc.consume(
            {
                **value_columns_only,
                "deephaven.partition.column.name": "partition",
                "deephaven.offset.column.name": "offset",
            },
            PREFIX + "pageviews",
            offsets=kc.ALL_PARTITIONS_SEEK_TO_BEGINNING,
            key_spec=kc.KeyValueSpec.IGNORE,
            value_spec=kc.object_processor_spec(pageview_json),
            table_type=kc.TableType.blink(),
        ).update(["url = url.intern()", "channel = channel.intern()"])
    )

# `pageviews_stg`: each pageview with the type and the target of its URL. `/products/7` has type
# `products` and target 7; `/profiles/7` has type `profiles` and target 7; for other URLs both are
# null. `update` computes and stores them once, because six views read them.
pageviews_stg = pageviews.update(
    [
        (
            "pageview_type = url.startsWith(`/products/`) ? `products`"
            " : url.startsWith(`/profiles/`) ? `profiles` : null"
        ),
        "target_id = pageview_type == null ? NULL_LONG : Long.parseLong(url, 10, url.length(), 10)",
    ]
)

# `pageviews_progress`: a row per partition with pageviews: the number of pageviews counted, and
# their newest `received_at` (epoch milliseconds).
pageviews_progress = pageviews_stg.agg_by(
    [agg.count_("total"), agg.max_("max_received_at = received_at")], "partition"
).update("max_received_at = epochMillis(max_received_at)")

# `pageviews_summary`: one row (none before the first pageview) with the same values over all
# partitions, and dt_ms: the age of the newest pageview when the row was computed. `update` computes
# dt_ms in the update cycle and stores it. `update_view` would compute it at each read, so that it
# would include the reader's delay. The formula contains `total`, because Deephaven recomputes a
# cell only if a column in its formula has changed. Otherwise dt_ms would not change in a cycle that
# counts late pageviews only.
pageviews_summary = pageviews_progress.agg_by(
    [agg.sum_("total"), agg.max_("max_received_at")]
).update("dt_ms = total == 0 ? NULL_DOUBLE : epochNanos(now()) / 1e6 - max_received_at")

# ---- The shop's database -------------------------------------------------------------------------
# `users`, `items`, `purchases`: the current content of MySQL's tables, with updates and without
# deleted rows.


def cdc_table(name: str) -> Table:
    topic = f"{PREFIX}mysql.shop.{name}"
    wait_for(f"the schema of {topic}", lambda: subject_exists(f"{topic}-value"))
    return cdc.consume(
        {**kafka_properties, **one_by_one}, cdc.cdc_short_spec(PREFIX + "mysql", "shop", name)
    )


users = cdc_table("users")
items = cdc_table("items")
purchases = cdc_table("purchases")

# ---- Summaries -----------------------------------------------------------------------------------
# `purchases_by_item`: a row per item_id in purchases. `revenue` is the sum of purchase_price, which
# is the price of the whole purchase, not of a single piece.
purchases_by_item = purchases.agg_by(
    [agg.sum_("revenue = purchase_price"), agg.count_("orders"), agg.sum_("items_sold = quantity")],
    "item_id",
)

# `pageviews_by_item`: a row per product id that was viewed, even if `items` has no such item.
pageviews_by_item = (
    pageviews_stg.where("pageview_type = `products`")
    .view(["item_id = target_id"])
    .count_by("pageviews", "item_id")
)

# `item_summary`: a row per item in `items`, even if it was never sold or viewed (left joins);
# revenue, orders, items_sold and pageviews are 0 then. conversion_rate is orders / pageviews as a
# double, and null if pageviews is 0.
item_summary = (
    items.view(["item_id = id", "name", "category"])
    .natural_join(purchases_by_item, "item_id")
    .natural_join(pageviews_by_item, "item_id")
    .update_view(
        [
            "revenue = revenue == null ? java.math.BigDecimal.ZERO : revenue",
            "orders = replaceIfNull(orders, 0L)",
            "items_sold = replaceIfNull(items_sold, 0L)",
            "pageviews = replaceIfNull(pageviews, 0L)",
            "conversion_rate = pageviews == 0 ? NULL_DOUBLE : orders / (double) pageviews",
        ]
    )
)

# `top_viewed_items`, `top_converting_items`: the 20 rows of item_summary with the most pageviews,
# and with the highest conversion_rate (nulls last), in this order. Of two equal rows, the one with
# the lower item_id comes first.
top_viewed_items = item_summary.sort(
    ["pageviews", "item_id"], [SortDirection.DESCENDING, SortDirection.ASCENDING]
).head(20)

top_converting_items = item_summary.sort(
    ["conversion_rate", "item_id"], [SortDirection.DESCENDING, SortDirection.ASCENDING]
).head(20)

# ---- Who viewed my profile -----------------------------------------------------------------------
profile_pageviews = pageviews_stg.where("pageview_type = `profiles`")

# `profile_views_per_minute_last_10`: the number of profile views in the window per owner
# (`user_id`) and minute, sorted by both. The window contains views that are less than 600,000 ms
# old by the clock at the start of the update cycle. (A view that is exactly that old is out; a time
# in the future is in.) The minute is received_at rounded down to a whole minute in UTC. The oldest
# and the newest minute are incomplete, because the window moves with the clock, not by whole
# minutes.
profile_views_per_minute_last_10 = (
    time_window(profile_pageviews, "received_at", 600_000_000_000, "in_last_10min")
    .where("in_last_10min = true")
    .view(["user_id = target_id", "received_at_minute = lowerBin(received_at, 'PT1m')"])
    .count_by("pageviews", ["user_id", "received_at_minute"])
    .sort(["user_id", "received_at_minute"])
)

# `profile_views`: the last ten views of each owner's profile, or all if there are fewer. Last means
# the greatest (received_at, partition, offset), which is unique even if times are equal.
# `tail_by(10, "owner_id")` gives the same rows, but its columns stay formulas: each reading of a
# cell cuts the ten out of all views of the owner again, and the join below reads all ten at each
# change: four fifths of the time of updates at 13,000 to 40,000 events/s. `update` stores arrays.
stored_as = {"viewer_id": "long", "received_at": "Instant", "partition": "int", "offset": "long"}
profile_views = (
    profile_pageviews.view(
        ["owner_id = target_id", "viewer_id = user_id", "received_at", "partition", "offset"]
    )
    .sort(["received_at", "partition", "offset"])
    .group_by("owner_id")
    .update(
        [
            f"{name} = ({kind}[]) {name}"
            f".subVector(max(0, {name}.intSize() - 10), {name}.intSize()).toArray()"
            for name, kind in stored_as.items()
        ]
    )
    .ungroup()
)

# `profile_views_enriched`: each row of profile_views with the emails of owner and viewer. The email
# is null if `users` has no such user (left joins).
profile_views_enriched = profile_views.natural_join(
    users, "owner_id = id", "owner_email = email"
).natural_join(users, "viewer_id = id", "viewer_email = email")

# ---- Flagged profiles, on demand -----------------------------------------------------------------
# `dd_flagged_profiles`: the distinct user ids in the topic `dd_flagged_profiles`. A message is an
# id in decimal, with or without double quotes. People type these messages, so all others are
# ignored: an error here would end the server.
dd_flagged_profiles = (
    kc.consume(
        value_columns_only,
        PREFIX + "dd_flagged_profiles",
        offsets=kc.ALL_PARTITIONS_SEEK_TO_BEGINNING,
        key_spec=kc.KeyValueSpec.IGNORE,
        value_spec=kc.simple_spec("user_id_text", dht.string),
        table_type=kc.TableType.append(),
    )
    .where(["user_id_text != null", 'user_id_text.matches(`"?[0-9]{1,18}"?`)'])
    .view('user_id = Long.parseLong(user_id_text.replace(`"`, ``))')
    .select_distinct("user_id")
)

# `dd_flagged_profile_view`: all rows of pageviews_stg, old and new, BY flagged users. `where_in`
# scans the history once per update cycle that flags users. A join would keep an index of all
# pageviews by user, but only few users are flagged.
dd_flagged_profile_view = pageviews_stg.where_in(dd_flagged_profiles, "user_id")

# ---- High-value users, sent back to Kafka --------------------------------------------------------
# `high_value_users`: a row per user_id in purchases with the number of purchases and
# lifetime_value, the sum of purchase_price * quantity (as in the demo of 2022). Only users whose
# lifetime_value is greater than 10,000. The email is null if `users` has no such user (left join).
high_value_users = (
    purchases.view(["id = user_id", "lifetime_value = purchase_price * quantity"])
    .agg_by([agg.sum_("lifetime_value"), agg.count_("purchases")], "id")
    .where("lifetime_value > 10000")
    .natural_join(users, "id", "email")
    .view(["id", "email", "lifetime_value", "purchases"])
)

# Publish high_value_users to the topic `high_value_users_sink`, keyed by id: a message per changed
# row, and a message without a value for a removed row. Publishing ends if the variable
# stop_high_value_users_sink is deleted.
stop_high_value_users_sink = kp.produce(
    high_value_users,
    {**kafka_properties, "max.request.size": "9437184"},  # the broker's limit
    PREFIX + "high_value_users_sink",
    key_spec=kp.avro_spec(
        PREFIX + "high_value_users_sink_key", publish_schema=True, include_only_columns=["id"]
    ),
    value_spec=kp.avro_spec(
        PREFIX + "high_value_users_sink_value",
        publish_schema=True,
        exclude_columns=["id"],
        column_properties={"lifetime_value.precision": "38", "lifetime_value.scale": "2"},
    ),
    last_by_key_columns=True,
)

# `hvu_test`: the content of that topic, read back: the last message of each id, if it has a value.
# When all messages have arrived, the rows are the same as in high_value_users.
hvu_test = (
    kc.consume(
        {**value_columns_only, **one_by_one},
        PREFIX + "high_value_users_sink",
        offsets=kc.ALL_PARTITIONS_SEEK_TO_BEGINNING,
        key_spec=kc.avro_spec(PREFIX + "high_value_users_sink_key"),
        value_spec=kc.avro_spec(PREFIX + "high_value_users_sink_value"),
        table_type=kc.TableType.blink(),
    )
    .last_by("id")
    .where("purchases != null")
)
