"""Follows upsert topics whose rows are totals that only grow: all their rows while these are few,
and samples of them where every single pageview brings one.

Whoever reads thousands of rows a second takes a share of the cores that are measured. A total holds
all that came before it, so of a stretch of rows the newest of each key is enough.
"""

import threading
import time
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from engines.shared.upsert.topics import Reader, Written

# Between two samples a count is taken for what it was at the first. So an age is never too low, and
# too high by up to this where an engine counts as fast as pageviews come; where it works off what
# has gathered, by what was due of a partition that it counted in that time.
EVERY_S = 0.2
# So many rows in that time are all read.
FEW = 100
FURTHER_BACK = 4


class Rows(Protocol):
    """The rows of a topic; see `engines.shared.upsert.topics.TopicRows`."""

    def between(self, begin: int, end: int) -> list[Written]:
        """All of them."""

    def newest(self, begin: int, end: int, but: Container[bytes]) -> list[Written]:
        """The newest of each key, but for these keys."""


@dataclass
class Known:
    """What has been read of one topic, which has so many keys at most: up to which offset, and the
    total of each key there."""

    keys: int
    position: int = 0
    totals: dict[bytes, int] = field(default_factory=dict)

    def take(
        self, topic: Rows, begin: int, end: int, total_of: Callable[[Written], int]
    ) -> list[Written]:
        """The rows up to `end`, in their order: all if they are few, else the newest of each key.
        `begin` is the oldest that the topic still has."""
        begin = max(self.position, begin)
        if begin >= end:
            return []
        few = end - begin <= FEW
        rows = topic.between(begin, end) if few else self._newest(topic, begin, end, total_of)
        self.position = end
        self.totals.update({row.key: total_of(row) for row in rows})
        return rows

    def _newest(
        self, topic: Rows, begin: int, end: int, total_of: Callable[[Written], int]
    ) -> list[Written]:
        """Reads back from the end until all keys have been found, or those found account for every
        row, each of which is one pageview more where there are so many. A sum of totals takes two
        rows for a pageview, and a key that stands still has none."""
        found: dict[bytes, Written] = {}
        grown, upper, size = 0, end, FEW
        while upper > begin and len(found) < self.keys and grown != end - begin:
            lower = max(begin, upper - size)
            for row in topic.newest(lower, upper, found):
                found[row.key] = row
                grown += total_of(row) - self.totals.get(row.key, 0)
            upper, size = lower, size * FURTHER_BACK
        return sorted(found.values(), key=lambda row: row.offset)


def follow(
    kafka: str,
    keys_of: Mapping[str, int],
    total_of: Callable[[Written], int],
    stop: threading.Event,
) -> Iterator[Written | None]:
    """The rows of these topics, with so many keys at most, from the beginning, as far as they are
    read, until `stop` is set.

    What was there when `stop` was set is still told of. None says that nothing came for a while.
    """
    topics = {name: Known(keys) for name, keys in keys_of.items()}
    due_s = time.monotonic()
    with Reader(kafka) as reader:
        while True:
            last_look = stop.is_set()
            came = False
            for name, known in topics.items():
                begin, end = reader.offsets(name)
                for row in known.take(reader.rows_of(name), begin, end, total_of):
                    came = True
                    yield row
            if not came:
                yield None
            if last_look:
                return
            due_s = max(due_s + EVERY_S, time.monotonic())
            stop.wait(due_s - time.monotonic())
