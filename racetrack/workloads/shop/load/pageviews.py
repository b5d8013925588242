"""Pageviews: their distribution over partitions, and the pageviews that purchases and tracer events
cause. A buyer views the product when buying it."""

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
    """See `loadgen.workload.Events`. `ffi` must define rd_kafka_message_t."""

    def __init__(
        self, settings: ShopSettings, users_by_partition: Sequence[Sequence[int]], ffi: Any = None
    ) -> None:
        """Create the events. `users_by_partition` contains all user ids, including reserved ids."""
        self._settings, self._ffi = settings, ffi
        self._reserved = Reserved.of(settings)
        self._viewers = self._reserved.viewers(users_by_partition)
        self._users = [[u for u in users if u <= settings.users] for users in users_by_partition]
        self._stream = Stream(settings.seed, "purchases")
        self._partition_of = [0] * (settings.users + 1)
        for partition, users in enumerate(self._users):
            for user in users:
                self._partition_of[user] = partition
        # The number of pageviews of a partition is proportional to the number of its users.
        self.weights = [len(users) for users in self._users]

    def renderer(self, capacity: int) -> Renderer:
        return Renderer(self._ffi, self._reserved, capacity, self._settings.seed, self._users)

    def derived(self, source: str, n: int) -> tuple[int, tuple[int, int]]:
        """Return the pageview that purchase or tracer event n causes: its partition, and its user
        and page as an argument of `Renderer.one`."""
        if source == TracerEvents.name:
            partition, page = page_of_tracer(self._reserved, n)
            return partition, (self._viewers[partition], page)
        buy = purchase(self._stream, n, self._settings.items, self._settings.users)
        page = (buy.item_id - 1) * len(CHANNELS) + buy.channel
        return self._partition_of[buy.user_id], (buy.user_id, page)
