"""Extras: events of the main topic that come with those of another source, such as the pageview of
a purchase.

Which there are, when, and in which partition follows from the seed and the schedule of that source,
so every worker finds those of its partitions by itself, and gives each its place in their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from loadgen.schedule import Schedule

if TYPE_CHECKING:
    from loadgen.producer import PartitionState

# So many are found in one go, and so many of one partition wait at most before it takes them: a
# rate that nobody can keep up with fills no memory and stalls no loop.
MAX_PER_TURN = 1_000
MAX_WAITING = 10_000
# (partition, event as the workload's renderer takes it) of extra number n (0-based).
Place = Callable[[int], "tuple[int, Any]"]


class Extra(NamedTuple):
    """Extra number `number` (0-based)."""

    number: int
    partition: int
    event: Any
    due_ns: int


class Extras:
    """Extras one after the other, from number `next` on."""

    def __init__(self, schedule: Schedule, place: Place) -> None:
        self.schedule = schedule
        self.next = 0
        self._place = place

    def at(self, n: int) -> Extra:
        """Extra number n."""
        partition, event = self._place(n)
        return Extra(n, partition, event, self.schedule.due_at(n + 1))

    def take(self, now_ns: int, at_most: int = MAX_PER_TURN) -> list[Extra]:
        """What has become due since the last call, `at_most` so many. Where a lower rate was heard
        of too late, some were taken too early: those come again when they are due.
        """
        first, self.next = self.next, min(self.schedule.due_by(now_ns), self.next + at_most)
        return [self.at(n) for n in range(first, self.next)]

    def complete_until_ns(self, now_ns: int) -> int:
        """All that is due by this time, which is not after `now_ns`, has been taken."""
        if self.next >= self.schedule.due_by(now_ns):
            return now_ns
        return self.schedule.due_at(self.next + 1) - 1


class Feed:
    """Gives the partitions of a worker their extras."""

    def __init__(self, extras: Extras) -> None:
        self._extras = extras

    def join(
        self,
        state: PartitionState,
        states: Mapping[int, PartitionState],
        schedule: Schedule,
        now_ns: int,
    ) -> None:
        """A partition comes to `states`, and is given what the others were given before. `schedule`
        is that of the extras, and still knows what the partition has not settled.
        """
        extras = self._extras
        extras.schedule = schedule
        extras.next = min(extras.next, schedule.due_by(now_ns)) if states else state.next_extra
        missed = map(extras.at, range(state.next_extra, extras.next))
        state.extras.extend(extra for extra in missed if extra.partition == state.partition)
        state.next_extra = max(state.next_extra, extras.next)

    def give(self, states: Mapping[int, PartitionState], now_ns: int) -> int:
        """Give them what has become due; the time up to which they have all of it."""
        if not states:
            return now_ns
        room = MAX_WAITING - max(len(state.extras) for state in states.values())
        for extra in self._extras.take(now_ns, max(0, min(room, MAX_PER_TURN))):
            state = states.get(extra.partition)
            if state is not None and extra.number >= state.next_extra:
                state.extras.append(extra)
        for state in states.values():
            state.next_extra = max(state.next_extra, self._extras.next)
        return self._extras.complete_until_ns(now_ns)

    def change(self, at_ns: int, milli_per_s: int) -> None:
        """From `at_ns` on another rate of extras."""
        self._extras.schedule.change(at_ns, milli_per_s)

    def next_due_ns(self) -> int | None:
        """When the next one is due, as rates stand."""
        return self._extras.schedule.when(self._extras.next + 1)

    def forget(self) -> None:
        """Let the schedule forget what has been given."""
        self._extras.schedule.forget(self._extras.next)
