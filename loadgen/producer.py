"""Producer of a partition's events: finds the events that are due, renders them in batches, hands
the batches to librdkafka and counts the events."""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, NamedTuple

from loadgen import counters as c
from loadgen.clock import NS_PER_MS, Clock
from loadgen.derived import DerivedEvent
from loadgen.rdkafka import Client
from loadgen.schedule import Schedule
from loadgen.workload import Renderer

# 1,000 messages are 100 kB: they stay in the CPU cache between rendering and librdkafka's copy.
BATCH = 1000
# Batch size while librdkafka's queue is full: rendering a full batch only to have it refused costs
# a quarter of a core.
PROBE = 10
# Limit per partition and turn, so that a partition far behind does not starve the others.
BATCHES_PER_TURN = 8


class Group(NamedTuple):
    """Events of the current batch with the same timestamp: their number, the due time of the first,
    the timestamp, and whether it is a derived event."""

    size: int
    due_ns: int
    stamp_ms: int
    is_derived: bool


class PartitionState:
    """State of one partition of this worker: its schedule, waiting derived events, and position."""

    def __init__(
        self,
        partition: int,
        schedule: Schedule,
        share: Any,
        position: int,
        next_derived: list[int],
    ) -> None:
        self.partition = partition
        self.schedule = schedule
        self.share = share  # from Renderer.share
        self.position = position  # number of settled (handed over or refused) scheduled events
        self.derived: deque[DerivedEvent] = deque()  # due derived events that are not settled
        self.next_derived = next_derived  # by kind: lower numbers are settled, or wait in `derived`
        self.stamp_ms = 0  # timestamp of the newest settled event
        self.full_since_ns = 0
        self.released = False


class Producer:
    """Hands due events of a worker's partitions to librdkafka."""

    def __init__(
        self,
        *,
        number: int,
        clock: Clock,
        counters: c.Counters,
        client: Client,
        topic: Any,
        renderer: Renderer,
        give_up_ms: int,
        log: Callable[[str], None],
        on_derived: Callable[[DerivedEvent, int, int], None] | None = None,
    ) -> None:
        """`on_derived` is called with each derived event that was handed over, its position (see
        `loadgen.positions`), and its timestamp."""
        self._number, self._clock, self._counters = number, clock, counters
        self._client, self._topic, self._renderer = client, topic, renderer
        self._give_up_ns = give_up_ms * NS_PER_MS
        self._log, self._on_derived = log, on_derived
        self._groups: list[Group] = []  # the current batch

    def turn(self, state: PartitionState, now_ns: int, until_ns: int) -> None:
        """Hand over events due by `until_ns`, at most BATCHES_PER_TURN batches. The partition must
        have received all derived events due by then."""
        due = state.schedule.due_by(until_ns)
        for _ in range(BATCHES_PER_TURN):
            if not (state.position < due or state.derived) or not self._hand_over(state, due):
                break
        if state.full_since_ns and now_ns - state.full_since_ns > self._give_up_ns:
            self._give_up(state, now_ns - self._give_up_ns)
        self._note(state)

    def _hand_over(self, state: PartitionState, due: int) -> bool:
        """Hand over up to BATCH events in due order; return whether all of them were settled."""
        self._renderer.clear()
        self._groups.clear()
        self._render(state, due, PROBE if state.full_since_ns else BATCH)
        used = self._produce(state)
        self._settle(state, used)
        self._note(state)
        return used == self._renderer.count

    def _render(self, state: PartitionState, due: int, limit: int) -> None:
        """Fill the batch. The timestamp of an event is its due time. If a worker receives a higher
        rate late, an event may have been due before its predecessor: then it gets the predecessor's
        timestamp."""
        renderer, schedule, derived = self._renderer, state.schedule, state.derived
        position, taken, stamp_ms = state.position, 0, state.stamp_ms
        while renderer.count < limit:
            event = derived[taken] if taken < len(derived) else None
            first_ns = schedule.due_at(position + 1) if position < due else None
            if event is not None and (first_ns is None or event.due_ns <= first_ns):
                stamp_ms = max(stamp_ms, event.due_ns // NS_PER_MS)
                renderer.one(event.content, stamp_ms)
                self._groups.append(Group(1, event.due_ns, stamp_ms, True))
                taken += 1
                continue
            if first_ns is None:
                return
            stamp_ms = max(stamp_ms, first_ns // NS_PER_MS)
            last_ns = (stamp_ms + 1) * NS_PER_MS - 1
            if event is not None:
                last_ns = min(last_ns, event.due_ns - 1)
            same_stamp = schedule.due_by(last_ns) - position
            in_block = (1 << 32) - (position & 0xFFFFFFFF)
            room = limit - renderer.count
            count = max(1, min(same_stamp, due - position, room, in_block))
            renderer.events(state.share, position, count, stamp_ms)
            self._groups.append(Group(count, first_ns, stamp_ms, False))
            position += count

    def _produce(self, state: PartitionState) -> int:
        """Hand the rendered batch to librdkafka; count and return its settled events."""
        count = self._renderer.count
        result = self._client.produce(self._topic, state.partition, self._renderer.messages, count)
        base = self._counters.partition(state.partition)
        self._counters.word[base + c.HANDED] += result.taken
        if result.rejected:
            self._counters.word[base + c.REFUSED] += result.rejected
            self._log(f"librdkafka refused {result.rejected} events: {result.why}")
        if result.used == count:
            state.full_since_ns = 0
        elif result.used or not state.full_since_ns:
            state.full_since_ns = self._clock.now_ns()
        return result.used

    def _settle(self, state: PartitionState, used: int) -> None:
        """Mark the first `used` events of the batch as done, and record how late each was."""
        now_ns = self._clock.now_ns()
        handed = self._counters.word[self._counters.partition(state.partition) + c.HANDED]
        for group in self._groups:
            if used <= 0:
                return
            count = min(group.size, used)
            used -= count
            self._counters.late(self._number, (now_ns - group.due_ns) // 1000, count)
            state.stamp_ms = group.stamp_ms
            if group.is_derived:
                event = state.derived.popleft()
                if self._on_derived:
                    self._on_derived(event, handed - used, group.stamp_ms)
            else:
                state.position += count

    def _note(self, state: PartitionState) -> None:
        """Record the position of the partition, from which another worker can continue."""
        word, base = self._counters.word, self._counters.partition(state.partition)
        word[base + c.POSITION] = state.position
        for kind, next_one in enumerate(state.next_derived):
            waiting = (event.number for event in state.derived if event.kind == kind)
            word[base + c.NEXT_DERIVED + kind] = next(waiting, next_one)

    def _give_up(self, state: PartitionState, until_ns: int) -> None:
        """Refuse events due by `until_ns`, because the queue has been full for too long: this
        bounds the backlog and its age when the broker returns."""
        base = self._counters.partition(state.partition)
        position = max(state.position, state.schedule.due_by(until_ns))
        refused = position - state.position
        state.position = position
        while state.derived and state.derived[0].due_ns <= until_ns:
            state.derived.popleft()
            refused += 1
        self._counters.word[base + c.REFUSED] += refused
