-- The winning bid of each auction: the earliest of those with the highest price.
SELECT a.id, a."itemName", a.description, a."initialBid", a.reserve, a."dateTime", a.expires,
    a.seller, a.category, a.extra,
    b.auction, b.bidder, b.price, b."dateTime" AS "bid_dateTime", b.extra AS bid_extra,
    rank() OVER (PARTITION BY a.id ORDER BY b.price DESC, b."dateTime") AS place
FROM source.nexmark_auction AS a JOIN source.nexmark_bid AS b
    ON a.id = b.auction AND b."dateTime" BETWEEN a."dateTime" AND a.expires
QUALIFY place <= 1
