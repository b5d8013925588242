"""Purchases, which are inserted into MySQL. Each also causes a pageview (`pageviews.py`), which is
sent without waiting for the commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loadgen.popularity import zipf
from loadgen.schedule import Schedule
from loadgen.sequence import Stream
from loadgen.source import Source

from racetrack.workloads.shop.load.sequence import purchase
from racetrack.workloads.shop.load.settings import ShopSettings

# (user_id, item_id, quantity). The price is looked up when the row is inserted.
Buy = tuple[int, int, int]


class Purchases(Source):
    """Source of purchases."""

    name = "purchase"
    help_text = "purchases"

    def __init__(
        self, settings: ShopSettings, schedule: Schedule, start_milli_per_s: int = 0
    ) -> None:
        super().__init__(schedule, start_milli_per_s)
        self._items = zipf(settings.items, settings.key_skew)
        self._users = zipf(settings.users, settings.key_skew)
        self._stream = Stream(settings.seed, "purchases")

    def make(self, n: int, _due_ns: int) -> Buy:
        buy = purchase(self._stream, n, self._items, self._users)
        return buy.user_id, buy.item_id, buy.quantity

    def write(self, database: Any, work: Sequence[Buy]) -> int:
        database.write_purchases(work)
        return 0
