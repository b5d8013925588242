-- Yahoo's streaming benchmark, kept up to date by Apache Flink: how often ads were viewed, by campaign
-- and window of ten seconds.
--
-- Paste it into Flink's SQL client, or run the whole file: sql-client.sh … -f ads.flink.sql
--
-- ads.py defines the content of each view exactly; comments here explain what Flink does differently.
-- In general, as in demo.flink.sql:
-- - Every view is written to a topic of its own: a message per changed row, keyed by the table's primary
--   key. The last messages of all keys are the view.
-- - Times are epoch milliseconds, as in the messages.
-- - Topics must exist before: `./race up flink --workload ads` creates them. The name of a topic is
--   `flink.` and the name of the view.
-- - Parallelism, mini-batches, state and checkpoints are not set here but in Flink's configuration, by
--   the settings FLINK_* in racetrack/engines/flink/.env.

-- ---- Addresses of Kafka and the registry ----------------------------------------------------------
-- All addresses are in these templates; no query reads them. An existing table with the same name is
-- kept, so create the templates first to use other addresses: `./race up flink` prints the statements.
CREATE TABLE IF NOT EXISTS at_kafka (unused AS 1) WITH (
    'properties.bootstrap.servers' = 'redpanda:9092'
);
CREATE TABLE IF NOT EXISTS at_kafka_and_registry (unused AS 1) WITH (
    'properties.bootstrap.servers' = 'redpanda:9092',
    'debezium-avro-confluent.url' = 'http://redpanda:8081'
);

-- ---- Events ---------------------------------------------------------------------------------------
-- Only three of an event's seven fields are read, because no view needs the others.
-- A message that is not JSON, or a time that is not an integer, ends the job, with an error in the
-- log: a measurement must not hide errors.
CREATE TABLE ad_events (
    ad_id STRING,
    event_type STRING,
    event_time BIGINT,
    `partition` INT METADATA VIRTUAL
) WITH (
    'connector' = 'kafka',
    'topic' = 'ad-events',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'json',
    'json.fail-on-missing-field' = 'true'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

CREATE TABLE ad_events_progress (
    `partition` INT,
    total BIGINT,
    max_received_at BIGINT,
    PRIMARY KEY (`partition`) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json',
    'topic' = 'flink.ad_events_progress'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

-- demo.flink.sql explains `summary_of`, and why dt_ms is computed from the timestamp of the message.
CREATE TABLE ad_events_summary (
    summary_of STRING,
    total BIGINT,
    max_received_at BIGINT,
    written_at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL,
    dt_ms AS EXTRACT(EPOCH FROM written_at) * 1000 + EXTRACT(MILLISECOND FROM written_at)
        - max_received_at,
    PRIMARY KEY (summary_of) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json',
    'topic' = 'flink.ad_events_summary'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

-- ---- The database ---------------------------------------------------------------------------------
-- mysql_campaigns, mysql_ads: the changes that Debezium publishes, which all queries read.
-- campaigns, ads: the current content of MySQL's tables.
--
-- After a kill, Debezium publishes the last changes again. The sources drop those; otherwise sums and
-- joins would count them twice.
SET 'table.exec.source.cdc-events-duplicate' = 'true';

CREATE TABLE mysql_campaigns (
    campaign_id STRING,
    PRIMARY KEY (campaign_id) NOT ENFORCED
) WITH (
    'connector' = 'kafka',
    'topic' = 'mysql.ads.campaigns',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'debezium-avro-confluent'
) LIKE at_kafka_and_registry (EXCLUDING ALL INCLUDING OPTIONS);

CREATE TABLE mysql_ads (
    ad_id STRING,
    campaign_id STRING,
    PRIMARY KEY (ad_id) NOT ENFORCED
) WITH (
    'connector' = 'kafka',
    'topic' = 'mysql.ads.ads',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'debezium-avro-confluent'
) LIKE at_kafka_and_registry (EXCLUDING ALL INCLUDING OPTIONS);

CREATE TABLE campaigns (
    campaign_id STRING,
    PRIMARY KEY (campaign_id) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json',
    'topic' = 'flink.campaigns'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

CREATE TABLE ads (
    ad_id STRING,
    campaign_id STRING,
    PRIMARY KEY (ad_id) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json',
    'topic' = 'flink.ads'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

-- ---- Campaigns ------------------------------------------------------------------------------------
-- Views are counted by ad before the join. A join of single events would have to keep all of them for
-- ads whose row arrives late, and the heap would fill up. This way the state grows only with ads and
-- windows.
CREATE VIEW views_by_ad AS
SELECT ad_id, window_start_ms, COUNT(*) AS seen
FROM (
    SELECT ad_id, event_time - MOD(event_time, 10000) AS window_start_ms
    FROM ad_events
    WHERE event_type = 'view'
)
GROUP BY ad_id, window_start_ms;

CREATE VIEW campaign_windows_query AS
SELECT mysql_ads.campaign_id, views_by_ad.window_start_ms, SUM(views_by_ad.seen) AS seen_count
FROM views_by_ad
JOIN mysql_ads ON mysql_ads.ad_id = views_by_ad.ad_id
GROUP BY mysql_ads.campaign_id, views_by_ad.window_start_ms;

CREATE TABLE campaign_windows (
    campaign_id STRING,
    window_start_ms BIGINT,
    seen_count BIGINT,
    PRIMARY KEY (campaign_id, window_start_ms) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json',
    'topic' = 'flink.campaign_windows'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

-- ---- Run it ---------------------------------------------------------------------------------------
-- All insertions are one job, so that every topic is read once. The job continues after the client is
-- closed.
EXECUTE STATEMENT SET
BEGIN

INSERT INTO ad_events_progress
SELECT `partition`, COUNT(*), MAX(event_time) FROM ad_events GROUP BY `partition`;

INSERT INTO ad_events_summary
SELECT 'all', COUNT(*), MAX(event_time) FROM ad_events
ON CONFLICT DO DEDUPLICATE;

INSERT INTO campaigns SELECT * FROM mysql_campaigns;
INSERT INTO ads SELECT * FROM mysql_ads;

INSERT INTO campaign_windows SELECT * FROM campaign_windows_query;

END;
