# All bids, with the price in euros: 0.908 * price, exactly.
q1 = bid.view(
    [
        "auction",
        "bidder",
        "price = java.math.BigDecimal.valueOf(908 * price, 3)",
        "dateTime",
        "extra",
    ]
)
