"""Auctions of category 10 by sellers in three states."""

import pathway as pw  # type: ignore[import-not-found]

from racetrack.engines.pathway.program.dataflow import Dataflow
from racetrack.engines.pathway.program.nexmark import Events


def build(flow: Dataflow, events: Events) -> None:
    """Write the result of the query."""
    state = pw.this.state
    sellers = events.persons.filter((state == "OR") | (state == "ID") | (state == "CA"))
    auctions = events.auctions.filter(pw.this.category == 10)
    sold = auctions.join(sellers, auctions.seller == sellers.id_).select(
        sellers["name"], sellers.city, sellers.state, auctions.id_
    )
    flow.write_added("q3", sold)
