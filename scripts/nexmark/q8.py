# Persons who opened an auction in the window of ten seconds in which they registered.
registered = person.view(["id", "name", "stime = lowerBin(dateTime, 10000L)"]).select_distinct(
    ["id", "name", "stime"]
)
sellers = auction.view(["id = seller", "stime = lowerBin(dateTime, 10000L)"]).select_distinct(
    ["id", "stime"]
)

q8 = closed(
    registered.join(sellers, ["id", "stime"]).view(
        ["id", "name", "stime", "ends_ms = stime + 10000L"]
    )
).view(["id", "name", "stime"])
