-- The shop's views, kept up to date by Apache Flink.
--
-- Paste it into Flink's SQL client, or run the whole file: sql-client.sh … -f demo.flink.sql
--
-- demo.py defines the content of each view exactly; comments here explain what Flink does differently.
-- In general:
-- - The result of a running query can't be read in Flink. So every view is written to a topic of its
--   own: a message per changed row, keyed by the table's primary key, and an empty message for a
--   removed row. The last messages of all keys are the view: SELECT * FROM item_summary shows it.
-- - A topic has no order, so readers have to sort views that have an order in demo.py.
-- - Times are epoch milliseconds, as in the messages: TO_TIMESTAMP_LTZ(received_at, 3) converts one.
-- - Topics must exist before. `./race up flink` creates them. Otherwise create them, or let the broker
--   do it (auto.create.topics.enable). The name of a topic is `flink.` and the name of the view.
-- - Parallelism, mini-batches, state and checkpoints are not set here but in Flink's configuration, by
--   the settings FLINK_* in racetrack/engines/flink/.env. Never set
--   table.exec.sink.upsert-materialize=NONE: it makes Flink fast, but the views wrong (see the end).

-- ---- Addresses of Kafka and the registry ----------------------------------------------------------
-- All addresses are in these templates; no query reads them. An existing table with the same name is
-- kept, so create the templates first to use other addresses: `./race up flink` prints the statements.
-- max.request.size is the broker's limit.
CREATE TABLE IF NOT EXISTS at_kafka (unused AS 1) WITH (
    'properties.bootstrap.servers' = 'redpanda:9092',
    'properties.max.request.size' = '9437184'
);
CREATE TABLE IF NOT EXISTS at_kafka_and_registry (unused AS 1) WITH (
    'properties.bootstrap.servers' = 'redpanda:9092',
    'debezium-avro-confluent.url' = 'http://redpanda:8081'
);
CREATE TABLE IF NOT EXISTS at_kafka_in_avro (unused AS 1) WITH (
    'properties.bootstrap.servers' = 'redpanda:9092',
    'properties.max.request.size' = '9437184',
    'key.avro-confluent.url' = 'http://redpanda:8081',
    'value.avro-confluent.url' = 'http://redpanda:8081'
);

-- ---- Pageviews ------------------------------------------------------------------------------------
-- A message that is not JSON, or a time that is not an integer, ends the job, with an error in the
-- log: a measurement must not hide errors.
CREATE TABLE pageviews (
    user_id BIGINT,
    url STRING,
    channel STRING,
    received_at BIGINT,
    `partition` INT METADATA VIRTUAL,
    `offset` BIGINT METADATA VIRTUAL
) WITH (
    'connector' = 'kafka',
    'topic' = 'pageviews',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'json',
    'json.fail-on-missing-field' = 'true'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

CREATE VIEW pageviews_stg AS
SELECT
    user_id, url, channel, received_at, `partition`, `offset`,
    CASE
        WHEN url LIKE '/products/%' THEN 'products'
        WHEN url LIKE '/profiles/%' THEN 'profiles'
    END AS pageview_type,
    CASE
        WHEN url LIKE '/products/%' OR url LIKE '/profiles/%'
        THEN CAST(SUBSTRING(url FROM 11) AS BIGINT)
    END AS target_id
FROM pageviews;

CREATE TABLE pageviews_progress (
    `partition` INT,
    total BIGINT,
    max_received_at BIGINT,
    PRIMARY KEY (`partition`) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json',
    'topic' = 'flink.pageviews_progress'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

-- Flink does not recompute a column when only the clock has changed. So dt_ms is computed from the
-- timestamp of the Kafka message, which is the time at which Flink wrote it. A table needs a key for
-- updates, but the summary is a single row: `summary_of` is always 'all'.
CREATE TABLE pageviews_summary (
    summary_of STRING,
    total BIGINT,
    max_received_at BIGINT,
    written_at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL,
    dt_ms AS EXTRACT(EPOCH FROM written_at) * 1000 + EXTRACT(MILLISECOND FROM written_at)
        - max_received_at,
    PRIMARY KEY (summary_of) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json',
    'topic' = 'flink.pageviews_summary'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

-- ---- The shop's database --------------------------------------------------------------------------
-- mysql_users, mysql_items, mysql_purchases: the changes that Debezium publishes, which all queries
-- read. users, items, purchases: the current content of MySQL's tables.
--
-- After a kill, Debezium publishes the last changes again. The sources drop those; otherwise sums and
-- joins would count them twice.
SET 'table.exec.source.cdc-events-duplicate' = 'true';

CREATE TABLE mysql_users (
    id BIGINT,
    email STRING,
    is_vip INT,
    created_at STRING,
    updated_at BIGINT,
    PRIMARY KEY (id) NOT ENFORCED
) WITH (
    'connector' = 'kafka',
    'topic' = 'mysql.shop.users',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'debezium-avro-confluent'
) LIKE at_kafka_and_registry (EXCLUDING ALL INCLUDING OPTIONS);

CREATE TABLE mysql_items (
    id BIGINT,
    name STRING,
    category STRING,
    price DECIMAL(7, 2),
    inventory INT,
    inventory_updated_at STRING,
    created_at STRING,
    updated_at BIGINT,
    PRIMARY KEY (id) NOT ENFORCED
) WITH (
    'connector' = 'kafka',
    'topic' = 'mysql.shop.items',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'debezium-avro-confluent'
) LIKE at_kafka_and_registry (EXCLUDING ALL INCLUDING OPTIONS);

CREATE TABLE mysql_purchases (
    id BIGINT,
    user_id BIGINT,
    item_id BIGINT,
    status INT,
    quantity BIGINT,
    purchase_price DECIMAL(12, 2),
    deleted INT,
    created_at STRING,
    updated_at BIGINT,
    PRIMARY KEY (id) NOT ENFORCED
) WITH (
    'connector' = 'kafka',
    'topic' = 'mysql.shop.purchases',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'debezium-avro-confluent'
) LIKE at_kafka_and_registry (EXCLUDING ALL INCLUDING OPTIONS);

CREATE TABLE users (
    id BIGINT,
    email STRING,
    is_vip INT,
    created_at STRING,
    updated_at BIGINT,
    PRIMARY KEY (id) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json',
    'topic' = 'flink.users'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

CREATE TABLE items (
    id BIGINT,
    name STRING,
    category STRING,
    price DECIMAL(7, 2),
    inventory INT,
    inventory_updated_at STRING,
    created_at STRING,
    updated_at BIGINT,
    PRIMARY KEY (id) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json',
    'topic' = 'flink.items'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

CREATE TABLE purchases (
    id BIGINT,
    user_id BIGINT,
    item_id BIGINT,
    status INT,
    quantity BIGINT,
    purchase_price DECIMAL(12, 2),
    deleted INT,
    created_at STRING,
    updated_at BIGINT,
    PRIMARY KEY (id) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json',
    'topic' = 'flink.purchases'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

-- ---- Summaries ------------------------------------------------------------------------------------
-- Each `…_query` is computed once, even if several queries read it. Its result is written to the table
-- with the same name, without `_query`.
CREATE VIEW purchases_by_item_query AS
SELECT
    item_id,
    SUM(purchase_price) AS revenue,
    COUNT(*) AS orders,
    SUM(quantity) AS items_sold
FROM mysql_purchases
GROUP BY item_id;

CREATE VIEW pageviews_by_item_query AS
SELECT target_id AS item_id, COUNT(*) AS pageviews
FROM pageviews_stg
WHERE pageview_type = 'products'
GROUP BY target_id;

-- Sums over a union replace the left joins of items with purchases and pageviews, because Flink 2.3
-- with mini-batches lost rows of such joins. In two verified runs with deletions of purchases, 23 and
-- 112 rows of items without purchases were missing or included deleted purchases, with
-- upsert-materialize AUTO as well as with FORCE.
CREATE VIEW item_summary_query AS
SELECT
    item_id, name, category, revenue, orders, items_sold, pageviews,
    CASE WHEN pageviews > 0 THEN CAST(orders AS DOUBLE) / pageviews END AS conversion_rate
FROM (
    SELECT
        item_id,
        MAX(name) AS name,
        MAX(category) AS category,
        SUM(revenue) AS revenue,
        SUM(orders) AS orders,
        SUM(items_sold) AS items_sold,
        SUM(pageviews) AS pageviews
    FROM (
        SELECT
            id AS item_id, name, category, CAST(0 AS DECIMAL(38, 2)) AS revenue,
            CAST(0 AS BIGINT) AS orders, CAST(0 AS BIGINT) AS items_sold,
            CAST(0 AS BIGINT) AS pageviews, 1 AS is_item
        FROM mysql_items
        UNION ALL
        SELECT
            item_id, CAST(NULL AS STRING), CAST(NULL AS STRING), revenue,
            orders, items_sold, CAST(0 AS BIGINT), 0
        FROM purchases_by_item_query
        UNION ALL
        SELECT
            item_id, CAST(NULL AS STRING), CAST(NULL AS STRING), CAST(0 AS DECIMAL(38, 2)),
            CAST(0 AS BIGINT), CAST(0 AS BIGINT), pageviews, 0
        FROM pageviews_by_item_query
    )
    GROUP BY item_id
    HAVING SUM(is_item) > 0
);

-- The rank is not part of the result: otherwise an item that rises by several ranks would change the
-- rows of all items that it overtakes.
CREATE VIEW top_viewed_items_query AS
SELECT item_id, name, category, revenue, orders, items_sold, pageviews, conversion_rate
FROM (
    SELECT *, ROW_NUMBER() OVER (ORDER BY pageviews DESC, item_id ASC) AS nth
    FROM item_summary_query
)
WHERE nth <= 20;

CREATE VIEW top_converting_items_query AS
SELECT item_id, name, category, revenue, orders, items_sold, pageviews, conversion_rate
FROM (
    SELECT *, ROW_NUMBER() OVER (ORDER BY conversion_rate DESC NULLS LAST, item_id ASC) AS nth
    FROM item_summary_query
)
WHERE nth <= 20;

CREATE TABLE purchases_by_item (
    item_id BIGINT,
    revenue DECIMAL(38, 2),
    orders BIGINT,
    items_sold BIGINT,
    PRIMARY KEY (item_id) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json',
    'topic' = 'flink.purchases_by_item'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

CREATE TABLE pageviews_by_item (
    item_id BIGINT,
    pageviews BIGINT,
    PRIMARY KEY (item_id) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json',
    'topic' = 'flink.pageviews_by_item'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

CREATE TABLE item_summary (
    item_id BIGINT,
    name STRING,
    category STRING,
    revenue DECIMAL(38, 2),
    orders BIGINT,
    items_sold BIGINT,
    pageviews BIGINT,
    conversion_rate DOUBLE,
    PRIMARY KEY (item_id) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json',
    'topic' = 'flink.item_summary'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

CREATE TABLE top_viewed_items WITH ('topic' = 'flink.top_viewed_items') LIKE item_summary;
CREATE TABLE top_converting_items WITH ('topic' = 'flink.top_converting_items') LIKE item_summary;

-- ---- Who viewed my profile ------------------------------------------------------------------------
CREATE VIEW profile_pageviews AS
SELECT target_id AS owner_id, user_id AS viewer_id, received_at, `partition`, `offset`
FROM pageviews_stg
WHERE pageview_type = 'profiles';

-- The last ten minutes. Flink's windows emit their content only at their end, and its SQL has no filter
-- that removes a row when it expires. So there is a table of expired seconds: five times per second, a
-- tick adds the seconds that are ten minutes ago, and pageviews received in these seconds are
-- retracted. Each tick adds the last hundred such seconds, so that none is missing unless Flink pauses
-- for longer. Pageviews that are older when they arrive are not counted.
-- So the window moves by whole seconds: it may contain pageviews up to 601 s and one tick old. The join
-- keeps its rows forever. STATE_TTL would end that, but for each event it copies all rows of five seconds.
CREATE TABLE ticks (n INT) WITH (
    'connector' = 'datagen',
    'rows-per-second' = '5',
    'scan.parallelism' = '1'
);

CREATE VIEW expired_seconds AS
SELECT DISTINCT epoch_second
FROM (SELECT UNIX_TIMESTAMP() - 601 AS newest FROM ticks) AS tick
CROSS JOIN UNNEST(ARRAY[
    newest, newest - 10, newest - 20, newest - 30, newest - 40,
    newest - 50, newest - 60, newest - 70, newest - 80, newest - 90
]) AS tens (ten)
CROSS JOIN UNNEST(ARRAY[
    ten, ten - 1, ten - 2, ten - 3, ten - 4, ten - 5, ten - 6, ten - 7, ten - 8, ten - 9
]) AS ones (epoch_second);

CREATE VIEW profile_views_per_minute_last_10_query AS
SELECT owner_id AS user_id, received_at_minute, COUNT(*) AS pageviews
FROM (
    SELECT
        owner_id,
        received_at - MOD(received_at, 60000) AS received_at_minute,
        received_at / 1000 AS received_at_second
    FROM profile_pageviews
    WHERE received_at / 1000 > UNIX_TIMESTAMP() - 601
) AS recent
LEFT JOIN expired_seconds AS expired ON expired.epoch_second = recent.received_at_second
WHERE expired.epoch_second IS NULL
GROUP BY owner_id, received_at_minute;

CREATE VIEW profile_views_query AS
SELECT owner_id, viewer_id, received_at, `partition`, `offset`
FROM (
    SELECT
        *,
        ROW_NUMBER() OVER (
            PARTITION BY owner_id
            ORDER BY received_at DESC, `partition` DESC, `offset` DESC
        ) AS nth
    FROM profile_pageviews
)
WHERE nth <= 10;

CREATE VIEW profile_views_enriched_query AS
SELECT
    seen.owner_id, seen.viewer_id, seen.received_at, seen.`partition`, seen.`offset`,
    `owner`.email AS owner_email, viewer.email AS viewer_email
FROM profile_views_query AS seen
LEFT JOIN mysql_users AS `owner` ON `owner`.id = seen.owner_id
LEFT JOIN mysql_users AS viewer ON viewer.id = seen.viewer_id;

CREATE TABLE profile_views_per_minute_last_10 (
    user_id BIGINT,
    received_at_minute BIGINT,
    pageviews BIGINT,
    PRIMARY KEY (user_id, received_at_minute) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json',
    'topic' = 'flink.profile_views_per_minute_last_10'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

CREATE TABLE profile_views (
    owner_id BIGINT,
    viewer_id BIGINT,
    received_at BIGINT,
    `partition` INT,
    `offset` BIGINT,
    PRIMARY KEY (`partition`, `offset`) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json',
    'topic' = 'flink.profile_views'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

CREATE TABLE profile_views_enriched (
    owner_id BIGINT,
    viewer_id BIGINT,
    received_at BIGINT,
    `partition` INT,
    `offset` BIGINT,
    owner_email STRING,
    viewer_email STRING,
    PRIMARY KEY (`partition`, `offset`) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json',
    'topic' = 'flink.profile_views_enriched'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

-- ---- Flagged profiles, on demand ------------------------------------------------------------------
CREATE TABLE flagged_profile_messages (user_id_text STRING) WITH (
    'connector' = 'kafka',
    'topic' = 'dd_flagged_profiles',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'raw'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

CREATE VIEW dd_flagged_profiles_query AS
SELECT DISTINCT CAST(REPLACE(user_id_text, '"', '') AS BIGINT) AS user_id
FROM flagged_profile_messages
WHERE REGEXP(user_id_text, '^"?[0-9]{1,18}"?$');

CREATE TABLE dd_flagged_profiles (
    user_id BIGINT,
    PRIMARY KEY (user_id) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json',
    'topic' = 'flink.dd_flagged_profiles'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

-- A profile may be flagged at any time, and then its old pageviews are needed. So the join of this view
-- keeps all pageviews, and Flink's memory use grows with them. It keeps them as they arrive: columns are
-- computed, as in pageviews_stg, only for rows of the result.
CREATE VIEW dd_flagged_profile_view_query AS
SELECT
    seen.user_id, url, channel, received_at, `partition`, `offset`,
    CASE
        WHEN url LIKE '/products/%' THEN 'products'
        WHEN url LIKE '/profiles/%' THEN 'profiles'
    END AS pageview_type,
    CASE
        WHEN url LIKE '/products/%' OR url LIKE '/profiles/%'
        THEN CAST(SUBSTRING(url FROM 11) AS BIGINT)
    END AS target_id
FROM pageviews AS seen
JOIN dd_flagged_profiles_query AS flagged ON flagged.user_id = seen.user_id;

CREATE TABLE dd_flagged_profile_view (
    user_id BIGINT,
    url STRING,
    channel STRING,
    received_at BIGINT,
    `partition` INT,
    `offset` BIGINT,
    pageview_type STRING,
    target_id BIGINT,
    PRIMARY KEY (`partition`, `offset`) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json',
    'topic' = 'flink.dd_flagged_profile_view'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

-- ---- High-value users, sent back to Kafka ---------------------------------------------------------
CREATE VIEW high_value_users_query AS
SELECT best.id, users.email, best.lifetime_value, best.purchases
FROM (
    SELECT
        user_id AS id,
        CAST(SUM(purchase_price * quantity) AS DECIMAL(38, 2)) AS lifetime_value,
        COUNT(*) AS purchases
    FROM mysql_purchases
    GROUP BY user_id
    HAVING SUM(purchase_price * quantity) > 10000
) AS best
LEFT JOIN mysql_users AS users ON users.id = best.id;

CREATE TABLE high_value_users (
    id BIGINT,
    email STRING,
    lifetime_value DECIMAL(38, 2),
    purchases BIGINT,
    PRIMARY KEY (id) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json',
    'topic' = 'flink.high_value_users'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

-- The topic for other programs: Confluent Avro, keyed by id. Only one task writes it: two tasks would
-- register its schema at the same time, which some registries reject (Apicurio with HTTP 409).
CREATE TABLE high_value_users_sink (
    id BIGINT,
    email STRING,
    lifetime_value DECIMAL(38, 2),
    purchases BIGINT,
    PRIMARY KEY (id) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka', 'key.format' = 'avro-confluent', 'value.format' = 'avro-confluent',
    'value.fields-include' = 'EXCEPT_KEY',
    'sink.parallelism' = '1',
    'topic' = 'high_value_users_sink'
) LIKE at_kafka_in_avro (EXCLUDING ALL INCLUDING OPTIONS);

-- The content of that topic, read back by Flink.
CREATE TABLE hvu_test WITH ('topic' = 'flink.hvu_test') LIKE high_value_users;

-- ---- Run it ---------------------------------------------------------------------------------------
-- All insertions are one job, so that every topic is read once, and queries that several views need are
-- computed once. The job continues after the client is closed.
--
-- ON CONFLICT DO DEDUPLICATE is for views with keys that Flink does not know to be unique, such as a
-- message's partition and offset. In joins, the new version of a row may overtake the old one. With this
-- clause Flink keeps both until it knows which one is valid. Without it (upsert-materialize=NONE) the
-- old version may arrive last, and the row stays wrong or missing.
-- profile_views and dd_flagged_profile_view would be right without it, since a pageview never changes,
-- but Flink has no way to declare that, and upsert-materialize is one setting for the whole job.
EXECUTE STATEMENT SET
BEGIN

INSERT INTO pageviews_progress
SELECT `partition`, COUNT(*), MAX(received_at) FROM pageviews GROUP BY `partition`;

INSERT INTO pageviews_summary
SELECT 'all', COUNT(*), MAX(received_at) FROM pageviews
ON CONFLICT DO DEDUPLICATE;

INSERT INTO users SELECT * FROM mysql_users;
INSERT INTO items SELECT * FROM mysql_items;
INSERT INTO purchases SELECT * FROM mysql_purchases;

INSERT INTO purchases_by_item SELECT * FROM purchases_by_item_query;
INSERT INTO pageviews_by_item SELECT * FROM pageviews_by_item_query;
INSERT INTO item_summary SELECT * FROM item_summary_query;
INSERT INTO top_viewed_items SELECT * FROM top_viewed_items_query;
INSERT INTO top_converting_items SELECT * FROM top_converting_items_query;

INSERT INTO profile_views_per_minute_last_10
SELECT * FROM profile_views_per_minute_last_10_query;

INSERT INTO profile_views SELECT * FROM profile_views_query
ON CONFLICT DO DEDUPLICATE;

INSERT INTO profile_views_enriched SELECT * FROM profile_views_enriched_query
ON CONFLICT DO DEDUPLICATE;

INSERT INTO dd_flagged_profiles SELECT * FROM dd_flagged_profiles_query;

INSERT INTO dd_flagged_profile_view SELECT * FROM dd_flagged_profile_view_query
ON CONFLICT DO DEDUPLICATE;

INSERT INTO high_value_users SELECT * FROM high_value_users_query;
INSERT INTO high_value_users_sink SELECT * FROM high_value_users_query;
INSERT INTO hvu_test SELECT * FROM high_value_users_sink;

END;
