"""Producing a partition's pageviews: what is due, rendered in batches, handed to librdkafka, and
counted.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, NamedTuple

from loadgen import counters as c
from loadgen.clock import NS_PER_MS, Clock
from loadgen.rdkafka import Client
from loadgen.render import Renderer
from loadgen.schedule import Schedule
from loadgen.sequence import Stream

# 1,000 messages are 100 kB: they stay in the processor's cache between rendering and librdkafka's
# copy.
BATCH = 1000
# How many are tried while librdkafka's queue is full: rendering more only to see them refused costs
# a quarter of a core.
PROBE = 10
# One partition's share of a turn, so that none starves behind one that has much to catch up on.
BATCHES_PER_TURN = 8


class View(NamedTuple):
    """A purchase's pageview."""

    user: int
    page: int
    due_ns: int


class Lane:
    """A partition in this worker's hands: its schedule, its events, and how far it has come."""

    def __init__(
        self, partition: int, schedule: Schedule, stream: Stream, users: Any, position: int
    ) -> None:
        self.partition = partition
        self.schedule = schedule
        self.stream = stream
        self.users = users  # as Renderer.users_array makes it
        self.position = position  # scheduled pageviews that are settled: handed over or refused
        self.views: deque[View] = deque()
        self.full_since_ns = 0
        self.released = False


class Outlet:
    """Hands a worker's lanes over to librdkafka."""

    def __init__(
        self,
        *,
        slot: int,
        clock: Clock,
        counters: c.Counters,
        client: Client,
        topic: Any,
        renderer: Renderer,
        give_up_ms: int,
        log: Callable[[str], None],
    ) -> None:
        self._slot, self._clock, self._counters = slot, clock, counters
        self._client, self._topic, self._renderer = client, topic, renderer
        self._give_up_ns = give_up_ms * NS_PER_MS
        self._log = log
        # The batch at hand: how many have the same stamp, and when the first of them was due.
        self._groups: list[tuple[int, int]] = []

    def turn(self, lane: Lane, now_ns: int) -> None:
        """Hand over what is due in a lane, up to its share of a turn."""
        while lane.views and self._hand_over_views(lane):
            pass
        due = lane.schedule.due_by(now_ns)
        for _ in range(BATCHES_PER_TURN):
            if lane.position >= due or not self._hand_over_scheduled(lane, due):
                break
        if lane.full_since_ns and now_ns - lane.full_since_ns > self._give_up_ns:
            self._give_up(lane, now_ns - self._give_up_ns)

    def _hand_over_scheduled(self, lane: Lane, due: int) -> bool:
        """Hand over up to BATCH scheduled pageviews; whether all of them were settled."""
        renderer, schedule = self._renderer, lane.schedule
        renderer.clear()
        self._groups.clear()
        position = lane.position
        limit = PROBE if lane.full_since_ns else BATCH
        while position < due and renderer.count < limit:
            first_ns = schedule.due_at(position + 1)
            stamp_ms = first_ns // NS_PER_MS
            same_stamp = schedule.due_by((stamp_ms + 1) * NS_PER_MS - 1) - position
            in_block = (1 << 32) - (position & 0xFFFFFFFF)
            room = limit - renderer.count
            count = max(1, min(same_stamp, due - position, room, in_block))
            renderer.pageviews(lane.stream, position, count, lane.users, stamp_ms)
            self._groups.append((count, first_ns))
            position += count
        used = self._produce(lane)
        lane.position += used
        self._counters.word[self._counters.partition(lane.partition) + c.POSITION] = lane.position
        return used == renderer.count

    def _hand_over_views(self, lane: Lane) -> bool:
        """Hand over up to BATCH pageviews of purchases; whether all of them were settled."""
        renderer = self._renderer
        renderer.clear()
        self._groups.clear()
        limit = PROBE if lane.full_since_ns else BATCH
        for view in lane.views:
            if renderer.count == limit:
                break
            renderer.one(view.user, view.page, view.due_ns // NS_PER_MS)
            self._groups.append((1, view.due_ns))
        used = self._produce(lane)
        for _ in range(used):
            lane.views.popleft()
        self._counters.word[self._counters.partition(lane.partition) + c.VIEWS] += used
        return used == renderer.count

    def _produce(self, lane: Lane) -> int:
        """Give the rendered batch to librdkafka and count it; how many are settled."""
        count = self._renderer.count
        result = self._client.produce(self._topic, lane.partition, self._renderer.messages, count)
        now_ns = self._clock.now_ns()
        base = self._counters.partition(lane.partition)
        self._counters.word[base + c.HANDED] += result.taken
        if result.rejected:
            self._counters.word[base + c.REFUSED] += result.rejected
            self._log(f"librdkafka refused {result.rejected} pageviews: {result.why}")
        left = result.used
        for size, due_ns in self._groups:
            if left <= 0:
                break
            self._counters.late(self._slot, (now_ns - due_ns) // 1000, min(size, left))
            left -= size
        if result.used == count:
            lane.full_since_ns = 0
        elif result.used or not lane.full_since_ns:
            lane.full_since_ns = now_ns
        return result.used

    def _give_up(self, lane: Lane, until_ns: int) -> None:
        """The queue has been full for long: refuse what was due by `until_ns`, so that what waits
        stays bounded, and what comes when the broker is back is no older than that.
        """
        base = self._counters.partition(lane.partition)
        position = max(lane.position, lane.schedule.due_by(until_ns))
        refused = position - lane.position
        lane.position = position
        self._counters.word[base + c.POSITION] = position
        while lane.views and lane.views[0].due_ns <= until_ns:
            lane.views.popleft()
            self._counters.word[base + c.VIEWS] += 1
            refused += 1
        self._counters.word[base + c.REFUSED] += refused
