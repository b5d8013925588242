"""The pageviews: how they spread over the partitions, and those of purchases. Whoever buys a
product looks at it at that moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loadgen.sequence import Stream
from loadgen.workload import Events

from workloads.shop.load.render import Renderer
from workloads.shop.load.sequence import CHANNELS, purchase
from workloads.shop.load.settings import ShopSettings


class Pageviews(Events):
    """See `loadgen.workload.Events`. `ffi` must know rd_kafka_message_t."""

    def __init__(
        self, settings: ShopSettings, users_by_partition: Sequence[Sequence[int]], ffi: Any = None
    ) -> None:
        self._settings, self._users, self._ffi = settings, users_by_partition, ffi
        self._stream = Stream(settings.seed, "purchases")
        self._partition_of = [0] * (settings.users + 1)
        for partition, users in enumerate(users_by_partition):
            for user in users:
                self._partition_of[user] = partition
        # As many pageviews as a partition has users.
        self.weights = [len(users) for users in users_by_partition]

    def renderer(self, capacity: int) -> Renderer:
        shop = self._settings
        return Renderer(self._ffi, shop.items, shop.users, capacity, shop.seed, self._users)

    def extra(self, n: int) -> tuple[int, tuple[int, int]]:
        """The pageview of purchase n: its partition, and what `Renderer.one` takes."""
        buy = purchase(self._stream, n, self._settings.items, self._settings.users)
        page = (buy.item_id - 1) * len(CHANNELS) + buy.channel
        return self._partition_of[buy.user_id], (buy.user_id, page)
