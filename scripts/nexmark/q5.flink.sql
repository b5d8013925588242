-- Auctions with the most bids in each window of ten seconds; a window begins every two. `starttime` is
-- not in the published query: it tells the windows apart, which is what the join is by anyway.
CREATE TABLE q5 (
    auction BIGINT,
    num BIGINT,
    starttime TIMESTAMP(3)
) WITH (
    'connector' = 'kafka', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json',
    'topic' = 'flink.q5'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

INSERT INTO q5
SELECT AuctionBids.auction, AuctionBids.num, AuctionBids.starttime
FROM (
    SELECT auction, COUNT(*) AS num, window_start AS starttime, window_end AS endtime
    FROM HOP(TABLE bid, DESCRIPTOR(rowtime), INTERVAL '2' SECOND, INTERVAL '10' SECOND)
    GROUP BY auction, window_start, window_end
) AS AuctionBids
JOIN (
    SELECT MAX(CountBids.num) AS maxn, CountBids.starttime, CountBids.endtime
    FROM (
        SELECT COUNT(*) AS num, window_start AS starttime, window_end AS endtime
        FROM HOP(TABLE bid, DESCRIPTOR(rowtime), INTERVAL '2' SECOND, INTERVAL '10' SECOND)
        GROUP BY auction, window_start, window_end
    ) AS CountBids
    GROUP BY CountBids.starttime, CountBids.endtime
) AS MaxBids
ON AuctionBids.starttime = MaxBids.starttime AND AuctionBids.endtime = MaxBids.endtime
    AND AuctionBids.num >= MaxBids.maxn;
