# The ten highest bids on each auction.
texts = ["channel", "url", "extra"]
best = "java.util.Arrays.stream(rankDescending(price)).limit(10).asLongStream().toArray()"

# `best` are the positions of the highest bids among the auction's. Texts that are taken from there
# have no type.
q19 = (
    bid.group_by("auction")
    .update(f"best = {best}")
    .view(
        [
            "auction",
            *(
                f"{column} = {column}.subVectorByPositions(best)"
                for column in ("bidder", "price", "dateTime", *texts)
            ),
            "rank_number = java.util.stream.LongStream.rangeClosed(1, best.length).toArray()",
        ]
    )
    .ungroup()
    .update_view([f"{column} = (String) {column}" for column in texts])
)
