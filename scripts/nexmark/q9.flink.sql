-- The winning bid of each auction: the earliest of those with the highest price.
CREATE TABLE q9 (
    id BIGINT,
    itemName STRING,
    description STRING,
    initialBid BIGINT,
    reserve BIGINT,
    `dateTime` BIGINT,
    expires BIGINT,
    seller BIGINT,
    category BIGINT,
    extra STRING,
    auction BIGINT,
    bidder BIGINT,
    price BIGINT,
    `bid_dateTime` BIGINT,
    bid_extra STRING,
    PRIMARY KEY (id) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json',
    'topic' = 'flink.q9'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

INSERT INTO q9
SELECT id, itemName, description, initialBid, reserve, `dateTime`, expires, seller, category, extra,
    auction, bidder, price, `bid_dateTime`, bid_extra
FROM (
    SELECT A.*, B.auction, B.bidder, B.price, B.`dateTime` AS `bid_dateTime`, B.extra AS bid_extra,
        ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.`dateTime` ASC) AS rownum
    FROM auction A, bid B
    WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires
)
WHERE rownum <= 1;
