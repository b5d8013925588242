"""Tracer events: purchases and pageviews of reserved users and products, used to measure view lag.

No other events use the reserved ids, so a view's row with a reserved id shows how many tracer
events the view contains. The due time of each tracer event is known, which gives the view's lag
(docs/views.md).

Tracer event n (0-based) belongs to partition n // 2 % partitions. It consists of a purchase and a
simultaneous pageview. If n is even, the pageview is of the partition's reserved product; if n is
odd, of the profile of the partition's reserved buyer. Reserved ids follow the ordinary ids:

    items + 1 + p    product of partition p
    users + 1 + p    buyer of partition p, whose profile is viewed
    higher user ids  viewers; partition p uses the first viewer whose pageviews go to partition p
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loadgen.schedule import Schedule

from racetrack.workloads.shop.load.purchases import Buy, Purchases
from racetrack.workloads.shop.load.sequence import CHANNELS
from racetrack.workloads.shop.load.settings import ShopSettings

# With this many reserved viewers per partition, the probability that a partition has none is
# 10^-13.
VIEWERS_PER_PARTITION = 30


class Reserved(NamedTuple):
    """Ids of a shop that are reserved for tracer events, given its ordinary users and items."""

    users: int
    items: int
    partitions: int

    @classmethod
    def of(cls, shop: ShopSettings) -> Reserved:
        return cls(shop.users, shop.items, shop.partitions)

    @property
    def last_item(self) -> int:
        """Highest id of a product, including reserved products."""
        return self.items + self.partitions

    @property
    def last_user(self) -> int:
        """Highest id of a user, including reserved users."""
        return self.users + self.partitions * (1 + VIEWERS_PER_PARTITION)

    def product(self, partition: int) -> int:
        """Return the id of a partition's reserved product."""
        return self.items + 1 + partition

    def profile(self, partition: int) -> int:
        """Return the id of a partition's reserved buyer, whose profile is also viewed."""
        return self.users + 1 + partition

    def viewers(self, users_by_partition: Sequence[Sequence[int]]) -> list[int]:
        """Return the id of each partition's reserved viewer. `users_by_partition` contains all user
        ids."""
        first = self.users + self.partitions + 1
        return [next(user for user in users if user >= first) for users in users_by_partition]


class TracerEvents(Purchases):
    """Source of tracer events. It inserts their purchases, of one item each; `page_of_tracer`
    returns their pageviews."""

    name = "tracer_event"
    help_text = "tracer events, which show how fresh views are"
    optional = True

    def __init__(
        self, settings: ShopSettings, schedule: Schedule, start_milli_per_s: int = 0
    ) -> None:
        super().__init__(settings, schedule, start_milli_per_s)
        self._reserved = Reserved.of(settings)

    def make(self, n: int, _due_ns: int) -> Buy:
        partition = n // 2 % self._reserved.partitions
        return self._reserved.profile(partition), self._reserved.product(partition), 1


def page_of_tracer(reserved: Reserved, n: int) -> tuple[int, int]:
    """Return the pageview of tracer event n: its partition, and the number of its (page, channel)
    pair."""
    partition, is_profile = n // 2 % reserved.partitions, n % 2
    product, profile = reserved.product(partition), reserved.profile(partition)
    page = reserved.last_item + profile if is_profile else product
    return partition, (page - 1) * len(CHANNELS)
