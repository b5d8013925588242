-- Highest bids in each closed window of ten seconds. As published, both ends of a window belong to
-- it when its highest price is searched among the bids.
WITH highest AS (
    SELECT ("dateTime" // 10000 + 1) * 10000 AS ends_ms, max(price) AS price
    FROM source.nexmark_bid
    GROUP BY ends_ms
)
SELECT b.auction, b.bidder, b.price, b."dateTime", b.extra
FROM source.nexmark_bid AS b JOIN highest AS h
    ON b.price = h.price AND b."dateTime" BETWEEN h.ends_ms - 10000 AND h.ends_ms
WHERE h.ends_ms <= (SELECT at_ms FROM source.nexmark_closed)
