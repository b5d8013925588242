# Average of the winning prices in each category, truncated as that of BIGINT.
q4 = (
    bid.view(["auction", "price", "bid_dateTime = dateTime"])
    .join(auction, "auction = id", ["category", "dateTime", "expires"])
    .where(["bid_dateTime >= dateTime", "bid_dateTime <= expires"])
    .agg_by(agg.max_("price"), ["auction", "category"])
    .agg_by([agg.sum_("price"), agg.count_("auctions")], "category")
    .view(["id = category", "final_ = Math.floorDiv(price, auctions)"])
)
