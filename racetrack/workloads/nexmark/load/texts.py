"""Texts of persons, auctions and bids: a function of the seed, prepared once per worker.

Lengths and letters are distributed as in the reference. It draws each text anew; here one
of thousands of prepared texts is drawn, whose lengths are exactly as frequent as they should be."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from loadgen.sequence import Stream, pick

# fmt: off
FIRST_NAMES = (
    "Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter",
)
LAST_NAMES = (
    "Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris",
)
CITIES = (
    "Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle",
    "Kent", "Cheyenne",
)
# fmt: on
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNELS = 10_000  # number of the other channels
# Number of prepared texts of each kind.
PREPARED = 4096
SHORTEST = 3
ITEM_BELOW, DESCRIPTION_BELOW, USER_BELOW, HOST_BELOW, FOLDER_BELOW = 20, 100, 7, 5, 5
# One character in so many is not a letter.
OTHER_ONE_IN = 13
LETTERS = "abcdefghijklmnopqrstuvwxyz"
# `extra` is taken from a text of this length, plus the longest `extra`, from any position.
POOL, LONGEST_EXTRA = 1 << 16, 640
# One channel in so many has no id in its URL.
WITHOUT_ID_ONE_IN = 10


class Texts(NamedTuple):
    """Prepared texts. `channels` are pairs of channel and URL, the hot channels last."""

    items: list[str]
    descriptions: list[str]
    emails: list[str]
    channels: list[tuple[str, str]]
    pool: str

    def cut(self, part: tuple[int, int]) -> str:
        """Return a part of the pool, of which the position and the number of letters are given."""
        start, size = part
        return self.pool[start : start + size]


def prepare(seed: int) -> Texts:
    """Return the texts for a seed."""
    draw = _draws(seed)
    users = [_text(draw, n, USER_BELOW) for n in range(PREPARED)]
    hosts = [_text(draw, pick(next(draw), PREPARED), HOST_BELOW) for _ in range(PREPARED)]
    names = [*(f"channel-{number}" for number in range(CHANNELS)), *HOT_CHANNELS]
    return Texts(
        items=[_text(draw, n, ITEM_BELOW) for n in range(PREPARED)],
        descriptions=[_text(draw, n, DESCRIPTION_BELOW) for n in range(PREPARED)],
        emails=[f"{user}@{host}.com" for user, host in zip(users, hosts)],
        channels=[(name, _url(draw, number)) for number, name in enumerate(names)],
        pool="".join(LETTERS[pick(next(draw), 26)] for _ in range(POOL + LONGEST_EXTRA)),
    )


def extra_of(random32: int, size: int, average_size: int) -> tuple[int, int]:
    """Return a part of the pool, as position and number of letters, that brings an event of `size`
    bytes to `average_size` on average: 80 to 120 % of the missing bytes, as in the reference."""
    missing = average_size - size
    if missing < 0:
        return 0, 0
    delta = (2 * missing + 5) // 10  # a fifth, rounded
    more = ((random32 & 0xFFFF) * 2 * delta) >> 16
    return random32 >> 16, missing - delta + more


def _draws(seed: int) -> Iterator[int]:
    stream = Stream(seed, "nexmark texts")
    for n in count():
        yield from stream.draw(n)


def _text(draw: Iterator[int], n: int, below: int, other: str = " ") -> str:
    """Return a text of 3 to `below` - 1 characters. The length of text n is the one at its place if
    all PREPARED texts are ordered by length. Spaces at the ends are removed."""
    length = SHORTEST + n * (below - SHORTEST) // PREPARED
    characters = (
        other if pick(next(draw), OTHER_ONE_IN) == 0 else LETTERS[pick(next(draw), 26)]
        for _ in range(length)
    )
    return "".join(characters).strip()


def _url(draw: Iterator[int], channel: int) -> str:
    folders = "/".join(_text(draw, pick(next(draw), PREPARED), FOLDER_BELOW, "_") for _ in range(3))
    url = f"https://www.nexmark.com/{folders}/item.htm?query=1"
    if channel < CHANNELS and pick(next(draw), WITHOUT_ID_ONE_IN):
        url += f"&channel_id={_channel_id(channel)}"
    return url


def _channel_id(channel: int) -> int:
    """Return the absolute value of the channel's 32 bits in reverse order."""
    reverse = int(f"{channel:032b}"[::-1], 2)
    return abs(reverse - 2**32) if reverse >= 2**31 else reverse
