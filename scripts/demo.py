# The shop's views, kept up to date by Deephaven.
#
# Paste it into the IDE piece by piece, or load it whole: exec(open('/scripts/demo.py').read())
#
# What each view holds is said beside it, exactly, so that the SQL twin of this script, and whoever
# checks either against MySQL and Kafka, finds no question open. For all of them:
# - a view is a set of rows, except where an order is stated;
# - ids and counts are 64-bit integers, money is exact decimal, nothing is rounded;
# - times are exact to the millisecond, as they come.
# Where the published scripts for Deephaven and Materialize differed (left joins here, inner joins
# there), what is said here was decided for both; demo.sql lists it.

import os
import time
import urllib.error
import urllib.request

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
from deephaven.update_graph import shared_lock

KAFKA = os.environ.get("KAFKA_BOOTSTRAP", "redpanda:9092")
REGISTRY = os.environ.get("SCHEMA_REGISTRY_URL", "http://redpanda:8081")

kafka_properties = {"bootstrap.servers": KAFKA, "schema.registry.url": REGISTRY}

# Without these, three columns about Kafka come with every table.
value_columns_only = {
    **kafka_properties,
    "deephaven.partition.column.name": "",
    "deephaven.offset.column.name": "",
    "deephaven.timestamp.column.name": "",
}

# For Avro topics that hold decimals and nulls. Deephaven 42.7 decodes what one poll brings as a
# batch, column by column, and stops filling a decimal column at its first null: a deleted purchase
# would leave those after it in the batch without a price. In a batch of one, there are none after.
# These topics carry a few messages a second.
one_by_one = {"max.poll.records": "1"}

# ---- Wait for what others bring ------------------------------------------------------------------
# A consumer of a topic that does not exist dies without a word, and a table whose schema is not
# registered yet can't be consumed: so look first. `pageviews` belongs to the load generator and
# `mysql.*` to Debezium; the two other topics are made here if need be.


def wait_for(what, is_there, within_s=60):
    deadline = time.monotonic() + within_s
    while not is_there():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} is not there after {within_s} s; is its writer running?")
        time.sleep(0.2)


def topics():
    admin = jpy.get_type("org.apache.kafka.clients.admin.Admin").create(java_properties)
    try:
        return set(admin.listTopics().names().get().toArray())
    finally:
        admin.close()


def make_topic(name):
    if name in topics():
        return
    admin = jpy.get_type("org.apache.kafka.clients.admin.Admin").create(java_properties)
    new_topic = jpy.get_type("org.apache.kafka.clients.admin.NewTopic")(name, 1, 1)
    try:
        admin.createTopics(
            jpy.get_type("java.util.Collections").singletonList(new_topic)
        ).all().get()
    finally:
        admin.close()


def subject_exists(subject):
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
java_properties.setProperty("bootstrap.servers", KAFKA)

wait_for("topic pageviews", lambda: "pageviews" in topics())
make_topic("dd_flagged_profiles")
make_topic("high_value_users_sink")

# ---- Pageviews -----------------------------------------------------------------------------------
# `pageviews`: every message of the topic, once, with its partition and offset.
#
# It keeps history (an append table) and is no blink table, which would hold a cycle's rows only:
# profile_views, the ten-minute window and the flagged profiles all look back, and a blink table
# would forget what came before the next line of this script was pasted.
# It arrives as a blink table though, so that a row is made small before it is kept: there are only
# some thousand different urls, and sharing them halves what a row costs. The lock lets no update
# cycle pass between the consumer's start and the table that keeps its rows.
#
# A message that is not JSON, or a time that is not an integer, ends this table and all that
# depend on it, with an error in the server's log. In a measurement, loud is right.
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
            "pageviews",
            offsets=kc.ALL_PARTITIONS_SEEK_TO_BEGINNING,
            key_spec=kc.KeyValueSpec.IGNORE,
            value_spec=kc.object_processor_spec(pageview_json),
            table_type=kc.TableType.blink(),
        ).update(["url = url.intern()", "channel = channel.intern()"])
    )

# `pageviews_stg`: each pageview with what its url says: `/products/7` is type `products`, target 7;
# `/profiles/7` is type `profiles`, target 7; of another url, both are null. Computed once and
# stored (`update`), since six views read it.
pageviews_stg = pageviews.update(
    [
        (
            "pageview_type = url.startsWith(`/products/`) ? `products`"
            " : url.startsWith(`/profiles/`) ? `profiles` : null"
        ),
        "target_id = pageview_type == null ? NULL_LONG : Long.parseLong(url, 10, url.length(), 10)",
    ]
)

# `pageviews_progress`: per partition that has any, how many pageviews were counted, and the newest
# `received_at` among them (epoch ms).
pageviews_progress = pageviews_stg.agg_by(
    [agg.count_("total"), agg.max_("max_received_at = received_at")], "partition"
).update("max_received_at = epochMillis(max_received_at)")

# `pageviews_summary`: one row, none before the first pageview: the same over all partitions, and
# dt_ms: how old the newest pageview was when this row was computed.
# `update` computes dt_ms in the update cycle and stores it. With `update_view` it would be computed
# whenever somebody reads it, and show a reader's delay as the engine's. It names `total`, because
# Deephaven computes a cell anew only when a column that it reads has changed: else a cycle that
# counts late pageviews, and finds no newer one, would keep an old dt_ms.
pageviews_summary = pageviews_progress.agg_by(
    [agg.sum_("total"), agg.max_("max_received_at")]
).update("dt_ms = total == 0 ? NULL_DOUBLE : epochNanos(now()) / 1e6 - max_received_at")

# ---- The shop's database -------------------------------------------------------------------------
# `users`, `items`, `purchases`: MySQL's tables as they are now: a changed row is changed here, a
# deleted one is gone.


def cdc_table(name):
    topic = f"mysql.shop.{name}"
    wait_for(f"the schema of {topic}", lambda: subject_exists(f"{topic}-value"))
    return cdc.consume(
        {**kafka_properties, **one_by_one}, cdc.cdc_short_spec("mysql", "shop", name)
    )


users = cdc_table("users")
items = cdc_table("items")
purchases = cdc_table("purchases")

# ---- Summaries -----------------------------------------------------------------------------------
# `purchases_by_item`: a row per item_id that occurs in purchases. `revenue` adds up purchase_price,
# which is the price of the whole purchase, not of one piece.
purchases_by_item = purchases.agg_by(
    [agg.sum_("revenue = purchase_price"), agg.count_("orders"), agg.sum_("items_sold = quantity")],
    "item_id",
)

# `pageviews_by_item`: a row per product id that was ever viewed, whether there is such an item or
# not.
pageviews_by_item = (
    pageviews_stg.where("pageview_type = `products`")
    .view(["item_id = target_id"])
    .count_by("pageviews", "item_id")
)

# `item_summary`: a row per item in `items`, sold or not, viewed or not (left joins): revenue,
# orders, items_sold and pageviews are 0 where there are none; conversion_rate = orders / pageviews
# as a double, null where pageviews is 0.
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

# `top_viewed_items`, `top_converting_items`: the first 20 of item_summary by pageviews, and by
# conversion_rate (nulls last), descending; of equals, the lower item_id comes first. In this order.
top_viewed_items = item_summary.sort(
    ["pageviews", "item_id"], [SortDirection.DESCENDING, SortDirection.ASCENDING]
).head(20)

top_converting_items = item_summary.sort(
    ["conversion_rate", "item_id"], [SortDirection.DESCENDING, SortDirection.ASCENDING]
).head(20)

# ---- Who viewed my profile -----------------------------------------------------------------------
profile_pageviews = pageviews_stg.where("pageview_type = `profiles`")

# `profile_views_per_minute_last_10`: of the profile views that are in the window, how many per
# owner (`user_id`) and minute. In it is what is less than 600,000 ms old by the clock at the start
# of the update cycle (exactly as old is out; a time in the future is in). The minute is received_at
# rounded down to a whole minute of UTC; the oldest and the newest are partly filled, as the window
# moves on with the clock and not by the minute. Sorted by both.
profile_views_per_minute_last_10 = (
    time_window(profile_pageviews, "received_at", 600_000_000_000, "in_last_10min")
    .where("in_last_10min = true")
    .view(["user_id = target_id", "received_at_minute = lowerBin(received_at, 'PT1m')"])
    .count_by("pageviews", ["user_id", "received_at_minute"])
    .sort(["user_id", "received_at_minute"])
)

# `profile_views`: per owner the last ten views of his profile, or all if there are fewer: the
# greatest by (received_at, partition, offset), so that equal times leave no choice.
profile_views = (
    profile_pageviews.view(
        ["owner_id = target_id", "viewer_id = user_id", "received_at", "partition", "offset"]
    )
    .sort(["received_at", "partition", "offset"])
    .tail_by(10, "owner_id")
)

# `profile_views_enriched`: each row of profile_views with the emails of both; null where `users`
# has no such user (left joins).
profile_views_enriched = profile_views.natural_join(
    users, "owner_id = id", "owner_email = email"
).natural_join(users, "viewer_id = id", "viewer_email = email")

# ---- Flagged profiles, on demand -----------------------------------------------------------------
# `dd_flagged_profiles`: the user ids that were sent to the topic `dd_flagged_profiles`, each once,
# however often it was sent. A message is the id in decimal, with or without double quotes. People
# send these by hand, so what is no such number is ignored: failing here would end the server.
dd_flagged_profiles = (
    kc.consume(
        value_columns_only,
        "dd_flagged_profiles",
        offsets=kc.ALL_PARTITIONS_SEEK_TO_BEGINNING,
        key_spec=kc.KeyValueSpec.IGNORE,
        value_spec=kc.simple_spec("user_id_text", dht.string),
        table_type=kc.TableType.append(),
    )
    .where(["user_id_text != null", 'user_id_text.matches(`"?[0-9]{1,18}"?`)'])
    .view('user_id = Long.parseLong(user_id_text.replace(`"`, ``))')
    .select_distinct("user_id")
)

# `dd_flagged_profile_view`: all pageviews, old and new, BY the flagged users, as in pageviews_stg.
# `where_in` looks through the history once per new flag; a join would keep an index of every
# pageview by user, for the sake of a few.
dd_flagged_profile_view = pageviews_stg.where_in(dd_flagged_profiles, "user_id")

# ---- High-value users, sent back to Kafka --------------------------------------------------------
# `high_value_users`: per user_id in purchases, lifetime_value = the sum of purchase_price *
# quantity (as the published demo has it) and the number of purchases; those strictly above 10,000,
# with their email, null where `users` has no such user (left join).
high_value_users = (
    purchases.view(["id = user_id", "lifetime_value = purchase_price * quantity"])
    .agg_by([agg.sum_("lifetime_value"), agg.count_("purchases")], "id")
    .where("lifetime_value > 10000")
    .natural_join(users, "id", "email")
    .view(["id", "email", "lifetime_value", "purchases"])
)

# To the topic `high_value_users_sink`, keyed by id: a message per change, and one without a value
# when a user is no longer among them. Publishing ends if stop_high_value_users_sink is dropped.
stop_high_value_users_sink = kp.produce(
    high_value_users,
    {**kafka_properties, "max.request.size": "9437184"},  # a row as large as the broker takes
    "high_value_users_sink",
    key_spec=kp.avro_spec(
        "high_value_users_sink_key", publish_schema=True, include_only_columns=["id"]
    ),
    value_spec=kp.avro_spec(
        "high_value_users_sink_value",
        publish_schema=True,
        exclude_columns=["id"],
        column_properties={"lifetime_value.precision": "38", "lifetime_value.scale": "2"},
    ),
    last_by_key_columns=True,
)

# `hvu_test`: that topic read back: the last message of each id, where it has a value. Once Kafka
# has delivered it all, the same rows as high_value_users.
hvu_test = (
    kc.consume(
        {**value_columns_only, **one_by_one},
        "high_value_users_sink",
        offsets=kc.ALL_PARTITIONS_SEEK_TO_BEGINNING,
        key_spec=kc.avro_spec("high_value_users_sink_key"),
        value_spec=kc.avro_spec("high_value_users_sink_value"),
        table_type=kc.TableType.blink(),
    )
    .last_by("id")
    .where("purchases != null")
)

# ---- For sample_dt.py ----------------------------------------------------------------------------
# The views that say what was counted, and those that no other reads: once they are through with an
# update cycle, all are.
sampled = {
    "summary": pageviews_summary,
    "progress": pageviews_progress,
    "last_views": [
        item_summary,
        top_viewed_items,
        top_converting_items,
        profile_views_per_minute_last_10,
        profile_views_enriched,
        dd_flagged_profile_view,
        high_value_users,
        hvu_test,
    ],
}
