"""What happens, as a function of the seed: which user looks at what, who buys what, and what the
shop holds.

Event number n is computed from n, not from event n-1, so a worker that takes over in the middle
goes on with the very event that was next, and the sequence is the same whatever the number of
workers.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

CHANNELS = ("organic search", "paid search", "referral", "social", "display")
CATEGORIES = ("widgets", "gadgets", "doodads", "clearance")
MAX_QUANTITY = 5
MIN_PRICE_CENTS, MAX_PRICE_CENTS = 500, 50_000
MIN_INVENTORY, MAX_INVENTORY = 1_000, 5_000
_MASK = 0xFFFFFFFF


def mix32(x: int) -> int:
    """A well-stirred 32-bit number from a 32-bit number (a bijection).

    Both multipliers are below 2**31, so every product fits a signed 64-bit word and PyPy keeps it
    in a register.
    """
    x ^= x >> 16
    x = (x * 0x21F0AAAD) & _MASK
    x ^= x >> 15
    x = (x * 0x735A2D97) & _MASK
    return x ^ (x >> 15)


def keys_for(seed: int, purpose: str, block: int) -> tuple[int, int]:
    """Two 32-bit keys of a purpose ("pageviews/3") for one block of 2**32 events."""
    digest = hashlib.sha256(f"{seed}/{purpose}/{block}".encode()).digest()
    return int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:8], "big")


def pick(random32: int, count: int) -> int:
    """A number in range(count) from 32 random bits; count <= 2**31."""
    return (random32 * count) >> 32


class Stream:
    """Random numbers by index for one purpose: `draw(n)` gives two independent 32-bit numbers, the
    same for the same n.
    """

    def __init__(self, seed: int, purpose: str) -> None:
        self._seed = seed
        self._purpose = purpose
        self._block = -1
        self._keys = (0, 0)

    def keys(self, n: int) -> tuple[int, int]:
        """The keys of the block that n is in."""
        if n >> 32 != self._block:
            self._block = n >> 32
            self._keys = keys_for(self._seed, self._purpose, self._block)
        return self._keys

    def draw(self, n: int) -> tuple[int, int]:
        """Two 32-bit numbers."""
        first, second = self.keys(n)
        return mix32((n + first) & _MASK), mix32((n + second) & _MASK)


class Pageview(NamedTuple):
    """Who looked at what and came from where; `target` is the number of a page in Pages."""

    user_id: int
    url: str
    channel: str


class Purchase(NamedTuple):
    """Who buys how many of what, having come from where."""

    user_id: int
    item_id: int
    quantity: int
    channel: int


def page_number(random32: int, items: int, users: int) -> int:
    """The number of a (page, channel) pair from 32 random bits: half the views are of products,
    half of profiles.

    Pairs are numbered page by page, products first, len(CHANNELS) to a page.
    """
    channels = len(CHANNELS)
    half = random32 & 0x7FFFFFFF
    if random32 >> 31:
        return items * channels + ((half * (users * channels)) >> 31)
    return (half * (items * channels)) >> 31


def page_url(number: int, items: int) -> str:
    """The url of a (page, channel) pair."""
    page = number // len(CHANNELS)
    return f"/products/{page + 1}" if page < items else f"/profiles/{page - items + 1}"


def pageview(
    stream: Stream, n: int, partition_users: list[int], items: int, users: int
) -> Pageview:
    """Pageview n (0-based) of a partition, whose users are `partition_users`.

    The renderer does the same in bulk.
    """
    who, what = stream.draw(n)
    number = page_number(what, items, users)
    return Pageview(
        partition_users[pick(who, len(partition_users))],
        page_url(number, items),
        CHANNELS[number % len(CHANNELS)],
    )


def purchase(stream: Stream, n: int, items: int, users: int) -> Purchase:
    """Purchase n (0-based)."""
    who, what = stream.draw(2 * n)
    how_many, channel = stream.draw(2 * n + 1)
    return Purchase(
        1 + pick(who, users),
        1 + pick(what, items),
        1 + pick(how_many, MAX_QUANTITY),
        pick(channel, len(CHANNELS)),
    )
