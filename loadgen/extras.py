"""Extras: events of the main topic that come with those of other sources, such as the pageview of
a purchase.

Which there are, when, and in which partition follows from the seed and the schedule of the source,
so every worker finds those of its partitions by itself, and gives each its place in their order.
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

# So many are found in one go, and so many of one partition wait at most before it takes them: a
# rate that nobody can keep up with fills no memory and stalls no loop.
MAX_PER_TURN = 1_000
MAX_WAITING = 10_000
# (partition, event as the workload's renderer takes it) of extra number n (0-based) of a kind.
Place = Callable[[int], "tuple[int, Any]"]


class Extra(NamedTuple):
    """Extra number `number` (0-based) of its kind."""

    kind: int
    number: int
    partition: int
    event: Any
    due_ns: int


class Extras:
    """Extras of one kind, those of one source, one after the other, from number `next` on. Kinds
    are numbered in the order of `Workload.extras_of`."""

    def __init__(self, schedule: Schedule, place: Place, kind: int = 0) -> None:
        self.schedule = schedule
        self.kind = kind
        self.next = 0
        self._place = place

    def at(self, n: int) -> Extra:
        """Extra number n."""
        partition, event = self._place(n)
        return Extra(self.kind, n, partition, event, self.schedule.due_at(n + 1))

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


def every_extra(workload: Workload, events: Events, start_ns: int) -> list[Extras]:
    """The extras of a workload, by kind; none is due yet."""
    return [
        Extras(Schedule.starting(start_ns, 0, 1000 * NS_PER_S), partial(events.extra, source), kind)
        for kind, source in enumerate(workload.extras_of)
    ]


class Feed:
    """Gives the partitions of a worker their extras, of all kinds in one order."""

    def __init__(self, every: Sequence[Extras]) -> None:
        self._every = every

    def join(
        self,
        state: PartitionState,
        states: Mapping[int, PartitionState],
        schedules: Sequence[Schedule],
        now_ns: int,
    ) -> None:
        """A partition comes to `states`, and is given what the others were given before.
        `schedules` are those of the extras, by kind, and still know what the partition has not
        settled.
        """
        for extras, schedule in zip(self._every, schedules):
            next_one = state.next_extra[extras.kind]
            extras.schedule = schedule
            extras.next = min(extras.next, schedule.due_by(now_ns)) if states else next_one
            for missed in map(extras.at, range(next_one, extras.next)):
                if missed.partition == state.partition:
                    _put(state, missed)
            state.next_extra[extras.kind] = max(next_one, extras.next)

    def give(self, states: Mapping[int, PartitionState], now_ns: int) -> int:
        """Give them what has become due; the time up to which they have all of it."""
        if not states:
            return now_ns
        room = MAX_WAITING - max(len(state.extras) for state in states.values())
        until_ns = now_ns
        for extras in self._every:
            for extra in extras.take(until_ns, max(0, min(room, MAX_PER_TURN))):
                state = states.get(extra.partition)
                if state is not None and extra.number >= state.next_extra[extras.kind]:
                    _put(state, extra)
            for state in states.values():
                state.next_extra[extras.kind] = max(state.next_extra[extras.kind], extras.next)
            until_ns = extras.complete_until_ns(until_ns)
        return until_ns

    def change(self, kind: int, at_ns: int, milli_per_s: int) -> None:
        """From `at_ns` on another rate of the extras of a kind."""
        self._every[kind].schedule.change(at_ns, milli_per_s)

    def next_due_ns(self) -> int | None:
        """When the next one is due, as rates stand."""
        due_ns = (extras.schedule.when(extras.next + 1) for extras in self._every)
        return min((at_ns for at_ns in due_ns if at_ns is not None), default=None)

    def forget(self) -> None:
        """Let the schedules forget what has been given."""
        for extras in self._every:
            extras.schedule.forget(extras.next)


def _put(state: PartitionState, extra: Extra) -> None:
    """Among those that wait, in the order in which they were due; of equals, by kind."""
    later = []
    while state.extras and _place_of(state.extras[-1]) > _place_of(extra):
        later.append(state.extras.pop())
    state.extras.append(extra)
    state.extras.extend(reversed(later))


def _place_of(extra: Extra) -> tuple[int, int]:
    return extra.due_ns, extra.kind
