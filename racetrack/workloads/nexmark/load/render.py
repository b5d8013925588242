"""Rendering of persons, auctions and bids as Kafka messages in a block of memory that librdkafka
reads.

Of 50 events 46 are bids. Their JSON text is put together in C memory, from fragments that are
prepared once, and from digits. Persons and auctions become Python texts first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from loadgen import workload
from loadgen.pieces import Pieces
from loadgen.schedule import Schedule
from loadgen.sequence import mix32

from racetrack.workloads.nexmark.load.sequence import (
    RESERVED_EVENTS,
    Auction,
    Bid,
    Person,
    Share,
    auction,
    bid_numbers,
    is_bid,
    is_person,
    person,
)
from racetrack.workloads.nexmark.load.texts import Texts
from racetrack.workloads.nexmark.load.tracers import Reserved

# Name of the nested record of each kind of event, by `event_type`.
RECORDS = {Person: "person", Auction: "auction", Bid: "bid"}
# Every message fits into so many bytes.
SLOT_BYTES = 1024
_HEAD, _BIDDER, _PRICE = b'{"event_type": 2, "bid": {"auction": ', b', "bidder": ', b', "price": '
# Space for fragments in words of eight bytes: of the three above, a channel with its URL, `extra`,
# and the end of a message.
_LABEL_WORDS, _CHANNEL_WORDS, _EXTRA_WORDS, _TAIL_WORDS = 5, 16, 11, 4
_TAIL_BYTES = 30
_MASK = 0xFFFFFFFF


def message(row: Person | Auction | Bid, due_ms: int) -> bytes:
    """Return an event as JSON. The fast renderer must produce the same bytes."""
    number = [*RECORDS].index(type(row))
    fields = {"event_type": number, RECORDS[type(row)]: row._asdict(), "dateTime": due_ms}
    return json.dumps(fields).encode()


def person_text(of: Person, due_ms: int) -> bytes:
    """Return the same text as `message`, faster."""
    return (
        f'{{"event_type": 0, "person": {{"id": {of.id}, "name": "{of.name}", "emailAddress":'
        f' "{of.emailAddress}", "creditCard": "{of.creditCard}", "city": "{of.city}", "state":'
        f' "{of.state}", "extra": "{of.extra}"}}, "dateTime": {due_ms}}}'
    ).encode()


def auction_text(of: Auction, due_ms: int) -> bytes:
    """Return the same text as `message`, faster."""
    return (
        f'{{"event_type": 1, "auction": {{"id": {of.id}, "itemName": "{of.itemName}",'
        f' "description": "{of.description}", "initialBid": {of.initialBid}, "reserve":'
        f' {of.reserve}, "expires": {of.expires}, "seller": {of.seller}, "category":'
        f' {of.category}, "extra": "{of.extra}"}}, "dateTime": {due_ms}}}'
    ).encode()


def channel_piece(channel: str, url: str) -> bytes:
    """Return the text of a bid from its price up to `extra`."""
    return f', "channel": "{channel}", "url": "{url}", "extra": "'.encode()


def tail_piece(due_ms: int) -> bytes:
    """Return the end of a bid, from the end of `extra`."""
    piece = f'"}}, "dateTime": {due_ms}}}'.encode()
    if len(piece) != _TAIL_BYTES:
        raise ValueError(f"dateTime must have thirteen digits, not {due_ms}")
    return piece


class Digits:
    """Writes numbers four digits at a time, without branches that depend on the number: PyPy would
    compile a path for each combination of them."""

    BASE = 10_000

    def __init__(self, ffi: Any) -> None:
        first = [str(n).encode() if n else b"" for n in range(self.BASE)]
        # The last digits if there are no others, and then those if there are.
        last = [b"0", *first[1:], *(f"{n:04d}".encode() for n in range(self.BASE))]
        self._first, self._first_widths = _table(ffi, first)
        self._last, self._last_widths = _table(ffi, last)
        self._cast, self._type = ffi.cast, ffi.typeof("int32_t *")

    def put(self, start: Any, number: int) -> int:
        """Write a number at `start` and return its length. Up to eight more bytes may change."""
        high, low = number // self.BASE, number % self.BASE
        if high < self.BASE:
            self._cast(self._type, start)[0] = self._first[high]
            length = int(self._first_widths[high])
        else:  # rare
            length = self.put(start, high)
        low += (-high >> 63) & self.BASE  # if `high` is not 0
        self._cast(self._type, start + length)[0] = self._last[low]
        return length + int(self._last_widths[low])


def _table(ffi: Any, texts: Sequence[bytes]) -> tuple[Any, Any]:
    """Return texts of up to four bytes as words, and their lengths."""
    words = [int.from_bytes(text.ljust(4, b"\0"), "little") for text in texts]
    return ffi.new("int32_t[]", words), ffi.new("uint8_t[]", list(map(len, texts)))


class Renderer(workload.Renderer):
    """Renders up to `capacity` events at a time into `messages`, an array of rd_kafka_message_t for
    one partition. Messages have no keys. `ffi` must define rd_kafka_message_t."""

    def __init__(self, ffi: Any, texts: Texts, capacity: int, seed: int, partitions: int) -> None:
        self._ffi, self._texts = ffi, texts
        self._seed, self._partitions = seed, partitions
        self._labels = Pieces(ffi, [_HEAD, _BIDDER, _PRICE], _LABEL_WORDS)
        pieces = [channel_piece(*channel) for channel in texts.channels]
        self._channels = Pieces(ffi, pieces, _CHANNEL_WORDS)
        self._pool = ffi.new("char[]", texts.pool.encode())
        self._tail = ffi.new("int64_t[]", _TAIL_WORDS)
        self._tail_ms = -1
        self._digits = Digits(ffi)
        self._block = ffi.new("char[]", (capacity + 1) * SLOT_BYTES)
        self._words_type = ffi.typeof("int64_t *")
        self.messages = ffi.new("rd_kafka_message_t[]", capacity)
        self.capacity = capacity
        self.count = 0
        self._at = 0

    def share(self, partition: int) -> Share:
        return Share(self._seed, partition, self._partitions)

    def follow(self, share: Share, schedule: Schedule) -> None:
        share.schedule = schedule

    def clear(self) -> None:
        self.count = 0
        self._at = 0

    def events(self, share: Share, first: int, count: int, due_ms: int) -> None:
        key1, key2 = share.stream.keys(first)
        if self._tail_ms != due_ms:
            self._ffi.memmove(self._tail, tail_piece(due_ms), _TAIL_BYTES)
            self._tail_ms = due_ms
        at, place = self._at, self.count - first
        # Each kind has a loop of its own: PyPy gives up on a path that contains them all.
        persons, auctions = [], []
        for n in range(first, first + count):
            number = share.number(n)
            if n < RESERVED_EVENTS:
                text = message(Reserved.of(share.partition).event(n), due_ms)
                at = self._put(at, place + n, text)
            elif is_bid(number):
                a, b = mix32((n + key1) & _MASK), mix32((n + key2) & _MASK)
                at = self._put_bid(at, place + n, number, a, b)
            elif is_person(number):
                persons.append(n)
            else:
                auctions.append(n)
        for n in auctions:
            text = auction_text(auction(share, n, self._texts, due_ms), due_ms)
            at = self._put(at, place + n, text)
        for n in persons:
            at = self._put(at, place + n, person_text(person(share, n, self._texts), due_ms))
        self._at = at
        self.count += count

    def one(self, event: Auction | Bid, due_ms: int) -> None:
        """Append a tracer event."""
        self._at = self._put(self._at, self.count, message(event, due_ms))
        self.count += 1

    def _put(self, at: int, place: int, text: bytes) -> int:
        """Write message `place` at byte `at`; return the byte position after it."""
        start = self._block + at
        self._ffi.memmove(start, text, len(text))
        return self._end(start, at, place, len(text))

    def _put_bid(self, at: int, place: int, number: int, a: int, b: int) -> int:
        """Write the bid with this number in the sequence, and these random numbers, as message
        `place` at byte `at`; return the byte position after it. Each fragment is copied with its
        whole width; the next one overwrites the surplus."""
        auction, bidder, price, channel, (extra, size) = bid_numbers(number, a, b)
        cast, words, digits = self._ffi.cast, self._words_type, self._digits
        start, s = self._block + at, self._labels.words
        w = cast(words, start)
        w[0], w[1], w[2], w[3], w[4] = s[0], s[1], s[2], s[3], s[4]
        length = len(_HEAD) + digits.put(start + len(_HEAD), auction)
        w = cast(words, start + length)
        w[0], w[1] = s[_LABEL_WORDS], s[_LABEL_WORDS + 1]
        length += len(_BIDDER)
        length += digits.put(start + length, bidder)
        w = cast(words, start + length)
        w[0], w[1] = s[2 * _LABEL_WORDS], s[2 * _LABEL_WORDS + 1]
        length += len(_PRICE)
        length += digits.put(start + length, price)
        s = self._channels.words + channel * _CHANNEL_WORDS
        w = cast(words, start + length)
        w[0], w[1], w[2], w[3], w[4], w[5], w[6] = s[0], s[1], s[2], s[3], s[4], s[5], s[6]
        w[7], w[8], w[9], w[10], w[11], w[12] = s[7], s[8], s[9], s[10], s[11], s[12]
        w[13], w[14], w[15] = s[13], s[14], s[15]
        length += self._channels.lengths[channel]
        s = cast(words, self._pool + extra)
        w = cast(words, start + length)
        w[0], w[1], w[2], w[3], w[4], w[5], w[6] = s[0], s[1], s[2], s[3], s[4], s[5], s[6]
        w[7], w[8], w[9], w[10] = s[7], s[8], s[9], s[10]
        length += size
        s, w = self._tail, cast(words, start + length)
        w[0], w[1], w[2], w[3] = s[0], s[1], s[2], s[3]
        return self._end(start, at, place, length + _TAIL_BYTES)

    def _end(self, start: Any, at: int, place: int, length: int) -> int:
        """Point rd_kafka_message_t `place` to the message at `start`; return the byte position
        after it."""
        message = self.messages[place]
        message.payload = start
        message.len = length
        return at + int(length)
