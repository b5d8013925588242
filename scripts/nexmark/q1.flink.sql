-- All bids, with the price in euros.
CREATE TABLE q1 (
    auction BIGINT,
    bidder BIGINT,
    price DECIMAL(23, 3),
    `dateTime` BIGINT,
    extra STRING
) WITH (
    'connector' = 'kafka', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json',
    'topic' = 'flink.q1'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

INSERT INTO q1
SELECT auction, bidder, 0.908 * price, `dateTime`, extra FROM bid;
