# Bids with the folders in their URLs. The slashes that are added make folders of short URLs empty.
q22 = bid.view(
    [
        "auction",
        "bidder",
        "price",
        "channel",
        *(f"dir{n} = url.concat(`//////`).split(`/`, 7)[{n + 2}]" for n in (1, 2, 3)),
    ]
)
