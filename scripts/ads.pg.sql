-- Yahoo's streaming benchmark in PostgreSQL, as plain views over tables, with the same rows as in ads.py.
--
-- In psql: \i /scripts/ads.pg.sql
-- To start over: DROP SCHEMA public CASCADE; CREATE SCHEMA public;
--
-- ads.py defines the content of each view exactly. A small consumer
-- (racetrack/engines/pg/feed/consumer.py) inserts the messages of the topics into the tables, in
-- batches. It starts when these tables exist. demo.pg.sql explains feed_topics and feed_positions.
--
-- A view is computed only when it is read, and then completely.

\set ON_ERROR_STOP on
\if :{?unlogged} \else \set unlogged off \endif
BEGIN;

-- ---- Events -------------------------------------------------------------------------------------
-- Only three of an event's seven fields are kept, because no view needs the others. A message that is
-- not JSON with these fields ends the consumer: a measurement must not hide errors.
CREATE TABLE ad_events (
    partition integer NOT NULL,
    "offset" bigint NOT NULL,
    ad_id text NOT NULL,
    event_type text NOT NULL,
    event_time bigint NOT NULL
);

-- This is a table because the consumer counts each batch in the transaction that inserts it, which is
-- when all views contain it.
CREATE TABLE ad_events_progress (
    partition integer PRIMARY KEY,
    total bigint NOT NULL,
    max_received_at bigint NOT NULL
);

-- dt_ms is computed at the time of reading, so it includes a delay of the reader.
CREATE VIEW ad_events_summary AS
SELECT
    sum(total)::bigint AS total,
    max(max_received_at) AS max_received_at,
    1000 * extract(epoch FROM clock_timestamp())::double precision - max(max_received_at) AS dt_ms
FROM ad_events_progress
HAVING count(*) > 0;

-- ---- The database -------------------------------------------------------------------------------
CREATE TABLE campaigns (campaign_id text PRIMARY KEY);

CREATE TABLE ads (ad_id text PRIMARY KEY, campaign_id text NOT NULL);

-- ---- Campaigns ----------------------------------------------------------------------------------
CREATE VIEW campaign_windows AS
SELECT ads.campaign_id, viewed.window_start_ms, sum(viewed.seen)::bigint AS seen_count
FROM (
    SELECT ad_id, event_time - event_time % 10000 AS window_start_ms, count(*) AS seen
    FROM ad_events
    WHERE event_type = 'view'
    GROUP BY ad_id, event_time - event_time % 10000
) AS viewed
JOIN ads ON ads.ad_id = viewed.ad_id
GROUP BY ads.campaign_id, viewed.window_start_ms;

-- ---- The consumer -------------------------------------------------------------------------------
CREATE TABLE feed_topics (
    topic text PRIMARY KEY,
    how text NOT NULL,
    into_table text NOT NULL,
    due text
);

INSERT INTO feed_topics VALUES
    ('ad-events', 'events', 'ad_events', 'event_time'),
    ('mysql.ads.campaigns', 'rows', 'campaigns', NULL),
    ('mysql.ads.ads', 'rows', 'ads', NULL);

-- The next offset that the consumer reads, per partition.
CREATE TABLE feed_positions (
    topic text NOT NULL,
    partition integer NOT NULL,
    next_offset bigint NOT NULL,
    PRIMARY KEY (topic, partition)
);

-- demo.pg.sql explains `unlogged`.
\if :unlogged
SELECT format('ALTER TABLE %s SET UNLOGGED', oid::regclass) FROM pg_class
WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace \gexec
\endif

COMMIT;
