"""Pageviews of purchases: whoever buys a product looks at it at that moment.

Which there are, when, and in which partition follows from the seed and the schedule of purchases,
so every worker finds those of its partitions by itself, and gives each its place in their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from loadgen.config import Config
from loadgen.schedule import Schedule
from loadgen.sequence import CHANNELS, Stream, purchase

if TYPE_CHECKING:
    from loadgen.producer import PartitionState

# So many purchases are looked at in one go, and so many pageviews of one partition wait at most
# before it takes them: a rate that nobody can keep up with fills no memory and stalls no loop.
MAX_PER_TURN = 1_000
MAX_WAITING = 10_000


class View(NamedTuple):
    """A purchase's pageview; `purchase` is the purchase's number (0-based)."""

    purchase: int
    partition: int
    user: int
    page: int
    due_ns: int


class Views:
    """Pageviews of purchases one after the other, from number `next` on."""

    def __init__(
        self, config: Config, schedule: Schedule, users_by_partition: Sequence[Sequence[int]]
    ) -> None:
        self.schedule = schedule
        self.next = 0
        self._items, self._users = config.items, config.users
        self._stream = Stream(config.seed, "purchases")
        self._partition_of = [0] * (config.users + 1)
        for partition, users in enumerate(users_by_partition):
            for user in users:
                self._partition_of[user] = partition

    def at(self, n: int) -> View:
        """The pageview of purchase n."""
        buy = purchase(self._stream, n, self._items, self._users)
        page = (buy.item_id - 1) * len(CHANNELS) + buy.channel
        due_ns = self.schedule.due_at(n + 1)
        return View(n, self._partition_of[buy.user_id], buy.user_id, page, due_ns)

    def take(self, now_ns: int, at_most: int = MAX_PER_TURN) -> list[View]:
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
    """Gives the partitions of a worker their pageviews of purchases."""

    def __init__(self, views: Views) -> None:
        self._views = views

    def join(
        self,
        state: PartitionState,
        states: Mapping[int, PartitionState],
        schedule: Schedule,
        now_ns: int,
    ) -> None:
        """A partition comes to `states`, and is given what the others were given before. `schedule`
        is that of purchases, and still knows what the partition has not settled.
        """
        views = self._views
        views.schedule = schedule
        views.next = min(views.next, schedule.due_by(now_ns)) if states else state.next_purchase
        missed = map(views.at, range(state.next_purchase, views.next))
        state.views.extend(view for view in missed if view.partition == state.partition)
        state.next_purchase = max(state.next_purchase, views.next)

    def give(self, states: Mapping[int, PartitionState], now_ns: int) -> int:
        """Give them what has become due; the time up to which they have all of it."""
        if not states:
            return now_ns
        room = MAX_WAITING - max(len(state.views) for state in states.values())
        for view in self._views.take(now_ns, max(0, min(room, MAX_PER_TURN))):
            state = states.get(view.partition)
            if state is not None and view.purchase >= state.next_purchase:
                state.views.append(view)
        for state in states.values():
            state.next_purchase = max(state.next_purchase, self._views.next)
        return self._views.complete_until_ns(now_ns)

    def change(self, at_ns: int, milli_per_s: int) -> None:
        """From `at_ns` on another rate of purchases."""
        self._views.schedule.change(at_ns, milli_per_s)

    def next_due_ns(self) -> int | None:
        """When the next one is due, as rates stand."""
        return self._views.schedule.when(self._views.next + 1)

    def forget(self) -> None:
        """Let the schedule forget what has been given."""
        self._views.schedule.forget(self._views.next)
