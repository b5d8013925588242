# Highest bids in each window of ten seconds. As published, both ends of a window belong to it when
# its highest price is searched among the bids.
max_prices = closed(
    bid.view(["price", "ends_ms = lowerBin(dateTime, 10000L) + 10000L"]).agg_by(
        agg.max_("price"), "ends_ms"
    )
)

# `where_in` scans the bids once per window. A join would maintain an index of all bids by price.
q7 = (
    bid.where_in(max_prices.select_distinct("price"), "price")
    .join(max_prices, "price", "ends_ms")
    .where(["dateTime >= ends_ms - 10000L", "dateTime <= ends_ms"])
    .view(["auction", "bidder", "price", "dateTime", "extra"])
)
