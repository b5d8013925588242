# The winning bid of each auction: the earliest of those with the highest price.
of_auction = [
    "itemName",
    "description",
    "initialBid",
    "reserve",
    "dateTime",
    "expires",
    "seller",
    "category",
    "extra",
]
of_bid = ["bidder", "price", "bid_dateTime", "bid_extra"]

q9 = (
    bid.view(
        [
            "auction",
            "bidder",
            "price",
            "bid_dateTime = dateTime",
            "bid_extra = extra",
            "descending = -price",
        ]
    )
    .join(auction, "auction = id", of_auction)
    .where(["bid_dateTime >= dateTime", "bid_dateTime <= expires"])
    .agg_by(
        agg.sorted_first(["descending", "bid_dateTime"], [*of_auction, *of_bid]),
        "auction",
    )
    .update_view("id = auction")
)
