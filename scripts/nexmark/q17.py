# Bids and prices per auction and day (UTC). The average is truncated as that of BIGINT.
q17 = (
    bid.view(["auction", "price", DAY_MS])
    .agg_by(
        [
            *bid_counts(),
            agg.min_("min_price = price"),
            agg.max_("max_price = price"),
            agg.sum_("sum_price = price"),
        ],
        ["auction", "day_ms"],
    )
    .update_view([DAY, "avg_price = Math.floorDiv(sum_price, total_bids)"])
    .drop_columns("day_ms")
)
