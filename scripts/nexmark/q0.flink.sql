-- All bids, unchanged.
CREATE TABLE q0 (
    auction BIGINT,
    bidder BIGINT,
    price BIGINT,
    `dateTime` BIGINT,
    extra STRING
) WITH (
    'connector' = 'kafka', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json',
    'topic' = 'flink.q0'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

INSERT INTO q0
SELECT auction, bidder, price, `dateTime`, extra FROM bid;
