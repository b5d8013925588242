"""Pageviews: their distribution over partitions, and the pageviews that purchases and tracer events
cause. A buyer views the product when buying it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loadgen.popularity import Popularity, zipf
from loadgen.sequence import Stream
from loadgen.workload import Events

from racetrack.workloads.shop.load.render import Renderer
from racetrack.workloads.shop.load.render_skewed import SkewedRenderer
from racetrack.workloads.shop.load.sequence import CHANNELS, purchase
from racetrack.workloads.shop.load.settings import ShopSettings
from racetrack.workloads.shop.load.tracers import Reserved, TracerEvents, page_of_tracer

# With SHOP_KEY_SKEW, the weights of the partitions are integers, and their sum is about this
# number.
TOTAL_WEIGHT = 1_000_000


class Pageviews(Events):
    """See `loadgen.workload.Events`. `ffi` must define rd_kafka_message_t."""

    def __init__(
        self, settings: ShopSettings, users_by_partition: Sequence[Sequence[int]], ffi: Any = None
    ) -> None:
        """Create the pageviews. `users_by_partition` contains all user ids, including those
        reserved for tracer events."""
        self._settings, self._ffi = settings, ffi
        self._reserved = Reserved.of(settings)
        self._viewers = self._reserved.viewers(users_by_partition)
        self._users = [[u for u in users if u <= settings.users] for users in users_by_partition]
        self._items = zipf(settings.items, settings.key_skew)
        self._popular = zipf(settings.users, settings.key_skew)
        self._stream = Stream(settings.seed, "purchases")
        self._partition_of = [0] * (settings.users + 1)
        for partition, users in enumerate(self._users):
            for user in users:
                self._partition_of[user] = partition
        self.weights = self._weights()

    def _weights(self) -> list[int]:
        """Return the weight of each partition: the sum of the popularity of its users."""
        if not self._settings.key_skew:
            return [len(users) for users in self._users]
        shares = [sum(self._popular.weights[user - 1] for user in users) for users in self._users]
        whole = TOTAL_WEIGHT / sum(shares)
        return [max(1, round(share * whole)) if share else 0 for share in shares]

    def renderer(self, capacity: int) -> Renderer:
        shop, every = self._settings, (self._ffi, self._reserved, capacity)
        size = shop.pageview_bytes
        if not shop.key_skew:
            return Renderer(*every, shop.seed, self._users, size)
        viewers = [
            Popularity([self._popular.weights[user - 1] for user in users]) for users in self._users
        ]
        return SkewedRenderer(
            *every,
            shop.seed,
            self._users,
            size,
            items=self._items,
            users=self._popular,
            viewers=viewers,
        )

    def derived(self, source: str, n: int) -> tuple[int, tuple[int, int]]:
        """Return the pageview that purchase or tracer event n causes: its partition, and its user
        and page in the form that `Renderer.one` expects."""
        if source == TracerEvents.name:
            partition, page = page_of_tracer(self._reserved, n)
            return partition, (self._viewers[partition], page)
        buy = purchase(self._stream, n, self._items, self._popular)
        page = (buy.item_id - 1) * len(CHANNELS) + buy.channel
        return self._partition_of[buy.user_id], (buy.user_id, page)
