-- Yahoo's streaming benchmark in PostgreSQL, as plain views over tables: row for row those of ads.py.
--
-- In psql: \i /scripts/ads.pg.sql
-- To begin anew: DROP SCHEMA public CASCADE; CREATE SCHEMA public;
--
-- What each view holds is said in ads.py, exactly. A small consumer (racetrack/engines/pg/feed/consumer.py)
-- brings the topics into the tables, batch by batch; it begins when these are there, and finds what it
-- has to know in feed_topics and feed_positions, as demo.pg.sql says.
--
-- Nothing is computed ahead: a view costs nothing until somebody reads it, and then all of it.

\set ON_ERROR_STOP on
BEGIN;

-- ---- Events -------------------------------------------------------------------------------------
-- Of an event's seven fields only these are kept: nothing else is asked for. A message that is not
-- such JSON ends the consumer. In a measurement, loud is right.
CREATE TABLE ad_events (
    partition integer NOT NULL,
    "offset" bigint NOT NULL,
    ad_id text NOT NULL,
    event_type text NOT NULL,
    event_time bigint NOT NULL
);

-- A table: the consumer counts each batch in the transaction that brings it, which is when all views
-- have it.
CREATE TABLE ad_events_progress (
    partition integer PRIMARY KEY,
    total bigint NOT NULL,
    max_received_at bigint NOT NULL
);

-- dt_ms is as of the time of reading: whoever reads late sees an old event.
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

-- ---- What the consumer brings -------------------------------------------------------------------
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

-- How far it has read.
CREATE TABLE feed_positions (
    topic text NOT NULL,
    partition integer NOT NULL,
    next_offset bigint NOT NULL,
    PRIMARY KEY (topic, partition)
);

COMMIT;
