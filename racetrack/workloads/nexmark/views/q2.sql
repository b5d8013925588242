-- Bids on auctions with certain ids.
SELECT auction, price FROM source.nexmark_bid WHERE auction % 123 = 0
