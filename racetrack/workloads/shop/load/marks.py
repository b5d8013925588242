"""Marks: single purchases and pageviews by which the age of a view is told. They are of customers,
products and profiles that nobody else has to do with, so a view's own row says how many of them it
holds, and each is due at a time that is known.

Mark n (0-based) is of partition n // 2 % partitions. It is a purchase, and in the same moment a
pageview in that partition: by turns of its product (n even) and of its profile (n odd), so that
both come evenly. What is reserved follows the ids of the ordinary ones:

    items + 1 + p    the product of partition p
    users + 1 + p    who buys it; the profile that is viewed in partition p
    above that       viewers, of whom the first one is taken whose pageviews go to partition p
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loadgen.schedule import Schedule

from racetrack.workloads.shop.load.purchases import Buy, Purchases
from racetrack.workloads.shop.load.sequence import CHANNELS
from racetrack.workloads.shop.load.settings import ShopSettings

# Enough that there is a viewer for each partition: of this many for each, none is missing but once
# in 10^13.
VIEWERS_A_PARTITION = 30


class Reserved(NamedTuple):
    """How many ids of a shop are reserved, and which is which."""

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
        return self.users + self.partitions * (1 + VIEWERS_A_PARTITION)

    def product(self, partition: int) -> int:
        """The id of the product that is a partition's."""
        return self.items + 1 + partition

    def profile(self, partition: int) -> int:
        """The id of the user whose profile is a partition's."""
        return self.users + 1 + partition

    def viewers(self, users_by_partition: Sequence[Sequence[int]]) -> list[int]:
        """By partition, from all users' ids by partition: whose pageviews are its marks."""
        first = self.users + self.partitions + 1
        return [next(user for user in users if user >= first) for users in users_by_partition]


class Marks(Purchases):
    """The purchases that are marks, one piece each."""

    name = "tracer_event"
    told = "marks, by which the age of views is told"
    optional = True

    def __init__(
        self, settings: ShopSettings, schedule: Schedule, start_milli_per_s: int = 0
    ) -> None:
        super().__init__(settings, schedule, start_milli_per_s)
        self._reserved = Reserved.of(settings)

    def make(self, n: int, _due_ns: int) -> Buy:
        partition = n // 2 % self._reserved.partitions
        return self._reserved.profile(partition), self._reserved.product(partition), 1


def page_of_mark(reserved: Reserved, n: int) -> tuple[int, int]:
    """(partition, number of a (page, channel) pair) of the pageview of mark n (0-based)."""
    partition, is_profile = n // 2 % reserved.partitions, n % 2
    product, profile = reserved.product(partition), reserved.profile(partition)
    page = reserved.last_item + profile if is_profile else product
    return partition, (page - 1) * len(CHANNELS)
