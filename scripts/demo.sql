-- The shop's views, kept up to date by Materialize, with the same rows as in demo.py.
--
-- In psql: \i /scripts/demo.sql
-- Addresses are psql variables; set them before to use others than the stack's: \set kafka 'host:9092'
-- Objects are created in the current schema. To start over:
--   DROP CONNECTION kafka CASCADE; DROP CONNECTION registry CASCADE;
--
-- demo.py defines the content of each view exactly. Where the two scripts of 2022 differed or were
-- ambiguous, both now do the same:
-- - joins with `items` and `users` are left joins (in this script they were inner joins): an item that
--   nobody bought or viewed has a row, and so have pageviews and purchases by users not in `users`;
-- - item_summary has one row per item (in this script it had one row per name and category);
-- - lifetime_value is exact (this script truncated it to a whole number);
-- - a profile that was flagged twice appears once;
-- - equal rows have an order: the lower item_id comes first, or the later (received_at, partition,
--   offset).
-- A view here is a set of rows: use ORDER BY to read it in an order. A value that depends on the time
-- of reading can't be a column of a view, so the query that reads pageviews_summary computes dt_ms.
--
-- How views are stored:
-- - a view that people or Kafka read is a MATERIALIZED VIEW: it is kept up to date in storage even if
--   nobody reads it, as in 2022;
-- - a view that other views read has an INDEX on the column of the join: it is computed once, in
--   memory, and shared by all its readers. Without the index each reader would compute it again.

\set ON_ERROR_STOP on
\if :{?kafka} \else \set kafka 'redpanda:9092' \endif
\if :{?registry} \else \set registry 'http://redpanda:8081' \endif
-- The name of 2022. demo.py uses another topic, so that both scripts can run at the same time.
\if :{?sink_topic} \else \set sink_topic 'high-value-users-sink' \endif

CREATE CONNECTION kafka TO KAFKA (BROKER :'kafka', SECURITY PROTOCOL = 'PLAINTEXT');

-- The URL must not have a path: the registry has to answer at the root.
CREATE CONNECTION registry TO CONFLUENT SCHEMA REGISTRY (URL :'registry');

-- ---- Pageviews ----------------------------------------------------------------------------------
-- For a source x, Materialize also creates an object x_progress. So no source can be named
-- `pageviews`: its pageviews_progress would conflict with the view. And `offset` is a reserved word: as
-- a quoted alias here, it would create a column whose name contains the quotes.
CREATE SOURCE pageviews_json
FROM KAFKA CONNECTION kafka (TOPIC 'pageviews')
FORMAT JSON
INCLUDE PARTITION AS partition, OFFSET AS message_offset;

-- A message that is not JSON, or a time that is not an integer, causes an error in this view and in
-- all views that depend on it: a measurement must not hide errors.
CREATE VIEW pageviews AS
SELECT
    partition::bigint AS partition,
    message_offset::bigint AS "offset",
    (data ->> 'user_id')::bigint AS user_id,
    data ->> 'url' AS url,
    data ->> 'channel' AS channel,
    to_timestamp((data ->> 'received_at')::bigint::double precision / 1000) AS received_at
FROM pageviews_json;

CREATE VIEW pageviews_stg AS
SELECT
    *,
    CASE
        WHEN url LIKE '/products/%' THEN 'products'
        WHEN url LIKE '/profiles/%' THEN 'profiles'
    END AS pageview_type,
    CASE
        WHEN url LIKE '/products/%' OR url LIKE '/profiles/%' THEN substring(url, 11)::bigint
    END AS target_id
FROM pageviews;

-- Indexed by user, because dd_flagged_profile_view needs all pageviews by user in any case. So the index
-- takes no additional memory, and the JSON is parsed once instead of once per reading view.
CREATE INDEX pageviews_stg_by_user ON pageviews_stg (user_id);

-- A MATERIALIZED VIEW although pageviews_summary reads it, so that measured values take the same path
-- as all results.
CREATE MATERIALIZED VIEW pageviews_progress AS
SELECT
    partition,
    count(*) AS total,
    (1000 * extract(epoch FROM max(received_at)))::bigint AS max_received_at
FROM pageviews_stg
GROUP BY partition;

-- Computed from the few rows of pageviews_progress, instead of counting all pageviews again.
CREATE MATERIALIZED VIEW pageviews_summary AS
SELECT total, max_received_at
FROM (
    SELECT sum(total)::bigint AS total, max(max_received_at) AS max_received_at
    FROM pageviews_progress
) AS all_partitions
WHERE total > 0;

-- ---- The shop's database ------------------------------------------------------------------------
CREATE SOURCE users
FROM KAFKA CONNECTION kafka (TOPIC 'mysql.shop.users')
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry
ENVELOPE DEBEZIUM;

CREATE SOURCE items
FROM KAFKA CONNECTION kafka (TOPIC 'mysql.shop.items')
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry
ENVELOPE DEBEZIUM;

CREATE SOURCE purchases
FROM KAFKA CONNECTION kafka (TOPIC 'mysql.shop.purchases')
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry
ENVELOPE DEBEZIUM;

-- Three joins look up users by their id.
CREATE INDEX users_by_id ON users (id);

-- ---- Summaries ----------------------------------------------------------------------------------
CREATE VIEW purchases_by_item AS
SELECT
    item_id,
    sum(purchase_price) AS revenue,
    count(*) AS orders,
    sum(quantity)::bigint AS items_sold
FROM purchases
GROUP BY item_id;

CREATE INDEX purchases_by_item_by_item ON purchases_by_item (item_id);

CREATE VIEW pageviews_by_item AS
SELECT target_id AS item_id, count(*) AS pageviews
FROM pageviews_stg
WHERE pageview_type = 'products'
GROUP BY target_id;

CREATE INDEX pageviews_by_item_by_item ON pageviews_by_item (item_id);

CREATE VIEW item_summary AS
SELECT
    items.id AS item_id,
    items.name,
    items.category,
    coalesce(sold.revenue, 0) AS revenue,
    coalesce(sold.orders, 0) AS orders,
    coalesce(sold.items_sold, 0) AS items_sold,
    coalesce(viewed.pageviews, 0) AS pageviews,
    coalesce(sold.orders, 0)::double precision / nullif(viewed.pageviews, 0)::double precision
        AS conversion_rate
FROM items
LEFT JOIN purchases_by_item AS sold ON sold.item_id = items.id
LEFT JOIN pageviews_by_item AS viewed ON viewed.item_id = items.id;

CREATE INDEX item_summary_by_item ON item_summary (item_id);

CREATE MATERIALIZED VIEW top_viewed_items AS
SELECT * FROM item_summary ORDER BY pageviews DESC, item_id LIMIT 20;

CREATE MATERIALIZED VIEW top_converting_items AS
SELECT * FROM item_summary ORDER BY conversion_rate DESC NULLS LAST, item_id LIMIT 20;

-- ---- Who viewed my profile ----------------------------------------------------------------------
-- mz_now() can be used only in a comparison: a pageview leaves the view when the comparison is false.
CREATE MATERIALIZED VIEW profile_views_per_minute_last_10 AS
SELECT
    target_id AS user_id,
    date_trunc('minute', received_at) AS received_at_minute,
    count(*) AS pageviews
FROM pageviews_stg
WHERE pageview_type = 'profiles' AND mz_now() < received_at + INTERVAL '10 minutes'
GROUP BY target_id, date_trunc('minute', received_at);

CREATE VIEW profile_views AS
SELECT owners.owner_id, viewed.viewer_id, viewed.received_at, viewed.partition, viewed."offset"
FROM
    (
        SELECT DISTINCT target_id AS owner_id
        FROM pageviews_stg
        WHERE pageview_type = 'profiles'
    ) AS owners,
    LATERAL (
        SELECT user_id AS viewer_id, received_at, partition, "offset"
        FROM pageviews_stg
        WHERE pageview_type = 'profiles' AND target_id = owners.owner_id
        ORDER BY received_at DESC, partition DESC, "offset" DESC
        LIMIT 10
    ) AS viewed;

CREATE INDEX profile_views_by_owner ON profile_views (owner_id);

CREATE MATERIALIZED VIEW profile_views_enriched AS
SELECT viewed.*, owners.email AS owner_email, viewers.email AS viewer_email
FROM profile_views AS viewed
LEFT JOIN users AS owners ON owners.id = viewed.owner_id
LEFT JOIN users AS viewers ON viewers.id = viewed.viewer_id;

-- ---- Flagged profiles, on demand ----------------------------------------------------------------
-- Read as bytes: text has to be UTF-8, and a single invalid message would cause a permanent error.
CREATE SOURCE dd_flagged_profiles_bytes
FROM KAFKA CONNECTION kafka (TOPIC 'dd_flagged_profiles')
FORMAT BYTES;

-- CASE prevents casting a message that is not a number. WHERE might be evaluated after the cast.
CREATE VIEW dd_flagged_profiles AS
SELECT DISTINCT user_id
FROM (
    SELECT
        CASE
            WHEN message ~ '^"?[0-9]{1,18}"?$' THEN replace(message, '"', '')::bigint
        END AS user_id
    FROM (SELECT encode(data, 'escape') AS message FROM dd_flagged_profiles_bytes) AS messages
) AS ids
WHERE user_id IS NOT NULL;

CREATE INDEX dd_flagged_profiles_by_user ON dd_flagged_profiles (user_id);

CREATE MATERIALIZED VIEW dd_flagged_profile_view AS
SELECT pageviews_stg.*
FROM pageviews_stg
JOIN dd_flagged_profiles ON dd_flagged_profiles.user_id = pageviews_stg.user_id;

-- ---- High-value users, sent back to Kafka -------------------------------------------------------
-- The explicit precision is required for reading the sink's schema back. A price times a quantity has
-- no more than two decimals.
CREATE MATERIALIZED VIEW high_value_users AS
SELECT
    bought.id,
    users.email,
    bought.lifetime_value::numeric(20, 2) AS lifetime_value,
    bought.purchases
FROM (
    SELECT
        user_id AS id,
        sum(purchase_price * quantity) AS lifetime_value,
        count(*) AS purchases
    FROM purchases
    GROUP BY user_id
    HAVING sum(purchase_price * quantity) > 10000
) AS bought
LEFT JOIN users ON users.id = bought.id;

-- The topic must exist. The load generator creates the one named above; create any other yourself. The
-- sink does not change the configuration of an existing topic.
CREATE SINK high_value_users_sink
FROM high_value_users
INTO KAFKA CONNECTION kafka (TOPIC :'sink_topic')
KEY (id) NOT ENFORCED
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry
ENVELOPE UPSERT;

-- The sink registers its schemas some time after the statement has returned, and its status does not
-- show when: it is `running` before that. So the schemas are written here, exactly as the sink will
-- register them, instead of waiting for the registry.
-- Key and value both have a field `id`, so the key gets another name.
CREATE SOURCE hvu_test_upserts
FROM KAFKA CONNECTION kafka (TOPIC :'sink_topic')
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry
SEED KEY SCHEMA '{"type": "record", "name": "row", "fields": [
    {"name": "id", "type": ["null", "long"]}
]}'
VALUE SCHEMA '{"type": "record", "name": "envelope", "fields": [
    {"name": "id", "type": ["null", "long"]},
    {"name": "email", "type": ["null", "string"]},
    {"name": "lifetime_value",
     "type": {"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 2}},
    {"name": "purchases", "type": "long"}
]}'
INCLUDE KEY AS message_key
ENVELOPE UPSERT;

CREATE MATERIALIZED VIEW hvu_test AS
SELECT id, email, lifetime_value, purchases FROM hvu_test_upserts;
