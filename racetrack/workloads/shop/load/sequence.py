"""The sequences of pageviews and purchases. Event n of a sequence is computed from the seed and
n."""

from __future__ import annotations

from typing import NamedTuple

from loadgen.popularity import Popularity
from loadgen.sequence import Stream, pick

CHANNELS = ("organic search", "paid search", "referral", "social", "display")
CATEGORIES = ("widgets", "gadgets", "doodads", "clearance")
MAX_QUANTITY = 5
MIN_PRICE_CENTS, MAX_PRICE_CENTS = 500, 50_000
MIN_INVENTORY, MAX_INVENTORY = 1_000, 5_000


class Pageview(NamedTuple):
    """A pageview."""

    user_id: int
    url: str
    channel: str


class Purchase(NamedTuple):
    """A purchase, with the channel through which the buyer came."""

    user_id: int
    item_id: int
    quantity: int
    channel: int


def page_number(random32: int, items: Popularity, users: Popularity) -> int:
    """Return the number of a random (page, channel) pair, chosen by 32 random bits. Half of the
    pages viewed are products, half are profiles.

    Pairs are numbered page by page, with len(CHANNELS) pairs per page; products come first."""
    channels = len(CHANNELS)
    pages, first = (users, items.count) if random32 >> 31 else (items, 0)
    whole = (random32 & 0x7FFFFFFF) * pages.count * channels
    page, channel = divmod(whole >> 31, channels)
    page = pages.settle(page, (whole & 0x7FFFFFFF) << 1)
    return (first + page) * channels + channel


def page_url(number: int, items: int) -> str:
    """Return the url of a (page, channel) pair."""
    page = number // len(CHANNELS)
    return f"/products/{page + 1}" if page < items else f"/profiles/{page - items + 1}"


def pageview(
    stream: Stream,
    n: int,
    partition_users: list[int],
    items: Popularity,
    users: Popularity,
    viewers: Popularity,
) -> Pageview:
    """Return pageview n (0-based) of a partition. Its users are `partition_users`, and their
    popularity is `viewers`. `Renderer` computes the same pageviews in bulk."""
    who, what = stream.draw(n)
    number = page_number(what, items, users)
    return Pageview(
        partition_users[viewers.pick(who)],
        page_url(number, items.count),
        CHANNELS[number % len(CHANNELS)],
    )


def purchase(stream: Stream, n: int, items: Popularity, users: Popularity) -> Purchase:
    """Return purchase n (0-based)."""
    who, what = stream.draw(2 * n)
    how_many, channel = stream.draw(2 * n + 1)
    return Purchase(
        1 + users.pick(who),
        1 + items.pick(what),
        1 + pick(how_many, MAX_QUANTITY),
        pick(channel, len(CHANNELS)),
    )
