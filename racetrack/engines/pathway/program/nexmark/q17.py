"""Bids and prices per auction and day (UTC). The average is truncated, as one of BIGINT is."""

import pathway as pw  # type: ignore[import-not-found]

from racetrack.engines.pathway.program.dataflow import Dataflow
from racetrack.engines.pathway.program.nexmark import Events

DAY_MS = 86_400_000
CHEAP, EXPENSIVE = 10_000, 1_000_000


def build(flow: Dataflow, events: Events) -> None:
    """Write the result of the query."""
    price = pw.this.price
    bids = events.bids.select(
        pw.this.auction,
        price,
        day=pw.this.dateTime // DAY_MS,
        rank1=pw.if_else(price < CHEAP, 1, 0),
        rank3=pw.if_else(price >= EXPENSIVE, 1, 0),
    )
    sums = bids.groupby(pw.this.auction, pw.this.day).reduce(
        pw.this.auction,
        pw.this.day,
        bids=pw.reducers.count(),
        rank1=pw.reducers.sum(pw.this.rank1),
        rank3=pw.reducers.sum(pw.this.rank3),
        least=pw.reducers.min(price),
        most=pw.reducers.max(price),
        sum=pw.reducers.sum(price),
    )
    result = sums.select(
        pw.this.auction,
        day=(pw.this.day * DAY_MS).dt.utc_from_timestamp("ms").dt.strftime("%Y-%m-%d"),
        total_bids=pw.this.bids,
        rank1_bids=pw.this.rank1,
        rank2_bids=pw.this.bids - pw.this.rank1 - pw.this.rank3,
        rank3_bids=pw.this.rank3,
        min_price=pw.this.least,
        max_price=pw.this.most,
        avg_price=pw.this["sum"] // pw.this.bids,
        sum_price=pw.this["sum"],
    )
    flow.write("q17", result, "auction", "day")
