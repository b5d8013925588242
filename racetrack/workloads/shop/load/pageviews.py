"""The pageviews: how they spread over the partitions, and those of purchases and marks. Whoever
buys a product looks at it at that moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loadgen.sequence import Stream
from loadgen.workload import Events

from racetrack.workloads.shop.load.render import Renderer
from racetrack.workloads.shop.load.sequence import CHANNELS, purchase
from racetrack.workloads.shop.load.settings import ShopSettings
from racetrack.workloads.shop.load.tracers import Reserved, TracerEvents, page_of_tracer


class Pageviews(Events):
    """See `loadgen.workload.Events`. `ffi` must know rd_kafka_message_t."""

    def __init__(
        self, settings: ShopSettings, users_by_partition: Sequence[Sequence[int]], ffi: Any = None
    ) -> None:
        """`users_by_partition` are the ids of all users, those of marks too."""
        self._settings, self._ffi = settings, ffi
        self._reserved = Reserved.of(settings)
        self._viewers = self._reserved.viewers(users_by_partition)
        self._users = [[u for u in users if u <= settings.users] for users in users_by_partition]
        self._stream = Stream(settings.seed, "purchases")
        self._partition_of = [0] * (settings.users + 1)
        for partition, users in enumerate(self._users):
            for user in users:
                self._partition_of[user] = partition
        # As many pageviews as a partition has users.
        self.weights = [len(users) for users in self._users]

    def renderer(self, capacity: int) -> Renderer:
        return Renderer(self._ffi, self._reserved, capacity, self._settings.seed, self._users)

    def derived(self, source: str, n: int) -> tuple[int, tuple[int, int]]:
        """The pageview of purchase or mark n: its partition, and what `Renderer.one` takes."""
        if source == TracerEvents.name:
            partition, page = page_of_tracer(self._reserved, n)
            return partition, (self._viewers[partition], page)
        buy = purchase(self._stream, n, self._settings.items, self._settings.users)
        page = (buy.item_id - 1) * len(CHANNELS) + buy.channel
        return self._partition_of[buy.user_id], (buy.user_id, page)
