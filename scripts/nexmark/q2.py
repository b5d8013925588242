# Bids on auctions with certain ids.
q2 = bid.where("auction % 123 = 0").view(["auction", "price"])
