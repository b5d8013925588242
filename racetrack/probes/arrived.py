"""Does what the generator handed over arrive at the broker? Told apart: it does, it is on its way,
it was dropped. With acks=0 nobody tells the sender.

Counts alone can't say so of a load that goes on: what is missing may be on its way still. But order
holds within a partition, so a pageview that was due after the counts were taken has all those
before it that were handed over by then. If there are fewer, the others were dropped, however slow
anything is.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from confluent_kafka import Consumer, TopicPartition

LOOK_EVERY_S, READ_WITHIN_S = 0.05, 0.5
# So long nothing may arrive of a partition that something was sent to.
STILL_AFTER_S = 4.0


@dataclass(frozen=True)
class Counts:
    """The generator's, at a time of its clock (epoch ms): lists are by partition. `queued` wait in
    its Kafka clients; of what was handed over, only they have not been sent."""

    now_ms: int
    due: Sequence[int]
    handed: Sequence[int]
    refused: Sequence[int]
    queued: int

    @classmethod
    def of(cls, stats: Mapping[str, Any]) -> "Counts":
        """From what its `stats` say."""
        pageviews = stats["pageviews"]
        return cls(
            stats["now_ms"],
            pageviews["due"],
            pageviews["handed"],
            pageviews["refused"],
            sum(worker["queued"] for worker in stats["workers"]),
        )


@dataclass(frozen=True)
class Youngest:
    """The last pageview of a partition: its offset, and when it was due (epoch ms)."""

    offset: int
    due_ms: int


class Where(Protocol):
    """Who is asked: the generator and the broker, or a test's."""

    def counts(self) -> Counts:
        """The generator's counts now."""

    def end_offsets(self) -> list[int]:
        """The broker's end offsets now."""

    def youngest(self, end_offsets: Mapping[int, int]) -> Mapping[int, Youngest]:
        """The last pageview of each of these partitions, of those that can be read at once."""


@dataclass(frozen=True)
class Missing:
    """What is wrong, in words, and whether time could still mend it: then `still`."""

    what: str
    still: bool


class Arrivals:
    """One check: whatever was handed over before it began must be there, or be on its way."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._first = where.counts()
        self._first_ends = where.end_offsets()
        self._unproven = set(range(len(self._first_ends)))
        self._now, self._ends = self._first, self._first_ends

    @property
    def any_arrived(self) -> bool:
        """Whether any pageview arrived since the check began."""
        return sum(self._ends) > sum(self._first_ends)

    def look(self, *, is_last: bool) -> Missing | None:
        """Look once more. `is_last`: what has not moved since the check began is missing."""
        self._ends = self._where.end_offsets()
        self._now = self._where.counts()
        self._unproven -= {p for p in self._unproven if self._all_there(p)}
        if dropped := self._dropped():
            return Missing(_listed(dropped), still=False)
        return self._still() if is_last else None

    @property
    def proven(self) -> bool:
        """Whether it is certain of every partition that nothing was dropped."""
        return not self._unproven

    def _refused_since(self, partition: int) -> int:
        return self._now.refused[partition] - self._first.refused[partition]

    def _all_there(self, partition: int) -> bool:
        """Counted after the offsets were asked for, so nothing is on its way."""
        everything = self._ends[partition] >= self._now.handed[partition]
        return everything and not self._refused_since(partition)

    def _dropped(self) -> list[str]:
        """By the youngest of each partition; one that has all before it is proven."""
        ends = {p: self._ends[p] for p in self._unproven if self._ends[p]}
        found = []
        for partition, youngest in self._where.youngest(ends).items():
            if youngest.due_ms <= self._first.now_ms:
                continue
            # What the client gave up was handed over once, and is not any more.
            handed = self._first.handed[partition] - self._refused_since(partition)
            if youngest.offset >= handed:
                self._unproven.discard(partition)
            else:
                found.append(
                    f"partition {partition} has {youngest.offset:,} pageviews before one that was"
                    f" due later than all of the {handed:,} handed over by then"
                )
        return found

    def _still(self) -> Missing | None:
        """What was sent and did not come. A partition whose pageviews may wait in the generator is
        given time, unless nothing came in any."""
        behind = {
            p
            for p in self._unproven
            if self._ends[p] == self._first_ends[p]
            and (self._ends[p] < self._now.handed[p] or self._refused_since(p))
        }
        if not behind or (self._now.queued and self.any_arrived):
            return None
        return Missing(
            _listed(
                f"partition {p}: handed over {self._now.handed[p]:,}, arrived {self._ends[p]:,}"
                for p in sorted(behind)
            )
            + f"; {sum(self._now.refused):,} refused, {self._now.queued:,} wait in the generator's"
            " Kafka client",
            still=True,
        )


def wait(arrivals: Arrivals, within_s: float, meanwhile: Callable[[], None]) -> Missing | None:
    """Look until all is proven or something is missing, for `within_s` at most."""
    give_up = time.monotonic() + within_s
    while True:
        meanwhile()
        is_last = time.monotonic() >= give_up
        missing = arrivals.look(is_last=is_last)
        if missing or arrivals.proven or is_last:
            return missing
        time.sleep(LOOK_EVERY_S)


class YoungestReader:
    """Reads the last pageviews of a topic's partitions."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "racetrack-youngest",
                "enable.auto.commit": False,
                "log_level": 2,
                # One pageview of each is wanted, not the load.
                "queued.min.messages": 1,
            }
        )

    def read(self, end_offsets: Mapping[int, int]) -> dict[int, Youngest]:
        """Of each of these partitions (number → end offset), if it answers in READ_WITHIN_S."""
        found: dict[int, Youngest] = {}
        wanted = [TopicPartition(self._topic, p, end - 1) for p, end in end_offsets.items()]
        if not wanted:
            return found
        self._consumer.assign(wanted)
        give_up = time.monotonic() + READ_WITHIN_S
        while len(found) < len(wanted) and (left_s := give_up - time.monotonic()) > 0:
            for message in self._consumer.consume(len(wanted), left_s):
                partition, offset, value = message.partition(), message.offset(), message.value()
                if message.error() or partition is None or offset is None or value is None:
                    continue  # asked again at the next look
                if partition not in found:
                    found[partition] = Youngest(offset, json.loads(value)["received_at"])
        self._consumer.unassign()
        return found

    def close(self) -> None:
        """End the conversation with the broker."""
        self._consumer.close()


def _listed(parts: Iterable[str]) -> str:
    return "; ".join(parts)
