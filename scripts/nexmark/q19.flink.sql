-- The ten highest bids on each auction.
CREATE TABLE q19 (
    auction BIGINT,
    bidder BIGINT,
    price BIGINT,
    channel STRING,
    url STRING,
    `dateTime` BIGINT,
    extra STRING,
    rank_number BIGINT,
    PRIMARY KEY (auction, rank_number) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json',
    'topic' = 'flink.q19'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

INSERT INTO q19
SELECT auction, bidder, price, channel, url, `dateTime`, extra, rank_number
FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number
    FROM bid
)
WHERE rank_number <= 10;
