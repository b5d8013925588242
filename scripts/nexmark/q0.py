# All bids, unchanged.
q0 = bid.view(["auction", "bidder", "price", "dateTime", "extra"])
