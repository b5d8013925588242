-- Yahoo's streaming benchmark, kept up to date by Materialize: row for row the views of ads.py.
--
-- In psql: \i /scripts/ads.sql
-- Addresses are psql variables, and the stack's own unless they are set before: \set kafka 'host:9092'
-- Objects are made in the schema that is current. To begin anew:
--   DROP CONNECTION kafka CASCADE; DROP CONNECTION registry CASCADE;
--
-- What each view holds is said in ads.py, exactly. A view here is a set of rows, and dt_ms is in the
-- query that reads ad_events_summary. demo.sql says what is kept where, and why.

\set ON_ERROR_STOP on
\if :{?kafka} \else \set kafka 'redpanda:9092' \endif
\if :{?registry} \else \set registry 'http://redpanda:8081' \endif

CREATE CONNECTION kafka TO KAFKA (BROKER :'kafka', SECURITY PROTOCOL = 'PLAINTEXT');

-- Its URL may have no path: the registry must answer at the root.
CREATE CONNECTION registry TO CONFLUENT SCHEMA REGISTRY (URL :'registry');

-- ---- Events -------------------------------------------------------------------------------------
-- A source x brings an object x_progress with it. So none may be named `ad_events`: its
-- ad_events_progress would be in the way of the view.
CREATE SOURCE ad_events_json
FROM KAFKA CONNECTION kafka (TOPIC 'ad-events')
FORMAT JSON
INCLUDE PARTITION AS partition;

-- Of an event's seven fields only these are read. A message that is not JSON, or a time that is not
-- an integer, is an error in this view and in all that depend on it. In a measurement, loud is right.
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

-- From a few rows, instead of counting every event again.
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
-- Views are counted by ad before the join, which then keeps a row for each ad and window, and not
-- for each event.
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
