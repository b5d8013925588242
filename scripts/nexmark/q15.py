# Bids, bidders and auctions per day (UTC) and rank of the price.
q15 = (
    bid.view(["price", "bidder", "auction", *by_rank("bidder"), *by_rank("auction"), DAY_MS])
    .agg_by([*bid_counts(), distinct_counts("bidder"), distinct_counts("auction")], "day_ms")
    .update_view([DAY, *ZEROS])
    .drop_columns("day_ms")
)
