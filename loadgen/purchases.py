"""Purchases: each one first a pageview of the product, then a row in MySQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

from loadgen.config import Config
from loadgen.schedule import Schedule
from loadgen.sequence import CHANNELS, Stream, purchase
from loadgen.source import Source

SendView = Callable[[int, int, int], None]
# user_id, item_id, quantity. What it costs is decided when it is written.
Buy = tuple[int, int, int]


class Purchases(Source):
    """Makes purchases, and sends their pageviews off: those do not wait for MySQL."""

    name = "purchase"

    def __init__(self, config: Config, schedule: Schedule, view: SendView) -> None:
        super().__init__(schedule)
        self._config, self._view = config, view
        self._stream = Stream(config.seed, "purchases")

    def make(self, n: int, due_ns: int) -> Buy:
        buy = purchase(self._stream, n, self._config.items, self._config.users)
        self._view(buy.user_id, (buy.item_id - 1) * len(CHANNELS) + buy.channel, due_ns)
        return buy.user_id, buy.item_id, buy.quantity

    def write(self, shop: Any, work: Sequence[Buy]) -> int:
        shop.write_purchases(work)
        return 0
