"""Follows upsert topics whose rows are totals that only grow: all their rows while these are few,
and samples of them where every single pageview brings one.

Whoever reads thousands of rows a second takes a share of the cores that are measured. A total holds
all that came before it, so of a stretch of rows the newest of each key is enough.
"""

import threading
import time
from collections.abc import Callable, Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from racetrack.engines.shared.upsert.topics import Span, Written

# Between two samples a count is taken for what it was at the first. So an age is never too low, and
# too high by up to this where an engine counts as fast as pageviews come; where it works off what
# has gathered, by what was due of a partition that it counted in that time.
EVERY_S = 0.2
# So many rows in that time are all read.
FEW = 100
FURTHER_BACK = 4


class Source(Protocol):
    """A source of topics; see `racetrack.engines.shared.upsert.topics.Topics`."""

    def offsets(self, names: Collection[str]) -> Mapping[str, Span]:
        """Return the oldest offset that each topic still has, and the end."""

    def rows_between(self, spans: Mapping[str, Span]) -> Mapping[str, list[Written]]:
        """All rows of each topic in its span, read together."""

    def newest(self, name: str, span: Span, but: Container[bytes]) -> list[Written]:
        """Return the newest row of each key in a span of a topic, but for these keys."""


@dataclass
class Known:
    """What has been read of one topic, which has so many keys at most: up to which offset, and the
    total of each key there."""

    keys: int
    position: int = 0
    totals: dict[bytes, int] = field(default_factory=dict)

    def unread(self, begin: int, end: int) -> Span:
        """Return the part of the topic that has not been read."""
        return max(self.position, begin), end

    def take(self, rows: list[Written], end: int, total_of: Callable[[Written], int]) -> None:
        """Take all rows up to `end`, or the newest of each key."""
        self.position = end
        self.totals.update({row.key: total_of(row) for row in rows})

    def newest(
        self, source: Source, name: str, span: Span, total_of: Callable[[Written], int]
    ) -> list[Written]:
        """Return the newest row of each key, in their order. Reads back from the end until all keys
        are found, or those found account for every row, each one pageview more. A sum of totals
        takes two rows for a pageview, and an idle key has none."""
        found: dict[bytes, Written] = {}
        begin, end = span
        grown, upper, size = 0, end, FEW
        while upper > begin and len(found) < self.keys and grown != end - begin:
            lower = max(begin, upper - size)
            for row in source.newest(name, (lower, upper), found):
                found[row.key] = row
                grown += total_of(row) - self.totals.get(row.key, 0)
            upper, size = lower, size * FURTHER_BACK
        return sorted(found.values(), key=lambda row: row.offset)


def look(
    source: Source, topics: Mapping[str, Known], total_of: Callable[[Written], int]
) -> Iterator[Written]:
    """Yield what has come since the last call, topic by topic, in the order of its rows: all if
    they are few, else the newest of each key. Few rows are read together."""
    spans = {name: topics[name].unread(*of) for name, of in source.offsets(topics).items()}
    new = {name: (begin, end) for name, (begin, end) in spans.items() if begin < end}
    few = source.rows_between({name: of for name, of in new.items() if of[1] - of[0] <= FEW})
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
    """Yield the rows of these topics, with so many keys at most, from the beginning, as far as they
    are read, until `stop` is set.

    What was there when `stop` was set is still yielded. None says that nothing came for a while.
    """
    topics = {name: Known(keys) for name, keys in keys_of.items()}
    due_s = time.monotonic()
    while True:
        last_look = stop.is_set()
        came = False
        for row in look(source, topics, total_of):
            came = True
            yield row
        if not came:
            yield None
        if last_look:
            return
        due_s = max(due_s + EVERY_S, time.monotonic())
        stop.wait(due_s - time.monotonic())
