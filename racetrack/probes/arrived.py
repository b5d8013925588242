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

from racetrack.probes.broker import OffsetsError
from racetrack.workload import SourceTopic

LOOK_EVERY_S, READ_WITHIN_S = 0.05, 0.5
# So long nothing may arrive of a partition that something was sent to.
STILL_AFTER_S = 2.5


@dataclass(frozen=True)
class Counts:
    """The generator's, at a time of its clock (epoch ms): lists are by partition. `queued` wait in
    the Kafka client of the partition's worker, for it or for another partition of that worker: of
    what was handed over, only they have not been sent."""

    now_ms: int
    due: Sequence[int]
    handed: Sequence[int]
    refused: Sequence[int]
    queued: Sequence[int]

    @classmethod
    def of(cls, stats: Mapping[str, Any]) -> "Counts":
        """From what its `stats` say."""
        pageviews = stats["pageviews"]
        return cls(
            stats["now_ms"],
            pageviews["due"],
            pageviews["handed"],
            pageviews["refused"],
            [_queued(stats["workers"], p) for p in range(len(pageviews["handed"]))],
        )


def _queued(workers: Sequence[Mapping[str, Any]], partition: int) -> int:
    """Of a partition's own worker. One that changes hands was flushed first: nothing waits."""
    return next((w["queued"] for w in workers if partition in w["partitions"]), 0)


@dataclass(frozen=True)
class Youngest:
    """The last pageview of a partition: its offset, and when it was due at the earliest (epoch
    ms)."""

    offset: int
    due_ms: int


class Where(Protocol):
    """Who is asked: the generator and the broker, or a test's."""

    def counts(self) -> Counts:
        """The generator's counts now."""

    def end_offsets(self, within_s: float) -> list[int]:
        """The broker's end offsets now.

        Raises:
            OffsetsError: it does not tell them in `within_s`.
        """

    def youngest(self, end_offsets: Mapping[int, int]) -> Mapping[int, Youngest]:
        """The last pageview of each of these partitions, of those that can be read at once."""


@dataclass(frozen=True)
class Missing:
    """What is wrong, in words, and whether time could still mend it: then `still`."""

    what: str
    still: bool


class Arrivals:
    """One check: whatever was handed over before it began must be there, or be on its way."""

    def __init__(self, where: Where, within_s: float) -> None:
        """Raises OffsetsError as the broker's end offsets do."""
        self._where = where
        self._first = where.counts()
        self._first_ends = where.end_offsets(within_s)
        self._began_s = time.monotonic()
        self._seen_s: float | None = None
        self._unproven = set(range(len(self._first_ends)))
        self._now, self._ends = self._first, self._first_ends

    @property
    def any_arrived(self) -> bool:
        """Whether any pageview arrived since the check began."""
        return sum(self._ends) > sum(self._first_ends)

    def look(self, within_s: float) -> Missing | None:
        """Look once more.

        Raises:
            OffsetsError: the broker does not tell in `within_s`; what was seen before holds.
        """
        self.look_at_counts(within_s)
        dropped = self._dropped()
        return Missing("; ".join(dropped), still=False) if dropped else None

    def look_at_counts(self, within_s: float) -> None:
        """Without reading what arrived; raises as above."""
        asked_s = time.monotonic()
        self._ends = self._where.end_offsets(within_s)
        self._seen_s = asked_s
        self._now = self._where.counts()
        self._unproven -= {p for p in self._unproven if self._all_there(p)}

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

    def still(self) -> Missing | None:
        """What was sent and did not come, if no more time is given. A partition whose pageviews may
        all wait in its worker is given time, unless nothing came in any."""
        behind = {
            p
            for p in self._unproven
            if self._nothing_came(p)
            and not (self.any_arrived and self._now.queued[p] and not self._sent_before(p))
        }
        return Missing(self._seen_of(behind), still=True) if behind else None

    def unproven(self) -> str:
        """What was seen of each partition of which it is not certain that nothing was dropped."""
        if self._seen_s is None:
            return "the broker told its end offsets once, and not again in time"
        empty = {p for p in self._unproven if self._nothing_came(p)}
        seen = [self._seen_of(empty)] if empty else []
        if others := sorted(self._unproven - empty):
            handed = sum(self._now.handed[p] for p in others)
            arrived = sum(self._ends[p] for p in others)
            seen.append(
                f"not all came of partitions {', '.join(map(str, others))} in {self._seconds()}"
                f" (handed over {handed:,}, arrived {arrived:,})"
            )
        return "; ".join(seen)

    def _seconds(self) -> str:
        return f"{(self._seen_s or self._began_s) - self._began_s:.1f} s"

    def _nothing_came(self, partition: int) -> bool:
        """Of what was handed over, since the check began."""
        end = self._ends[partition]
        handed = end < self._now.handed[partition] or self._refused_since(partition) > 0
        return handed and end == self._first_ends[partition]

    def _sent_before(self, partition: int) -> bool:
        """Whether something that has not arrived had been sent when the check began. Its worker
        sends in order, and no more waited there than were queued."""
        waiting = self._first.queued[partition] + self._refused_since(partition)
        return self._first.handed[partition] - waiting > self._ends[partition]

    def _seen_of(self, empty: Iterable[int]) -> str:
        return "; ".join(
            f"nothing came of partition {p} in {self._seconds()} (handed over"
            f" {self._now.handed[p]:,}, arrived {self._ends[p]:,}, {self._now.refused[p]:,}"
            f" refused, {self._now.queued[p]:,} wait in its worker)"
            for p in sorted(empty)
        )


def wait(arrivals: Arrivals, within_s: float, meanwhile: Callable[[], None]) -> Missing | None:
    """Look until all is proven or something is missing, for `within_s` at most, and READ_WITHIN_S
    if a look has begun."""
    give_up = time.monotonic() + within_s
    while True:
        meanwhile()
        try:
            missing = arrivals.look(max(LOOK_EVERY_S, give_up - time.monotonic()))
        except OffsetsError:
            missing = None  # no news: what was seen before is judged when time is over
        if missing or arrivals.proven:
            return missing
        if time.monotonic() >= give_up:
            return arrivals.still()
        time.sleep(LOOK_EVERY_S)


def _due_ms(value: bytes, topic: SourceTopic) -> int | None:
    """When a message was due at the earliest; None if it is none of the generator's."""
    try:
        return int(json.loads(value)[topic.due]) - topic.ahead_ms
    except (ValueError, TypeError, KeyError):
        return None


class YoungestReader:
    """Reads the last pageviews of the main topic's partitions."""

    def __init__(self, bootstrap: str, topic: SourceTopic) -> None:
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
        wanted = [TopicPartition(self._topic.name, p, end - 1) for p, end in end_offsets.items()]
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
                    due_ms = _due_ms(value, self._topic)
                    if due_ms is not None:
                        found[partition] = Youngest(offset, due_ms)
        self._consumer.unassign()
        return found

    def close(self) -> None:
        """End the conversation with the broker."""
        self._consumer.close()
