"""Tracer events: purchases and pageviews of reserved customers, products and profiles.

Nothing else uses the reserved rows, so the row of a view shows how many tracer events it contains;
each is due at a known time, which gives the view's lag (docs/views.md).

Tracer event n (0-based) is in partition n // 2 % partitions. It is a purchase, and a pageview at
the same moment: of the partition's product (n even) or profile (n odd). Reserved ids follow the
ordinary ones:

    items + 1 + p    the product of partition p
    users + 1 + p    the buyer, and the viewed profile, of partition p
    above that       viewers; the first whose pageviews go to partition p is used
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loadgen.schedule import Schedule

from racetrack.workloads.shop.load.purchases import Buy, Purchases
from racetrack.workloads.shop.load.sequence import CHANNELS
from racetrack.workloads.shop.load.settings import ShopSettings

# Enough to find a viewer for each partition: with this many, one is missing once in 10^13.
VIEWERS_PER_PARTITION = 30


class Reserved(NamedTuple):
    """Reserved ids of a shop."""

    users: int
    items: int
    partitions: int

    @classmethod
    def of(cls, shop: ShopSettings) -> Reserved:
        return cls(shop.users, shop.items, shop.partitions)

    @property
    def last_item(self) -> int:
        """The highest id of a product."""
        return self.items + self.partitions

    @property
    def last_user(self) -> int:
        """The highest id of a user."""
        return self.users + self.partitions * (1 + VIEWERS_PER_PARTITION)

    def product(self, partition: int) -> int:
        """Return the id of a partition's product."""
        return self.items + 1 + partition

    def profile(self, partition: int) -> int:
        """Return the id of a partition's buyer, who also owns its profile."""
        return self.users + 1 + partition

    def viewers(self, users_by_partition: Sequence[Sequence[int]]) -> list[int]:
        """Return the viewer of each partition, given all user ids by partition."""
        first = self.users + self.partitions + 1
        return [next(user for user in users if user >= first) for users in users_by_partition]


class TracerEvents(Purchases):
    """Makes the purchases of tracer events, one item each."""

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
    """Return (partition, number of a (page, channel) pair) of the pageview of tracer event n."""
    partition, is_profile = n // 2 % reserved.partitions, n % 2
    product, profile = reserved.product(partition), reserved.profile(partition)
    page = reserved.last_item + profile if is_profile else product
    return partition, (page - 1) * len(CHANNELS)
