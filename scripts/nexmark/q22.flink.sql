-- Bids with the folders in their URLs.
CREATE TABLE q22 (
    auction BIGINT,
    bidder BIGINT,
    price BIGINT,
    channel STRING,
    dir1 STRING,
    dir2 STRING,
    dir3 STRING
) WITH (
    'connector' = 'kafka', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json',
    'topic' = 'flink.q22'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

INSERT INTO q22
SELECT auction, bidder, price, channel, SPLIT_INDEX(url, '/', 3), SPLIT_INDEX(url, '/', 4),
    SPLIT_INDEX(url, '/', 5)
FROM bid;
