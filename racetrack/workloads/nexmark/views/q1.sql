-- All bids, with the price in euros.
SELECT auction, bidder, (0.908 * price)::DECIMAL(23, 3) AS price, "dateTime", extra
FROM source.nexmark_bid
