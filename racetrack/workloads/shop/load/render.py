"""Rendering of pageviews as Kafka messages in a block of memory that librdkafka reads.

A message is JSON text that is put together from three prepared fragments. They are copied eight
bytes at a time, which PyPy compiles to plain loads and stores. Fragments are padded to multiples of
eight bytes; the next fragment overwrites the padding. A million messages cost 0.03 CPU seconds
(joining strings: 0.1, `json.dumps`: 1.1).

With SHOP_PAGEVIEW_BYTES, a field of filler text makes all messages equally long."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from loadgen import workload
from loadgen.padding import Padding, padded
from loadgen.pieces import Pieces
from loadgen.sequence import Stream, mix32

from racetrack.workloads.shop.load.sequence import CHANNELS, page_url
from racetrack.workloads.shop.load.tracers import Reserved

_HEAD_WORDS, _PAGE_WORDS, _STAMP_WORDS, _KEY_WORDS = 3, 10, 2, 2
# Thirteen digits, which is the length of epoch milliseconds from 2001 to 2286, and the closing
# brace.
_STAMP_BYTES = 14
SLOT_BYTES = 8 * (_HEAD_WORDS + _PAGE_WORDS + _STAMP_WORDS)
_MASK = 0xFFFFFFFF


def to_json(user_id: int, url: str, channel: str, received_at_ms: int, size: int = 0) -> bytes:
    """Return a pageview as JSON, padded to `size` bytes (0: not padded). The fast renderer must
    produce the same bytes."""
    fields: dict[str, object] = {
        "user_id": user_id,
        "url": url,
        "channel": channel,
        "received_at": received_at_ms,
    }
    return padded(json.dumps(fields).encode(), size)


def head_piece(user_id: int) -> bytes:
    """Return the text of a pageview up to the url."""
    return b'{"user_id": %d' % user_id


def page_piece(number: int, items: int) -> bytes:
    """Return the text of a pageview from the url up to the timestamp. `number` is the number of a
    (page, channel) pair."""
    url, channel = page_url(number, items), CHANNELS[number % len(CHANNELS)]
    text = f', "url": "{url}", "channel": "{channel}", "received_at": '
    return text.encode()


def stamp_piece(received_at_ms: int) -> bytes:
    """Return the timestamp and the end of a pageview."""
    piece = b"%d}" % received_at_ms
    if len(piece) != _STAMP_BYTES:
        raise ValueError(f"received_at must have thirteen digits, not {received_at_ms}")
    return piece


class Share(NamedTuple):
    """Data for rendering the pageviews of one partition: its random numbers, its users, and, with
    SHOP_KEY_SKEW, the alias table of the users' popularity (`thresholds` and `others`), which
    serves to choose users at random. All except the random numbers is in C memory."""

    stream: Stream
    users: Any
    thresholds: Any = None
    others: Any = None


class Renderer(workload.Renderer):
    """Renders up to `capacity` pageviews at a time into `messages`, an array of rd_kafka_message_t
    for one partition.

    `ffi` must define rd_kafka_message_t. `shop` contains the numbers of users and items. Only
    `share` needs `seed` and `users_by_partition`. Messages are padded to `size` bytes; 0: no
    padding.
    """

    def __init__(
        self,
        ffi: Any,
        shop: Reserved,
        capacity: int,
        seed: int = 0,
        users_by_partition: Sequence[Sequence[int]] = (),
        size: int = 0,
    ) -> None:
        self._ffi = ffi
        self._seed, self._users_by_partition = seed, users_by_partition
        self._shop = shop
        items, users = shop.last_item, shop.last_user
        pages = range((items + users) * len(CHANNELS))
        self._heads = Pieces(ffi, [head_piece(user) for user in range(users + 1)], _HEAD_WORDS)
        self._pages = Pieces(ffi, [page_piece(n, items) for n in pages], _PAGE_WORDS)
        self._keys = Pieces(ffi, [b"%d" % user for user in range(users + 1)], _KEY_WORDS)
        self._size = size
        self._padding = Padding(ffi, size)
        self._block = ffi.new("char[]", (capacity + 1) * max(size, SLOT_BYTES))
        self._stamp = ffi.new("char[16]")
        self._words_type = ffi.typeof("int64_t *")
        self.messages = ffi.new("rd_kafka_message_t[]", capacity)
        self.capacity = capacity
        self.count = 0
        self._at = 0

    def share(self, partition: int) -> Share:
        stream = Stream(self._seed, f"pageviews/{partition}")
        return Share(stream, self.users_array(self._users_by_partition[partition]))

    def users_array(self, users: Sequence[int]) -> Any:
        """Return a partition's users in C memory."""
        return self._ffi.new("int32_t[]", users)

    def clear(self) -> None:
        self.count = 0
        self._at = 0

    def events(self, share: Share, first: int, count: int, due_ms: int) -> None:
        key1, key2 = share.stream.keys(first)
        partition_users = share.users
        user_count = len(partition_users)
        channels = len(CHANNELS)
        page_count = (self._shop.items * channels, self._shop.users * channels)
        page_base = (0, self._shop.last_item * channels)
        self._set_stamp(due_ms)
        at = self._at
        for n in range(first, first + count):
            who = mix32((n + key1) & _MASK)
            what = mix32((n + key2) & _MASK)
            kind = what >> 31
            page = page_base[kind] + (((what & 0x7FFFFFFF) * page_count[kind]) >> 31)
            at = self._put(at, partition_users[(who * user_count) >> 32], page)
        self._at = at

    def one(self, event: tuple[int, int], due_ms: int) -> None:
        """Append a pageview. `event` is a user id and the number of a (page, channel) pair."""
        self._set_stamp(due_ms)
        self._at = self._put(self._at, *event)

    def _set_stamp(self, received_at_ms: int) -> None:
        self._ffi.memmove(self._stamp, stamp_piece(received_at_ms), _STAMP_BYTES)
        words = self._ffi.cast(self._words_type, self._stamp)
        self._stamp0, self._stamp1 = words[0], words[1]

    def _put(self, at: int, user_id: int, page: int) -> int:
        """Write one message at byte `at`, point the next rd_kafka_message_t to it, and return the
        byte position after the message."""
        cast, kind = self._ffi.cast, self._words_type
        start = self._block + at
        source, s = self._heads.words, user_id * _HEAD_WORDS
        w = cast(kind, start)
        w[0], w[1], w[2] = source[s], source[s + 1], source[s + 2]
        length = self._heads.lengths[user_id]
        source, s = self._pages.words, page * _PAGE_WORDS
        w = cast(kind, start + length)
        w[0], w[1], w[2], w[3], w[4] = (
            source[s],
            source[s + 1],
            source[s + 2],
            source[s + 3],
            source[s + 4],
        )
        w[5], w[6], w[7], w[8], w[9] = (
            source[s + 5],
            source[s + 6],
            source[s + 7],
            source[s + 8],
            source[s + 9],
        )
        length += self._pages.lengths[page]
        w = cast(kind, start + length)
        w[0], w[1] = self._stamp0, self._stamp1
        length += _STAMP_BYTES
        if self._size:
            length = self._padding.pad(start, length)
        message = self.messages[self.count]
        message.payload = start
        message.len = length
        message.key = self._keys.text + user_id * (8 * _KEY_WORDS)
        message.key_len = self._keys.lengths[user_id]
        self.count += 1
        return at + int(length)
