# The latest bid of each bidder on each auction.
q18 = bid.agg_by(
    agg.sorted_last("dateTime", ["price", "channel", "url", "dateTime", "extra"]),
    ["bidder", "auction"],
)
