"""All bids, unchanged."""

import pathway as pw  # type: ignore[import-not-found]

from racetrack.engines.pathway.program.dataflow import Dataflow
from racetrack.engines.pathway.program.nexmark import Events


def build(flow: Dataflow, events: Events) -> None:
    """Write the result of the query."""
    bids = events.bids.select(
        pw.this.auction, pw.this.bidder, pw.this.price, pw.this.dateTime, pw.this.extra
    )
    flow.write_added("q0", bids)
