"""Rendering of ad events as Kafka messages in a block of memory that librdkafka reads.

As in `racetrack/workloads/shop/load/render.py`, a message is JSON text put together from prepared
fragments. It has about 250 bytes in four fragments: user and page; ad; ad type and event type; time
and everything after it. The last fragment is rendered once per millisecond. Preparing whole
messages would not be faster, and there are 150 million combinations.

With ADS_EVENT_BYTES, a field of filler text makes all messages equally long."""

from __future__ import annotations

import json
from typing import Any

from loadgen import workload
from loadgen.padding import Padding, padded
from loadgen.pieces import Pieces
from loadgen.popularity import Popularity
from loadgen.sequence import Stream, mix32

from racetrack.workloads.ads.load.sequence import (
    AD_TYPES,
    EVENT_TYPES,
    KINDS,
    SKEW_MS,
    AdEvent,
    Ids,
    skew_ms,
)
from racetrack.workloads.ads.load.tracers import Reserved

# Space for each of the four fragments, in words of eight bytes; and their exact lengths in bytes.
# The third fragment (ad type and event type) has no exact length. The others have, because all
# UUIDs are equally long and times have thirteen digits.
_HEAD_WORDS, _AD_WORDS, _KIND_WORDS, _TAIL_WORDS = 13, 7, 10, 5
_HEAD_BYTES, _AD_BYTES, _TAIL_BYTES = 100, 49, 39
SLOT_BYTES = 8 * (_HEAD_WORDS + _AD_WORDS + _KIND_WORDS + _TAIL_WORDS)
_MASK = 0xFFFFFFFF
IP_ADDRESS = "1.2.3.4"
VIEW = EVENT_TYPES.index("view")  # number of a pair of the first ad type and this event type


def to_json(event: AdEvent, event_time_ms: int, size: int = 0) -> bytes:
    """Return an event as JSON, padded to `size` bytes (0: not padded). The fast renderer must
    produce the same bytes."""
    fields = {**event._asdict(), "event_time": event_time_ms, "ip_address": IP_ADDRESS}
    return padded(json.dumps(fields).encode(), size)


def head_piece(user_id: str, page_id: str) -> bytes:
    """Return the text of an event up to the page."""
    return f'{{"user_id": "{user_id}", "page_id": "{page_id}'.encode()


def ad_piece(ad_id: str) -> bytes:
    """Return the text from the page up to the ad."""
    return f'", "ad_id": "{ad_id}'.encode()


def kind_piece(kind: int) -> bytes:
    """Return the text from the ad up to the time. `kind` is the number of a pair of ad type and
    event type."""
    ad_type, event_type = divmod(kind, len(EVENT_TYPES))
    types = f'"ad_type": "{AD_TYPES[ad_type]}", "event_type": "{EVENT_TYPES[event_type]}"'
    return f'", {types}, "event_time": '.encode()


def tail_piece(event_time_ms: int) -> bytes:
    """Return the time and the end of an event."""
    piece = f'{event_time_ms}, "ip_address": "{IP_ADDRESS}"}}'.encode()
    if len(piece) != _TAIL_BYTES:
        raise ValueError(f"event_time must have thirteen digits, not {event_time_ms}")
    return piece


class Tails:
    """Cache of the last fragment of messages (`tail_piece`), which depends on the event's time. It
    is a ring with one slot per millisecond, and has more slots than there are milliseconds between
    the times of events rendered together."""

    SLOTS = 4 * SKEW_MS

    def __init__(self, ffi: Any) -> None:
        self._ffi = ffi
        self._pieces = Pieces(ffi, [b""] * self.SLOTS, _TAIL_WORDS)
        self._times_ms = [-1] * self.SLOTS
        self.words = self._pieces.words

    def slot(self, time_ms: int) -> int:
        """Return the slot of the fragment for this time; render it if it is missing."""
        slot = time_ms % self.SLOTS
        if self._times_ms[slot] != time_ms:
            start = self._pieces.text + slot * 8 * _TAIL_WORDS
            self._ffi.memmove(start, tail_piece(time_ms), _TAIL_BYTES)
            self._times_ms[slot] = time_ms
        return slot


class Renderer(workload.Renderer):
    """Renders up to `capacity` events at a time into `messages`, an array of rd_kafka_message_t for
    one partition. Messages have no keys. `ffi` must define rd_kafka_message_t.
    Without a `popularity` all ads are equally popular; reserved ads, one per partition, are used
    by tracer events only. A message needs at most `slot_bytes`."""

    def __init__(
        self,
        ffi: Any,
        ids: Ids,
        capacity: int,
        seed: int = 0,
        partitions: int = 0,
        *,
        with_skew: bool = False,
        popularity: Popularity | None = None,
        slot_bytes: int = SLOT_BYTES,
    ) -> None:
        self._ffi, self._seed, self._with_skew = ffi, seed, with_skew
        heads = [head_piece(user, page) for user in ids.users for page in ids.pages]
        self._head_count, self._ad_count = len(heads), len(ids.ads)
        self._heads = Pieces(ffi, heads, _HEAD_WORDS)
        every_ad = (*ids.ads, *Reserved.of(partitions).ads)
        self._ads = Pieces(ffi, [ad_piece(ad) for ad in every_ad], _AD_WORDS)
        self._kinds = Pieces(ffi, [kind_piece(kind) for kind in range(KINDS)], _KIND_WORDS)
        self._tails = Tails(ffi)
        self._stands: Any = None
        self._others: Any = None
        if popularity:
            self._stands = ffi.new("uint32_t[]", popularity.thresholds)
            self._others = ffi.new("int32_t[]", popularity.others)
        self._block = ffi.new("char[]", (capacity + 1) * slot_bytes)
        self._words_type = ffi.typeof("int64_t *")
        self.messages = ffi.new("rd_kafka_message_t[]", capacity)
        self.capacity = capacity
        self.count = 0
        self._at = 0

    def share(self, partition: int) -> Stream:
        return Stream(self._seed, f"ad events/{partition}")

    def clear(self) -> None:
        self.count = 0
        self._at = 0

    def events(self, share: Stream, first: int, count: int, due_ms: int) -> None:
        key1, key2 = share.keys(first)
        heads, ads = self._head_count, self._ad_count
        stands, others = self._stands, self._others
        tails, tail, at = self._tails, self._tails.slot(due_ms), self._at
        for n in range(first, first + count):
            who, what = mix32((n + key1) & _MASK), mix32((n + key2) & _MASK)
            if self._with_skew:
                tail = tails.slot(due_ms + skew_ms(who, what, heads, ads))
            # The same computation as in `ad_and_kind` of sequence.py.
            kind = (((what * ads) & _MASK) * KINDS) >> 32
            ad = (what * ads) >> 32
            if stands is not None and mix32(who ^ what) >= stands[ad]:
                ad = others[ad]
            at = self._put(at, (who * heads) >> 32, ad, kind, tail)
        self._at = at

    def one(self, event: int, due_ms: int) -> None:
        """Append a tracer event: a view of the reserved ad with this number, at its due time."""
        tail = self._tails.slot(due_ms)
        self._at = self._put(self._at, 0, self._ad_count + event, VIEW, tail)

    def _put(self, at: int, head: int, ad: int, kind: int, tail: int) -> int:
        """Write one message at byte `at`, point the next rd_kafka_message_t to it, and return the
        byte position after the message."""
        cast, words = self._ffi.cast, self._words_type
        start = self._block + at
        s = self._heads.words + head * _HEAD_WORDS
        w = cast(words, start)
        w[0], w[1], w[2], w[3], w[4], w[5], w[6] = s[0], s[1], s[2], s[3], s[4], s[5], s[6]
        w[7], w[8], w[9], w[10], w[11], w[12] = s[7], s[8], s[9], s[10], s[11], s[12]
        s = self._ads.words + ad * _AD_WORDS
        w = cast(words, start + _HEAD_BYTES)
        w[0], w[1], w[2], w[3], w[4], w[5], w[6] = s[0], s[1], s[2], s[3], s[4], s[5], s[6]
        s = self._kinds.words + kind * _KIND_WORDS
        w = cast(words, start + _HEAD_BYTES + _AD_BYTES)
        w[0], w[1], w[2], w[3], w[4] = s[0], s[1], s[2], s[3], s[4]
        w[5], w[6], w[7], w[8], w[9] = s[5], s[6], s[7], s[8], s[9]
        length = _HEAD_BYTES + _AD_BYTES + self._kinds.lengths[kind]
        s = self._tails.words + tail * _TAIL_WORDS
        w = cast(words, start + length)
        w[0], w[1], w[2], w[3], w[4] = s[0], s[1], s[2], s[3], s[4]
        length += _TAIL_BYTES
        message = self.messages[self.count]
        message.payload = start
        message.len = length
        self.count += 1
        return at + int(length)


class PaddedRenderer(Renderer):
    """Renders messages of `size` bytes. `Renderer` does without, so that it needs no further check
    per message."""

    def __init__(self, ffi: Any, *every: Any, size: int, **skews: Any) -> None:
        super().__init__(ffi, *every, slot_bytes=max(size, SLOT_BYTES), **skews)
        self._padding = Padding(ffi, size)

    def _put(self, at: int, head: int, ad: int, kind: int, tail: int) -> int:
        message, start = self.messages[self.count], self._block + at
        length = super()._put(at, head, ad, kind, tail) - at
        length = self._padding.pad(start, length)
        message.len = length
        return at + length
