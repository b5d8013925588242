# Bids, bidders and auctions per channel, day (UTC) and rank of the price. `minute` is that of the
# latest bid.
columns = ["channel", "dateTime", "price", "bidder", "auction"]
q16 = (
    bid.view([*columns, *by_rank("bidder"), *by_rank("auction"), DAY_MS])
    .agg_by(
        [
            agg.max_("dateTime"),
            *bid_counts(),
            distinct_counts("bidder"),
            distinct_counts("auction"),
        ],
        ["channel", "day_ms"],
    )
    .update_view(
        [
            DAY,
            "minute = java.time.Instant.ofEpochMilli(dateTime).toString().substring(11, 16)",
            *ZEROS,
        ]
    )
    .drop_columns(["day_ms", "dateTime"])
)
