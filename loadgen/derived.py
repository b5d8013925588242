"""Derived events: events of the main topic that an event of another source causes, such as the
pageview of a purchase.

Their number, due times and partitions depend only on the seed and the source's schedule. So each
worker computes the derived events of its own partitions, and merges them with scheduled events in
due order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from loadgen.clock import NS_PER_S
from loadgen.schedule import Schedule

if TYPE_CHECKING:
    from loadgen.producer import PartitionState
    from loadgen.workload import Events, Workload

# Largest numbers of derived events that are computed per turn, and that wait in one partition. They
# prevent a rate beyond capacity from blocking the loop or filling memory.
MAX_PER_TURN = 1_000
MAX_WAITING = 10_000
# Function from n to (partition, content) of derived event n (0-based) of a kind. Only the
# workload's renderer interprets the content.
Place = Callable[[int], "tuple[int, Any]"]


class DerivedEvent(NamedTuple):
    """Derived event `number` (0-based) of its kind."""

    kind: int
    number: int
    partition: int
    content: Any
    due_ns: int


class DerivedEvents:
    """Iterates over the derived events of one source; `next` is the number of the next event.

    `kind` is the index of the source in `Workload.derived_from`."""

    def __init__(self, schedule: Schedule, place: Place, kind: int = 0) -> None:
        self.schedule = schedule
        self.kind = kind
        self.next = 0
        self._place = place

    def at(self, n: int) -> DerivedEvent:
        """Return derived event n."""
        partition, event = self._place(n)
        return DerivedEvent(self.kind, n, partition, event, self.schedule.due_at(n + 1))

    def take(self, now_ns: int, at_most: int = MAX_PER_TURN) -> list[DerivedEvent]:
        """Return at most `at_most` events that became due since the last call.

        If a lower rate arrives after it took effect, some events were returned too early; they are
        returned again when they are due."""
        first, self.next = self.next, min(self.schedule.due_by(now_ns), self.next + at_most)
        return [self.at(n) for n in range(first, self.next)]

    def complete_until_ns(self, now_ns: int) -> int:
        """Return the latest time, at most `now_ns`, up to which all due events have been taken."""
        if self.next >= self.schedule.due_by(now_ns):
            return now_ns
        return self.schedule.due_at(self.next + 1) - 1


def all_derived(workload: Workload, events: Events, start_ns: int) -> list[DerivedEvents]:
    """Return the derived events of a workload, by kind, at rate 0."""
    return [
        DerivedEvents(
            Schedule.starting(start_ns, 0, 1000 * NS_PER_S), partial(events.derived, source), kind
        )
        for kind, source in enumerate(workload.derived_from)
    ]


class Feed:
    """Distributes derived events of all kinds to the partitions of a worker, in due order."""

    def __init__(self, every: Sequence[DerivedEvents], max_waiting: int = MAX_WAITING) -> None:
        """`max_waiting` limits the events that wait in a partition."""
        self._every, self._max_waiting = every, max_waiting

    def join(
        self,
        state: PartitionState,
        states: Mapping[int, PartitionState],
        schedules: Sequence[Schedule],
        now_ns: int,
    ) -> None:
        """Add a partition, and give it its derived events that were distributed before it joined.

        `schedules` are the schedules of the derived events, by kind. They must still contain every
        event that the partition has not settled (handed over or refused).
        """
        for derived, schedule in zip(self._every, schedules):
            next_one = state.next_derived[derived.kind]
            derived.schedule = schedule
            derived.next = min(derived.next, schedule.due_by(now_ns)) if states else next_one
            for missed in map(derived.at, range(next_one, derived.next)):
                if missed.partition == state.partition:
                    _put(state, missed)
            state.next_derived[derived.kind] = max(next_one, derived.next)

    def give(self, states: Mapping[int, PartitionState], now_ns: int) -> int:
        """Distribute due events; return the time up to which all of them have been distributed."""
        if not states:
            return now_ns
        room = self._max_waiting - max(len(state.derived) for state in states.values())
        until_ns = now_ns
        for derived in self._every:
            for event in derived.take(until_ns, max(0, min(room, MAX_PER_TURN))):
                state = states.get(event.partition)
                if state is not None and event.number >= state.next_derived[derived.kind]:
                    _put(state, event)
            for state in states.values():
                state.next_derived[derived.kind] = max(
                    state.next_derived[derived.kind], derived.next
                )
            until_ns = derived.complete_until_ns(until_ns)
        return until_ns

    def change(self, kind: int, at_ns: int, milli_per_s: int) -> None:
        """Change the rate of a kind from `at_ns` on."""
        self._every[kind].schedule.change(at_ns, milli_per_s)

    def next_due_ns(self) -> int | None:
        """Return when the next event is due at the current rates; None for never."""
        due_ns = (derived.schedule.when(derived.next + 1) for derived in self._every)
        return min((at_ns for at_ns in due_ns if at_ns is not None), default=None)

    def forget(self) -> None:
        """Drop segments of the schedules that are needed only for events that have been
        distributed."""
        for derived in self._every:
            derived.schedule.forget(derived.next)


def _put(state: PartitionState, event: DerivedEvent) -> None:
    """Insert an event into the waiting events, which are ordered by due time, then by kind."""
    later = []
    while state.derived and _sort_key(state.derived[-1]) > _sort_key(event):
        later.append(state.derived.pop())
    state.derived.append(event)
    state.derived.extend(reversed(later))


def _sort_key(event: DerivedEvent) -> tuple[int, int]:
    return event.due_ns, event.kind
