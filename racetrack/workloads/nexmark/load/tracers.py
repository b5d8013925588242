"""Tracer events: bids on reserved auctions, or auctions of a reserved seller, used to measure view
lag (docs/views.md).

Each partition has a seller, two auctions, a bidder and a channel of its own, which no other event
uses; it begins with the seller and the auctions. Tracer event n (0-based) belongs to partition
n // 2 % partitions and is a bid on one of the auctions in turn. Its price is its number among the
tracer events on that auction, so the highest price in a view shows how many of them it contains.
For the query q3, which reads no bids, tracer events are auctions, whose ids show the same."""

from __future__ import annotations

from typing import NamedTuple

from loadgen.tracers import partition_of

from racetrack.workloads.nexmark.load.sequence import FIRST_CATEGORY, Auction, Bid, Person

# Reserved ids are multiples of SPACE, so that no other event has them, and the ids of tracer
# auctions follow that of the partition's first auction. Auctions' ids are multiples of 123, too,
# since q2 has only these.
SPACE, Q2_STEP = 2**32, 123
# Categories of the second auctions: a group of its own for each partition in q4.
FIRST_OWN_CATEGORY = 1000
NEVER_MS = 4_102_444_800_000  # the year 2100
STATE, CITY = "OR", "Portland"


class Reserved(NamedTuple):
    """Ids and names that are reserved in a partition."""

    partition: int
    seller: int
    bidder: int
    auctions: tuple[int, int]
    name: str

    @classmethod
    def of(cls, partition: int) -> Reserved:
        first = Q2_STEP * SPACE * (2 * partition + 1)
        person = SPACE * (2 * partition + 1)
        auctions = first, first + Q2_STEP * SPACE
        return cls(partition, person, person + SPACE, auctions, f"tracer-{partition + 1}")

    def event(self, n: int) -> Person | Auction:
        """Return event n (0-based) of the partition: the seller, then the two auctions."""
        if n == 0:
            email, card = f"{self.name}@nexmark.com", "0000 0000 0000 0000"
            return Person(self.seller, self.name, email, card, CITY, STATE, "")
        categories = FIRST_CATEGORY, FIRST_OWN_CATEGORY + self.partition
        return self.auction(self.auctions[n - 1], categories[n - 1])

    def auction(self, number: int, category: int) -> Auction:
        """Return an auction of the seller that never expires."""
        return Auction(number, self.name, "", 1, 1, NEVER_MS, self.seller, category, "")

    def bid(self, which: int, price: int) -> Bid:
        """Return a bid on one of the two auctions."""
        url = f"https://www.nexmark.com/{self.name}/bid/{which + 1}/item.htm?query=1"
        return Bid(self.auctions[which], self.bidder, price, self.name, url, "")


def tracer(n: int, partitions: int, *, is_auction: bool) -> tuple[int, Auction | Bid]:
    """Return tracer event n (0-based): its partition and content."""
    reserved = Reserved.of(partition_of(n, partitions))
    which, earlier = n % 2, n // (2 * partitions)
    if is_auction:
        number = reserved.auctions[0] + 2 * earlier + which + 1
        return reserved.partition, reserved.auction(number, FIRST_CATEGORY)
    return reserved.partition, reserved.bid(which, earlier + 1)
