-- Bids on auctions with certain ids.
CREATE TABLE q2 (
    auction BIGINT,
    price BIGINT
) WITH (
    'connector' = 'kafka', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json',
    'topic' = 'flink.q2'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

INSERT INTO q2
SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0;
