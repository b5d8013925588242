# Bids with their auctions, for category 10.
q20 = bid.view(
    [
        "auction",
        "bidder",
        "price",
        "channel",
        "url",
        "bid_dateTime = dateTime",
        "bid_extra = extra",
    ]
).join(
    auction.where("category = 10"),
    "auction = id",
    [
        "itemName",
        "description",
        "initialBid",
        "reserve",
        "auction_dateTime = dateTime",
        "expires",
        "seller",
        "category",
        "auction_extra = extra",
    ],
)
