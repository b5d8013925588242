-- Yahoo's streaming benchmark, kept up to date by Materialize, with the same rows as in ads.py.
--
-- In psql: \i /scripts/ads.sql
-- Addresses are psql variables; set them before to use others than the stack's: \set kafka 'host:9092'
-- Objects are created in the current schema. To start over:
--   DROP CONNECTION kafka CASCADE; DROP CONNECTION registry CASCADE;
--
-- ads.py defines the content of each view exactly. A view here is a set of rows, and the query that
-- reads ad_events_summary computes dt_ms. demo.sql explains how views are stored.

\set ON_ERROR_STOP on
\if :{?kafka} \else \set kafka 'redpanda:9092' \endif
\if :{?registry} \else \set registry 'http://redpanda:8081' \endif

CREATE CONNECTION kafka TO KAFKA (BROKER :'kafka', SECURITY PROTOCOL = 'PLAINTEXT');

-- The URL must not have a path: the registry has to answer at the root.
CREATE CONNECTION registry TO CONFLUENT SCHEMA REGISTRY (URL :'registry');

-- ---- Events -------------------------------------------------------------------------------------
-- For a source x, Materialize also creates an object x_progress. So no source can be named `ad_events`:
-- its ad_events_progress would conflict with the view.
CREATE SOURCE ad_events_json
FROM KAFKA CONNECTION kafka (TOPIC 'ad-events')
FORMAT JSON
INCLUDE PARTITION AS partition;

-- Only three of an event's seven fields are read. A message that is not JSON, or a time that is not an
-- integer, causes an error in this view and in all views that depend on it: a measurement must not hide
-- errors.
CREATE VIEW ad_events AS
SELECT
    partition::bigint AS partition,
    data ->> 'ad_id' AS ad_id,
    data ->> 'event_type' AS event_type,
    (data ->> 'event_time')::bigint AS event_time
FROM ad_events_json;

CREATE MATERIALIZED VIEW ad_events_progress AS
SELECT partition, count(*) AS total, max(event_time) AS max_received_at
FROM ad_events
GROUP BY partition;

-- Computed from the few rows of ad_events_progress, instead of counting all events again.
CREATE MATERIALIZED VIEW ad_events_summary AS
SELECT total, max_received_at
FROM (
    SELECT sum(total)::bigint AS total, max(max_received_at) AS max_received_at
    FROM ad_events_progress
) AS all_partitions
WHERE total > 0;

-- ---- The database -------------------------------------------------------------------------------
CREATE SOURCE campaigns
FROM KAFKA CONNECTION kafka (TOPIC 'mysql.ads.campaigns')
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry
ENVELOPE DEBEZIUM;

CREATE SOURCE ads
FROM KAFKA CONNECTION kafka (TOPIC 'mysql.ads.ads')
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry
ENVELOPE DEBEZIUM;

-- ---- Campaigns ----------------------------------------------------------------------------------
-- Views are counted by ad before the join, so that the join keeps one row per ad and window instead of
-- one row per event.
CREATE VIEW views_by_ad AS
SELECT ad_id, event_time - event_time % 10000 AS window_start_ms, count(*) AS seen
FROM ad_events
WHERE event_type = 'view'
GROUP BY ad_id, event_time - event_time % 10000;

CREATE MATERIALIZED VIEW campaign_windows AS
SELECT ads.campaign_id, viewed.window_start_ms, sum(viewed.seen)::bigint AS seen_count
FROM views_by_ad AS viewed
JOIN ads ON ads.ad_id = viewed.ad_id
GROUP BY ads.campaign_id, viewed.window_start_ms;
