-- The shop's views in PostgreSQL, as plain views over tables, with the same rows as in demo.py.
--
-- In psql: \i /scripts/demo.pg.sql
-- To start over: DROP SCHEMA public CASCADE; CREATE SCHEMA public;
--
-- demo.py defines the content of each view exactly. PostgreSQL can't read Kafka, so a small consumer
-- (racetrack/engines/pg/feed/consumer.py) inserts the messages of the topics into the tables, in
-- batches. It starts when these tables exist. It stores its positions in feed_positions, in the same
-- transaction as the messages: after a crash nothing is lost, and nothing is counted twice.
--
-- A view is computed only when it is read, and then completely. The tables are the state. The indexes
-- allow queries for a few rows to read only these rows.

\set ON_ERROR_STOP on
\if :{?triggers} \else \set triggers off \endif
\if :{?unlogged} \else \set unlogged off \endif
BEGIN;

-- ---- Pageviews ----------------------------------------------------------------------------------
-- A message that is not JSON with these fields ends the consumer: a measurement must not hide errors.
-- Type and target of a URL are computed once, at the insertion, because most views read them.
CREATE TABLE pageviews (
    partition integer NOT NULL,
    "offset" bigint NOT NULL,
    user_id bigint NOT NULL,
    url text NOT NULL,
    channel text NOT NULL,
    received_at timestamptz NOT NULL,
    pageview_type text GENERATED ALWAYS AS (
        CASE
            WHEN starts_with(url, '/products/') THEN 'products'
            WHEN starts_with(url, '/profiles/') THEN 'profiles'
        END
    ) STORED,
    target_id bigint GENERATED ALWAYS AS (
        CASE
            WHEN starts_with(url, '/products/') OR starts_with(url, '/profiles/')
                THEN substring(url, 11)::bigint
        END
    ) STORED
);

-- The first index is for flagged users, the second for the last ten views of each owner. The pageviews
-- of the last minutes are stored close together, so a block range index (brin) finds them.
CREATE INDEX pageviews_by_user ON pageviews (user_id);

CREATE INDEX profile_pageviews ON pageviews (target_id, received_at, partition, "offset")
WHERE pageview_type = 'profiles';

CREATE INDEX pageviews_by_time ON pageviews USING brin (received_at);

CREATE VIEW pageviews_stg AS SELECT * FROM pageviews;

-- This is a table because the consumer counts each batch in the transaction that inserts it, which is
-- when all views contain it. Counting all pageviews at each read would take longer and longer.
CREATE TABLE pageviews_progress (
    partition integer PRIMARY KEY,
    total bigint NOT NULL,
    max_received_at bigint NOT NULL
);

-- dt_ms is computed at the time of reading, so it includes a delay of the reader.
CREATE VIEW pageviews_summary AS
SELECT
    sum(total)::bigint AS total,
    max(max_received_at) AS max_received_at,
    1000 * extract(epoch FROM clock_timestamp())::double precision - max(max_received_at) AS dt_ms
FROM pageviews_progress
HAVING count(*) > 0;

-- ---- The shop's database ------------------------------------------------------------------------
-- Columns have the types of Debezium's messages, in which a DATETIME is in epoch milliseconds. Decimals
-- have no precision here, because that in MySQL may be changed during a run.
CREATE TABLE users (
    id bigint PRIMARY KEY,
    email text,
    is_vip integer,
    created_at timestamptz,
    updated_at bigint
);

CREATE TABLE items (
    id bigint PRIMARY KEY,
    name text,
    category text,
    price numeric,
    inventory integer,
    inventory_updated_at timestamptz,
    created_at timestamptz,
    updated_at bigint
);

CREATE TABLE purchases (
    id bigint PRIMARY KEY,
    user_id bigint,
    item_id bigint,
    status integer,
    quantity bigint,
    purchase_price numeric,
    deleted integer,
    created_at timestamptz,
    updated_at bigint
);

-- ---- Summaries ----------------------------------------------------------------------------------
-- The indexes of item ids are for queries of single items. In item_summary, PostgreSQL uses them for
-- `item_id = 1`, but not for `item_id IN (1, 2)`.
CREATE INDEX purchases_by_item_id ON purchases (item_id);

CREATE VIEW purchases_by_item AS
SELECT
    item_id,
    sum(purchase_price) AS revenue,
    count(*) AS orders,
    sum(quantity)::bigint AS items_sold
FROM purchases
GROUP BY item_id;

-- With `\set triggers on`, this is a table that a trigger updates. Then a query of item_summary or the
-- top lists reads some thousand counts instead of all pageviews, but every batch takes longer.
\if :triggers
CREATE TABLE pageviews_by_item (
    item_id bigint PRIMARY KEY,
    pageviews bigint NOT NULL
) WITH (fillfactor = 50);

CREATE FUNCTION count_pageviews_by_item() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO pageviews_by_item AS counted
    SELECT target_id, count(*)
    FROM brought
    WHERE pageview_type = 'products'
    GROUP BY target_id
    ON CONFLICT (item_id) DO UPDATE SET pageviews = counted.pageviews + excluded.pageviews;
    RETURN NULL;
END
$$;

CREATE TRIGGER count_pageviews_by_item
AFTER INSERT ON pageviews REFERENCING NEW TABLE AS brought
FOR EACH STATEMENT EXECUTE FUNCTION count_pageviews_by_item();

\else
CREATE INDEX product_pageviews ON pageviews (target_id)
WHERE pageview_type = 'products';

CREATE VIEW pageviews_by_item AS
SELECT target_id AS item_id, count(*) AS pageviews
FROM pageviews
WHERE pageview_type = 'products'
GROUP BY target_id;

\endif

CREATE VIEW item_summary AS
SELECT
    items.id AS item_id,
    items.name,
    items.category,
    coalesce(sold.revenue, 0) AS revenue,
    coalesce(sold.orders, 0) AS orders,
    coalesce(sold.items_sold, 0) AS items_sold,
    coalesce(viewed.pageviews, 0) AS pageviews,
    coalesce(sold.orders, 0)::double precision / viewed.pageviews AS conversion_rate
FROM items
LEFT JOIN purchases_by_item AS sold ON sold.item_id = items.id
LEFT JOIN pageviews_by_item AS viewed ON viewed.item_id = items.id;

CREATE VIEW top_viewed_items AS
SELECT * FROM item_summary ORDER BY pageviews DESC, item_id LIMIT 20;

CREATE VIEW top_converting_items AS
SELECT * FROM item_summary ORDER BY conversion_rate DESC NULLS LAST, item_id LIMIT 20;

-- ---- Who viewed my profile ----------------------------------------------------------------------
-- now() is the start of the transaction that reads the view.
CREATE VIEW profile_views_per_minute_last_10 AS
SELECT
    target_id AS user_id,
    date_trunc('minute', received_at) AS received_at_minute,
    count(*) AS pageviews
FROM pageviews
WHERE pageview_type = 'profiles' AND received_at > now() - INTERVAL '10 minutes'
GROUP BY target_id, date_trunc('minute', received_at)
ORDER BY user_id, received_at_minute;

-- This reads ten entries of the index per owner.
CREATE VIEW profile_views AS
SELECT owners.owner_id, viewed.viewer_id, viewed.received_at, viewed.partition, viewed."offset"
FROM
    (
        SELECT DISTINCT target_id AS owner_id
        FROM pageviews
        WHERE pageview_type = 'profiles'
    ) AS owners,
    LATERAL (
        SELECT user_id AS viewer_id, received_at, partition, "offset"
        FROM pageviews
        WHERE pageview_type = 'profiles' AND target_id = owners.owner_id
        ORDER BY received_at DESC, partition DESC, "offset" DESC
        LIMIT 10
    ) AS viewed;

CREATE VIEW profile_views_enriched AS
SELECT viewed.*, owners.email AS owner_email, viewers.email AS viewer_email
FROM profile_views AS viewed
LEFT JOIN users AS owners ON owners.id = viewed.owner_id
LEFT JOIN users AS viewers ON viewers.id = viewed.viewer_id;

-- ---- Flagged profiles, on demand ----------------------------------------------------------------
-- The consumer ignores messages that are not ids.
CREATE TABLE dd_flagged_profiles (user_id bigint PRIMARY KEY);

CREATE VIEW dd_flagged_profile_view AS
SELECT pageviews.*
FROM pageviews
JOIN dd_flagged_profiles ON dd_flagged_profiles.user_id = pageviews.user_id;

-- ---- High-value users, sent back to Kafka -------------------------------------------------------
CREATE VIEW high_value_users AS
SELECT bought.id, users.email, bought.lifetime_value, bought.purchases
FROM (
    SELECT
        user_id AS id,
        sum(purchase_price * quantity)::numeric(38, 2) AS lifetime_value,
        count(*) AS purchases
    FROM purchases
    GROUP BY user_id
    HAVING sum(purchase_price * quantity) > 10000
) AS bought
LEFT JOIN users ON users.id = bought.id;

-- PostgreSQL can't write to Kafka either. The consumer compares the view with the rows that it has
-- sent, sends the differences, and records the sent rows here.
CREATE TABLE high_value_users_sent (
    id bigint PRIMARY KEY,
    email text,
    lifetime_value numeric(38, 2),
    purchases bigint
);

CREATE VIEW high_value_users_to_send AS
SELECT
    coalesce(sent.id, now.id) AS id,
    now.id IS NULL AS gone,
    now.email,
    now.lifetime_value,
    now.purchases
FROM high_value_users AS now
FULL JOIN high_value_users_sent AS sent ON sent.id = now.id
WHERE (now.email, now.lifetime_value, now.purchases)
    IS DISTINCT FROM (sent.email, sent.lifetime_value, sent.purchases);

-- The content of the topic, read back by the consumer.
CREATE TABLE hvu_test (
    id bigint PRIMARY KEY,
    email text,
    lifetime_value numeric(38, 2),
    purchases bigint
);

-- ---- The consumer -------------------------------------------------------------------------------
-- The topics that the consumer reads, with the target table, and `how` messages are inserted:
-- - events: a JSON message becomes a row with the fields that the table has. The table with the suffix
--   _progress contains the counts; `due` is the field with the time at which an event was due.
-- - rows: Debezium's changes, applied so that the table has the current content of MySQL's table.
-- - ids: a message is a number; the table contains the distinct numbers.
-- - sink: the messages that the consumer has sent to Kafka.
CREATE TABLE feed_topics (
    topic text PRIMARY KEY,
    how text NOT NULL,
    into_table text NOT NULL,
    due text
);

INSERT INTO feed_topics VALUES
    ('pageviews', 'events', 'pageviews', 'received_at'),
    ('mysql.shop.users', 'rows', 'users', NULL),
    ('mysql.shop.items', 'rows', 'items', NULL),
    ('mysql.shop.purchases', 'rows', 'purchases', NULL),
    ('dd_flagged_profiles', 'ids', 'dd_flagged_profiles', NULL),
    ('high_value_users_sink', 'sink', 'hvu_test', NULL);

-- The next offset that the consumer reads, per partition.
CREATE TABLE feed_positions (
    topic text NOT NULL,
    partition integer NOT NULL,
    next_offset bigint NOT NULL,
    PRIMARY KEY (topic, partition)
);

-- With `\set unlogged on`, tables have no write-ahead log: after a crash they are empty, as the
-- consumer's positions are, so it reads all input again.
\if :unlogged
SELECT format('ALTER TABLE %s SET UNLOGGED', oid::regclass) FROM pg_class
WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace \gexec
\endif

COMMIT;
