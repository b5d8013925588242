"""The load generator's part of the shop: events, initial rows, and changes."""

from __future__ import annotations

from typing import Callable

from loadgen.config import Config, Reader
from loadgen.rdkafka import Library
from loadgen.schedule import Schedule
from loadgen.source import Source
from loadgen.workload import Workload

from racetrack.workloads.shop.load import settings
from racetrack.workloads.shop.load.changes import Deletes, Updates
from racetrack.workloads.shop.load.database import Shop
from racetrack.workloads.shop.load.pageviews import Pageviews
from racetrack.workloads.shop.load.purchases import Purchases
from racetrack.workloads.shop.load.topics import topics
from racetrack.workloads.shop.load.tracers import Reserved, TracerEvents


class ShopLoad(Workload):
    """See `loadgen.workload.Workload`."""

    name = "shop"
    derived_from = (Purchases.name, TracerEvents.name)

    def __init__(self, config: Config, shop: settings.ShopSettings) -> None:
        self._config, self._settings = config, shop
        self.topic = shop.topic
        self.topics = topics(shop)

    def database(self) -> Shop:
        return Shop(self._config, self._settings)

    def sources(self, schedule: Callable[[], Schedule]) -> list[Source]:
        shop = self._settings
        return [
            Purchases(shop, schedule(), shop.purchases_milli_per_s),
            TracerEvents(shop, schedule(), shop.tracer_events_milli_per_s),
            Updates(shop, schedule(), shop.updates_milli_per_s),
            Deletes(shop, schedule(), shop.deletes_milli_per_s),
        ]

    def events(self, library: Library) -> Pageviews:
        shop = self._settings
        users = library.partition_keys(Reserved.of(shop).last_user, shop.partitions)
        return Pageviews(shop, users, library.ffi)


def make(config: Config, read: Reader) -> ShopLoad:
    """Create the workload for the load generator; see `loadgen.workload`."""
    return ShopLoad(config, settings.load(config, read))
