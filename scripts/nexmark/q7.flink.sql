-- Highest bids in each window of ten seconds.
CREATE TABLE q7 (
    auction BIGINT,
    bidder BIGINT,
    price BIGINT,
    `dateTime` BIGINT,
    extra STRING
) WITH (
    'connector' = 'kafka', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json',
    'topic' = 'flink.q7'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

INSERT INTO q7
SELECT B.auction, B.bidder, B.price, B.`dateTime`, B.extra
FROM bid B
JOIN (
    SELECT MAX(price) AS maxprice, window_end AS endtime
    FROM TUMBLE(TABLE bid, DESCRIPTOR(rowtime), INTERVAL '10' SECOND)
    GROUP BY window_start, window_end
) B1
ON B.price = B1.maxprice
WHERE B.rowtime BETWEEN B1.endtime - INTERVAL '10' SECOND AND B1.endtime;
