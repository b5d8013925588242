-- Nexmark for Apache Flink: the topic, and the views that all queries read.
--
-- Paste it into Flink's SQL client, then a query such as q4.flink.sql. docs/nexmark.md describes the
-- workload. In general:
-- - Queries are those of nexmark/nexmark.
-- - The result of a running query can't be read in Flink. So it is written to a topic of its own. If
--   rows are only added, each is a message without a key. Otherwise there is a message per changed row,
--   keyed by the table's primary key, and an empty one for a removed row: SELECT * FROM q4 shows it.
-- - `dateTime` and `expires` are epoch milliseconds, as in the messages.
-- - Topics must exist before: `./race up flink --workload nexmark --queries q4` creates them. The name
--   of a topic is `flink.` and the name of the query.
-- - Parallelism, mini-batches, state and checkpoints are not set here but in Flink's configuration, by
--   the settings FLINK_* in racetrack/engines/flink/.env.

-- The address of Kafka is in this template; no query reads it. An existing table with the same name is
-- kept, so create the template first to use another address: `./race up flink` prints the statement.
CREATE TABLE IF NOT EXISTS at_kafka (unused AS 1) WITH (
    'properties.bootstrap.servers' = 'redpanda:9092'
);

-- `rowtime` is the time of an event as a time attribute, in UTC. Each partition is in the order of time,
-- so windows need no delay, except that further events of the same millisecond may follow. Racetrack adds
-- NEXMARK_WATERMARK_DELAY_MS. Messages that are not JSON are skipped, but a null time would end the job.
CREATE TABLE nexmark (
    event_type INT,
    person ROW<id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING,
        state STRING, extra STRING>,
    auction ROW<id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT,
        expires BIGINT, seller BIGINT, category BIGINT, extra STRING>,
    bid ROW<auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, extra STRING>,
    `dateTime` BIGINT,
    rowtime AS TIMESTAMP '1970-01-01 00:00:00.000'
        + INTERVAL '0.001' SECOND(1, 3) * COALESCE(`dateTime`, 0),
    WATERMARK FOR rowtime AS rowtime - INTERVAL '0.001' SECOND
) WITH (
    'connector' = 'kafka',
    'topic' = 'nexmark',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'json',
    'json.ignore-parse-errors' = 'true'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

-- Records that lack a field are left out: in a key, a null would end the job.
CREATE VIEW person AS
SELECT person.id, person.name, person.emailAddress, person.creditCard, person.city, person.state,
    person.extra, `dateTime`, rowtime
FROM nexmark
WHERE event_type = 0
    AND person.id IS NOT NULL AND person.name IS NOT NULL AND person.emailAddress IS NOT NULL
    AND person.creditCard IS NOT NULL AND person.city IS NOT NULL AND person.state IS NOT NULL
    AND person.extra IS NOT NULL AND `dateTime` IS NOT NULL;

CREATE VIEW auction AS
SELECT auction.id, auction.itemName, auction.description, auction.initialBid, auction.reserve,
    auction.expires, auction.seller, auction.category, auction.extra, `dateTime`, rowtime
FROM nexmark
WHERE event_type = 1
    AND auction.id IS NOT NULL AND auction.itemName IS NOT NULL AND auction.description IS NOT NULL
    AND auction.initialBid IS NOT NULL AND auction.reserve IS NOT NULL
    AND auction.expires IS NOT NULL AND auction.seller IS NOT NULL AND auction.category IS NOT NULL
    AND auction.extra IS NOT NULL AND `dateTime` IS NOT NULL;

CREATE VIEW bid AS
SELECT bid.auction, bid.bidder, bid.price, bid.channel, bid.url, bid.extra, `dateTime`, rowtime
FROM nexmark
WHERE event_type = 2
    AND bid.auction IS NOT NULL AND bid.bidder IS NOT NULL AND bid.price IS NOT NULL
    AND bid.channel IS NOT NULL AND bid.url IS NOT NULL AND bid.extra IS NOT NULL
    AND `dateTime` IS NOT NULL;
