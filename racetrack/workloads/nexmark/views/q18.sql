-- The latest bid of each bidder on each auction. Any of those in the same millisecond is right.
SELECT auction, bidder, price, channel, url, "dateTime", extra,
    rank() OVER (PARTITION BY bidder, auction ORDER BY "dateTime" DESC) AS place
FROM source.nexmark_bid
QUALIFY place <= 1
