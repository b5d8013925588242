"""Persons, auctions and bids, computed from the seed, a partition, and a number in it.

The distributions are those of nexmark/nexmark. All partitions share one sequence: event n of
partition p has the number n * partitions + p, which decides its kind and the ids that exist."""

from __future__ import annotations

from typing import NamedTuple

from loadgen.clock import NS_PER_MS
from loadgen.schedule import Schedule
from loadgen.sequence import Stream, mix32, pick

from racetrack.workloads.nexmark.load.texts import (
    CHANNELS,
    CITIES,
    FIRST_NAMES,
    HOT_CHANNELS,
    LAST_NAMES,
    PREPARED,
    STATES,
    Texts,
    extra_of,
)

# Of so many events, this many are persons, and this many are auctions; the others are bids.
CYCLE, PERSONS, AUCTIONS = 50, 1, 3
BIDS_FROM = PERSONS + AUCTIONS
FIRST_ID, FIRST_CATEGORY, CATEGORIES = 1000, 10, 5
# Recent auctions and persons that may occur, and ids that may occur before they exist.
AUCTIONS_IN_FLIGHT, ACTIVE_PERSONS, LEAD = 100, 1000, 10
# One id in HOT_STEP is hot. Of the bids, 1 in 2 is not on a hot auction, and 1 in 4 not by a hot
# bidder; of the auctions, 1 in 4 is not of a hot seller.
HOT_STEP, NOT_HOT_AUCTION, NOT_HOT_PERSON = 100, 2, 4
PERSON_BYTES, AUCTION_BYTES, BID_BYTES = 200, 500, 100
# Bytes that the formula for `extra` counts per number, and so for the numbers of each kind.
NUMBER_BYTES = 8
BID_SIZE = 4 * NUMBER_BYTES
# Number of events that contain AUCTIONS_IN_FLIGHT new auctions: the mean life of an auction.
HORIZON_EVENTS = AUCTIONS_IN_FLIGHT * CYCLE // AUCTIONS
# Each partition begins with so many events that are reserved (`tracers.py`).
RESERVED_EVENTS = 3
# Prices are 100 to 100,000,000. Their logarithm is uniformly distributed, in steps of 24 bits.
PRICE_BITS = 12
_COARSE = [100 * 10 ** (6 * n / 2**PRICE_BITS) for n in range(2**PRICE_BITS)]
_FINE = [10 ** (6 * n / 2 ** (2 * PRICE_BITS)) for n in range(2**PRICE_BITS)]
_FOURS = [f"{n:04d}" for n in range(10_000)]
_MASK, _STEP = 0xFFFFFFFF, 0x9E3779B9


class Person(NamedTuple):
    """A person registers. The fields have the names in the messages."""

    id: int
    name: str
    emailAddress: str  # noqa: N815
    creditCard: str  # noqa: N815
    city: str
    state: str
    extra: str


class Auction(NamedTuple):
    """A seller opens an auction, which expires at a time, epoch milliseconds."""

    id: int
    itemName: str  # noqa: N815
    description: str
    initialBid: int  # noqa: N815
    reserve: int
    expires: int
    seller: int
    category: int
    extra: str


class Bid(NamedTuple):
    """A person bids on an auction."""

    auction: int
    bidder: int
    price: int
    channel: str
    url: str
    extra: str


class Share:
    """A partition's share of the events. Auctions expire by the rate in `schedule`."""

    def __init__(self, seed: int, partition: int, partitions: int) -> None:
        self.partition, self.partitions = partition, partitions
        self.stream = Stream(seed, f"nexmark/{partition}")
        self.schedule: Schedule | None = None

    def number(self, n: int) -> int:
        """Return the number of the partition's event n in the sequence of all partitions."""
        return (n - RESERVED_EVENTS) * self.partitions + self.partition

    def horizon_ms(self, n: int) -> int:
        """Return the time that HORIZON_EVENTS take at the rate at which event n is due."""
        rate = self.schedule.numerator_of(n + 1) if self.schedule else 0
        if not self.schedule or not rate:
            return 0
        return HORIZON_EVENTS * self.schedule.denominator // (self.partitions * rate * NS_PER_MS)


def event(share: Share, n: int, texts: Texts, due_ms: int) -> Person | Auction | Bid:
    """Return event n (0-based) of a partition, not one of the RESERVED_EVENTS. `Renderer` computes
    the same bids in bulk."""
    number = share.number(n)
    if is_person(number):
        return person(share, n, texts)
    if is_bid(number):
        return _bid(number, *share.stream.draw(n), texts)
    return auction(share, n, texts, due_ms)


def is_person(number: int) -> bool:
    """Return whether the event with this number in the sequence is a person."""
    return number % CYCLE < PERSONS


def is_bid(number: int) -> bool:
    """Return whether the event with this number in the sequence is a bid."""
    return number % CYCLE >= BIDS_FROM


def bid_numbers(number: int, a: int, b: int) -> tuple[int, int, int, int, tuple[int, int]]:
    """Return a bid's auction, bidder, price, channel (index of `Texts.channels`), and `extra`."""
    # Both alternatives are computed, because PyPy compiles a path for each combination of branches.
    epoch = number // CYCLE
    last = epoch * AUCTIONS + AUCTIONS - 1
    least = max(last - AUCTIONS_IN_FLIGHT, 0)
    is_hot = pick(a, NOT_HOT_AUCTION)
    other = least + pick((a * NOT_HOT_AUCTION) & _MASK, last - least + 1 + LEAD)
    auction = other + is_hot * (last - last % HOT_STEP - other)
    c = mix32(a ^ b)
    d = mix32((c + _STEP) & _MASK)
    is_hot, more = d >> 31, (d * 2) & _MASK
    other = pick(more, CHANNELS)
    channel = other + is_hot * (CHANNELS + pick(more, len(HOT_CHANNELS)) - other)
    e = mix32((d + _STEP) & _MASK)
    extra = extra_of(e, BID_SIZE, BID_BYTES)
    return FIRST_ID + auction, FIRST_ID + person_of(epoch, b, 1), price(c), channel, extra


def person_of(last: int, random32: int, hot: int) -> int:
    """Return the number of a seller or bidder if person `last` is the newest one. Of each HOT_STEP
    persons, the one with the number `hot` is hot."""
    active = min(last + 1, ACTIVE_PERSONS)
    other = last + 1 - active + pick((random32 * NOT_HOT_PERSON) & _MASK, active + LEAD)
    is_hot = (pick(random32, NOT_HOT_PERSON) + NOT_HOT_PERSON - 1) // NOT_HOT_PERSON
    return other + is_hot * (last - last % HOT_STEP + hot - other)


def price(random32: int) -> int:
    """Return a price from the upper 24 of 32 random bits."""
    step = random32 >> (32 - 2 * PRICE_BITS)
    return int(_COARSE[step >> PRICE_BITS] * _FINE[step & (2**PRICE_BITS - 1)] + 0.5)


def _bid(number: int, a: int, b: int, texts: Texts) -> Bid:
    auction, bidder, bid_price, channel, extra = bid_numbers(number, a, b)
    return Bid(auction, bidder, bid_price, *texts.channels[channel], texts.cut(extra))


def auction(share: Share, n: int, texts: Texts, due_ms: int) -> Auction:
    """Return event n (0-based) of a partition, which is an auction."""
    number, (a, b) = share.number(n), share.stream.draw(n)
    horizon_ms = share.horizon_ms(n)
    epoch = number // CYCLE
    c = mix32(a ^ b)
    d = mix32((c + _STEP) & _MASK)
    e = mix32((d + _STEP) & _MASK)
    f = mix32((e + _STEP) & _MASK)
    item, description = texts.items[a >> 20], texts.descriptions[(a >> 8) % PREPARED]
    size = 6 * NUMBER_BYTES + len(item) + len(description)
    initial = price(c)
    return Auction(
        id=FIRST_ID + epoch * AUCTIONS + number % CYCLE - PERSONS,
        itemName=item,
        description=description,
        initialBid=initial,
        reserve=initial + price(d),
        expires=due_ms + 1 + pick(e, max(2 * horizon_ms, 1)),
        seller=FIRST_ID + person_of(epoch, b, 0),
        category=FIRST_CATEGORY + pick(mix32(e ^ b), CATEGORIES),
        extra=texts.cut(extra_of(f, size, AUCTION_BYTES)),
    )


def person(share: Share, n: int, texts: Texts) -> Person:
    """Return event n (0-based) of a partition, which is a person."""
    number, (a, b) = share.number(n), share.stream.draw(n)
    c = mix32(a ^ b)
    d = mix32((c + _STEP) & _MASK)
    e = mix32((d + _STEP) & _MASK)
    first, last = divmod(pick(a, len(FIRST_NAMES) * len(LAST_NAMES)), len(LAST_NAMES))
    name = f"{FIRST_NAMES[first]} {LAST_NAMES[last]}"
    email = texts.emails[b >> 20]
    city, state = divmod(pick(c, len(CITIES) * len(STATES)), len(STATES))
    card = f"{_four(d)} {_four(d << 16)} {_four(e)} {_four(e << 16)}"
    # One by one: PyPy is slow with a generator here, as it is with formats such as `:04d`.
    size = NUMBER_BYTES + len(name) + len(email) + len(card) + len(CITIES[city])
    size += len(STATES[state])
    extra = extra_of(mix32((e + _STEP) & _MASK), size, PERSON_BYTES)
    return Person(
        id=FIRST_ID + number // CYCLE,
        name=name,
        emailAddress=email,
        creditCard=card,
        city=CITIES[city],
        state=STATES[state],
        extra=texts.cut(extra),
    )


def _four(random32: int) -> str:
    """Return four digits of a credit card."""
    return _FOURS[pick(random32 & _MASK, 10_000)]
