# Auctions of category 10 by sellers in three states.
q3 = (
    auction.where("category = 10")
    .join(person.where("state in `OR`, `ID`, `CA`"), "seller = id", ["name", "city", "state"])
    .view(["name", "city", "state", "id"])
)
