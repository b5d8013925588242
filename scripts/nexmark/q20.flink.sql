-- Bids with their auctions, for category 10.
CREATE TABLE q20 (
    auction BIGINT,
    bidder BIGINT,
    price BIGINT,
    channel STRING,
    url STRING,
    `bid_dateTime` BIGINT,
    bid_extra STRING,
    itemName STRING,
    description STRING,
    initialBid BIGINT,
    reserve BIGINT,
    `auction_dateTime` BIGINT,
    expires BIGINT,
    seller BIGINT,
    category BIGINT,
    auction_extra STRING
) WITH (
    'connector' = 'kafka', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json',
    'topic' = 'flink.q20'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

INSERT INTO q20
SELECT B.auction, B.bidder, B.price, B.channel, B.url, B.`dateTime`, B.extra,
    A.itemName, A.description, A.initialBid, A.reserve, A.`dateTime`, A.expires, A.seller, A.category,
    A.extra
FROM bid AS B INNER JOIN auction AS A ON B.auction = A.id
WHERE A.category = 10;
