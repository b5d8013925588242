-- Bids and prices per auction and day (UTC). The average is truncated, as one of BIGINT is.
SELECT auction, "day",
    count(*) AS total_bids,
    count(*) FILTER (WHERE price < 10000) AS rank1_bids,
    count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
    count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
    min(price) AS min_price, max(price) AS max_price,
    (sum(price) // count(*))::BIGINT AS avg_price, sum(price)::BIGINT AS sum_price
FROM source.nexmark_bid
GROUP BY auction, "day"
