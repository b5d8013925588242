"""Purchases as rows in MySQL. Their pageviews do not wait for that: views.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loadgen.config import Config
from loadgen.schedule import Schedule
from loadgen.sequence import Stream, purchase
from loadgen.source import Source

# user_id, item_id, quantity. What it costs is decided when it is written.
Buy = tuple[int, int, int]


class Purchases(Source):
    """Makes purchases."""

    name = "purchase"

    def __init__(self, config: Config, schedule: Schedule) -> None:
        super().__init__(schedule)
        self._config = config
        self._stream = Stream(config.seed, "purchases")

    def make(self, n: int, _due_ns: int) -> Buy:
        buy = purchase(self._stream, n, self._config.items, self._config.users)
        return buy.user_id, buy.item_id, buy.quantity

    def write(self, shop: Any, work: Sequence[Buy]) -> int:
        shop.write_purchases(work)
        return 0
