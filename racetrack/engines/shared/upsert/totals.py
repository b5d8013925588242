"""Follows upsert topics whose rows are totals that only grow.

Every EVERY_S seconds, all new rows are read if they are few; otherwise only the newest row of each
key. This is enough, because a total includes all earlier ones, and it is necessary, because reading
thousands of rows per second would take CPU time from the measured engine.
"""

import threading
import time
from collections.abc import Callable, Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from racetrack.engines.shared.upsert.topics import Span, Written

# Time between two samples. Until the next sample, a total is assumed not to grow, so a computed age
# is never too low. It may be too high by up to EVERY_S if the engine counts as fast as events
# arrive. While the engine reduces a backlog, the age may be too high by the span of due times that
# the engine counts in EVERY_S.
EVERY_S = 0.2
# If a topic has at most this many new rows, all of them are read.
FEW = 300
# `Known.newest` reads backwards in steps: first this many messages, then each step reads
# FURTHER_BACK times as many as the one before.
FIRST_STEP, FURTHER_BACK = 100, 4


class Source(Protocol):
    """A source of topics; see `racetrack.engines.shared.upsert.topics.Topics`."""

    def offsets(
        self, names: Collection[str], stop: threading.Event | None = None
    ) -> Mapping[str, Span]:
        """Return the oldest available offset and the end offset of each topic."""

    def rows_between(self, spans: Mapping[str, Span]) -> Mapping[str, list[Written]]:
        """Return all rows of each topic in its span. The same requests read all topics."""

    def newest(self, name: str, span: Span, but: Container[bytes]) -> list[Written]:
        """Return the newest row of each key in a span of a topic, except for the keys `but`."""


@dataclass
class Known:
    """State of reading one topic."""

    keys: int  # largest number of different keys in the topic
    position: int = 0  # offset up to which the topic has been read
    totals: dict[bytes, int] = field(default_factory=dict)  # latest total of each key

    def unread(self, begin: int, end: int) -> Span:
        """Return the span of offsets that has not been read yet."""
        return max(self.position, begin), end

    def take(self, rows: list[Written], end: int, total_of: Callable[[Written], int]) -> None:
        """Record that the topic has been read up to `end`; `rows` contains at least the newest row
        of each key."""
        self.position = end
        self.totals.update({row.key: total_of(row) for row in rows})

    def newest(
        self, source: Source, name: str, span: Span, total_of: Callable[[Written], int]
    ) -> list[Written]:
        """Return the newest row of each key in a span, in the order of their offsets.

        Read backwards from the end until all keys have been found, or until the growth of the
        totals found equals the number of rows in the span. In the second case no unread row has
        another key, because each row adds one event to one total. Without this rule, the search
        would not end early if a key has no new row."""
        rows: dict[bytes, Written] = {}
        begin, end = span
        grown, upper, size = 0, end, FIRST_STEP
        while upper > begin and len(rows) < self.keys and grown != end - begin:
            lower = max(begin, upper - size)
            for row in source.newest(name, (lower, upper), rows):
                rows[row.key] = row
                grown += total_of(row) - self.totals.get(row.key, 0)
            upper, size = lower, size * FURTHER_BACK
        return sorted(rows.values(), key=lambda row: row.offset)


def look(
    source: Source,
    topics: Mapping[str, Known],
    total_of: Callable[[Written], int],
    stop: threading.Event | None = None,
) -> Iterator[Written]:
    """Yield the new rows of each topic since the last call, in the order of their offsets: all rows
    if there are at most FEW, otherwise the newest of each key."""
    spans = {
        name: topics[name].unread(*offsets)
        for name, offsets in source.offsets(topics, stop).items()
    }
    new = {name: (begin, end) for name, (begin, end) in spans.items() if begin < end}
    few = source.rows_between(
        {name: span for name, span in new.items() if span[1] - span[0] <= FEW}
    )
    for name, span in new.items():
        known = topics[name]
        rows = few[name] if name in few else known.newest(source, name, span, total_of)
        known.take(rows, span[1], total_of)
        yield from rows


def follow(
    source: Source,
    keys_of: Mapping[str, int],
    total_of: Callable[[Written], int],
    stop: threading.Event,
) -> Iterator[Written | None]:
    """Yield rows of these topics from their beginning, as `look` selects them, until `stop` is set.
    `keys_of` contains the largest number of keys in each topic.

    Rows that exist when `stop` is set are still yielded. None is yielded if there are no new rows.
    """
    topics = {name: Known(keys) for name, keys in keys_of.items()}
    due_s = time.monotonic()
    while True:
        last_look = stop.is_set()
        came = False
        for row in look(source, topics, total_of, stop):
            came = True
            yield row
        if not came:
            yield None
        if last_look:
            return
        due_s = max(due_s + EVERY_S, time.monotonic())
        stop.wait(due_s - time.monotonic())
