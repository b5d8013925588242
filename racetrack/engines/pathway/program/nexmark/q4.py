"""Average of the winning prices in each category. It is truncated, as an average of BIGINT is."""

import pathway as pw  # type: ignore[import-not-found]

from racetrack.engines.pathway.program.dataflow import Dataflow
from racetrack.engines.pathway.program.nexmark import Events


def build(flow: Dataflow, events: Events) -> None:
    """Write the result of the query."""
    auctions, bids = events.auctions, events.bids
    offers = auctions.join(bids, auctions.id_ == bids.auction).select(
        auctions.id_,
        auctions.category,
        bids.price,
        in_time=(bids.dateTime >= auctions.dateTime) & (bids.dateTime <= auctions.expires),
    )
    winning = (
        offers.filter(pw.this.in_time)
        .groupby(pw.this.id_, pw.this.category)
        .reduce(pw.this.category, final=pw.reducers.max(pw.this.price))
    )
    sums = winning.groupby(pw.this.category).reduce(
        id_=pw.this.category, sum=pw.reducers.sum(pw.this.final), auctions=pw.reducers.count()
    )
    flow.write("q4", sums.select(pw.this.id_, final=pw.this["sum"] // pw.this.auctions), "id_")
