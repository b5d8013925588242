-- The latest bid of each bidder on each auction.
CREATE TABLE q18 (
    auction BIGINT,
    bidder BIGINT,
    price BIGINT,
    channel STRING,
    url STRING,
    `dateTime` BIGINT,
    extra STRING,
    PRIMARY KEY (bidder, auction) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json',
    'topic' = 'flink.q18'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

INSERT INTO q18
SELECT auction, bidder, price, channel, url, `dateTime`, extra
FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY rowtime DESC) AS rank_number
    FROM bid
)
WHERE rank_number <= 1;
