# Auctions with the most bids in each window of ten seconds; a window begins every two.
from deephaven import empty_table

# Bids are counted in steps of two seconds first. Each step is in five windows.
steps = bid.view(["auction", "step_ms = lowerBin(dateTime, 2000L)"]).count_by(
    "num", ["auction", "step_ms"]
)
auction_bids = closed(
    steps.join(empty_table(5).view("until_end_ms = 2000L * (ii + 1)"))
    .view(["auction", "ends_ms = step_ms + until_end_ms", "num"])
    .agg_by(agg.sum_("num"), ["auction", "ends_ms"])
)
max_bids = auction_bids.agg_by(agg.max_("maxn = num"), "ends_ms")

# `starttime` is not in the published query: it tells the windows apart.
q5 = (
    auction_bids.natural_join(max_bids, "ends_ms")
    .where("num = maxn")
    .view(["auction", "num", "starttime = ends_ms - 10000L"])
)
