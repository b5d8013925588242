-- All bids, unchanged.
SELECT auction, bidder, price, "dateTime", extra FROM source.nexmark_bid
