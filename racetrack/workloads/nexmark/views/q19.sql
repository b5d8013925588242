-- The ten highest bids on each auction. Those with the same price are in any order.
SELECT auction, bidder, price, channel, url, "dateTime", extra,
    rank() OVER (PARTITION BY auction ORDER BY price DESC) AS place,
    place AS rank_number_least,
    place + count(*) OVER (PARTITION BY auction, price) - 1 AS rank_number_most
FROM source.nexmark_bid
QUALIFY place <= 10
