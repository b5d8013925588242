"""Purchases: each one first a pageview of the product, then a row in MySQL, which a thread of its
own writes.

MySQL may be slow or gone. Then purchases wait, up to a bound; those beyond it are refused and
counted. Neither the pageviews nor the control socket wait for it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any, Callable

from loadgen import counters as c
from loadgen.clock import Clock
from loadgen.config import Config
from loadgen.mysql import MySqlError, Shop
from loadgen.schedule import Schedule
from loadgen.sequence import CHANNELS, Stream, purchase
from loadgen.shop import prices_cents

FIRST_BACKOFF_S, MAX_BACKOFF_S = 0.2, 5.0
# Purchases that wait together are written together: at high rates one transaction each would be the
# limit.
MAX_PER_TRANSACTION = 200
# How many are made in one go, so that catching up never keeps the control socket waiting.
MAX_PER_TICK = 1_000
# A purchase to be written: user_id, item_id, quantity, due_ns.
Order = tuple[int, int, int, int]
SendView = Callable[[int, int, int], None]


class Purchases:
    """Makes purchases when they are due (`tick`, in the control process's loop) and writes them (a
    thread).
    """

    def __init__(
        self,
        config: Config,
        clock: Clock,
        schedule: Schedule,
        *,
        view: SendView,
        log: Callable[[str], None],
        shop: Any = None,
    ) -> None:
        self._config, self._clock, self.schedule = config, clock, schedule
        self._view, self._log = view, log
        self._shop = shop or Shop(config)
        self._stream = Stream(config.seed, "purchases")
        self._prices = prices_cents(config.seed, config.items)
        self._made = 0
        self._waiting: deque[Order] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._away_since_s = 0.0
        self.done = 0
        self.refused = 0
        self._refused_said = 0
        self.lateness = [0] * c.CLASSES
        self._thread = threading.Thread(target=self._write_all, name="purchases", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def tick(self, now_ns: int) -> None:
        """Make the purchases that have become due: send their pageviews off, and have their rows
        written.
        """
        if not self._thread.is_alive():
            raise RuntimeError("the thread that writes purchases has died; its traceback says why")
        due = min(self.schedule.due_by(now_ns), self._made + MAX_PER_TICK)
        while self._made < due:
            buy = purchase(self._stream, self._made, self._config.items, self._config.users)
            self._made += 1
            due_ns = self.schedule.due_at(self._made)
            page = (buy.item_id - 1) * len(CHANNELS) + buy.channel
            self._view(buy.user_id, page, due_ns)
            self._queue((buy.user_id, buy.item_id, buy.quantity, due_ns))
        self.schedule.forget(self._made)

    def _queue(self, order: Order) -> None:
        with self._changed:
            if len(self._waiting) >= self._config.purchase_backlog:
                self.refused += 1
            else:
                self._waiting.append(order)
                self._changed.notify()

    def say_refused(self) -> None:
        """Log how many were refused since the last call, if any."""
        refused = self.refused
        if refused > self._refused_said:
            self._log(
                f"Refused {refused - self._refused_said} purchases: "
                f"{self._config.purchase_backlog} wait for MySQL already"
            )
            self._refused_said = refused

    def stop(self, within_s: float) -> None:
        """Write what is waiting, for up to `within_s`; what is left then is refused."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join(within_s)
        with self._changed:
            left = len(self._waiting)
            self.refused += left
            self._waiting.clear()
        if left:
            self._log(f"Gave up {left} purchases that still waited for MySQL")

    def counts(self, now_ns: int) -> dict[str, int]:
        """due, done and refused so far."""
        return {"due": self.schedule.due_by(now_ns), "done": self.done, "refused": self.refused}

    def _write_all(self) -> None:
        """The thread: write what waits, in order, until stopped and nothing waits."""
        backoff_s = FIRST_BACKOFF_S
        batch: list[Order] = []
        while True:
            batch = (
                batch or self._next_batch()
            )  # after a failure the very same: part of it may be in MySQL already
            if not batch:
                return
            try:
                self._shop.write_purchases([order[:3] for order in batch], self._prices)
            except MySqlError as error:
                self._mourn(error, backoff_s)
                with self._changed:
                    self._changed.wait_for(lambda: self._stopping, timeout=backoff_s)
                    if self._stopping:
                        return  # stop() counts what is left
                backoff_s = min(backoff_s * 2, MAX_BACKOFF_S)
                continue
            backoff_s = FIRST_BACKOFF_S
            self._rejoice()
            self._count(batch)
            batch = []

    def _next_batch(self) -> list[Order]:
        """The oldest that wait, which stay in the queue until they are written; nothing once
        stopped and all is written.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stopping)
            return [self._waiting[i] for i in range(min(len(self._waiting), MAX_PER_TRANSACTION))]

    def _count(self, batch: list[Order]) -> None:
        now_ns = self._clock.now_ns()
        with self._changed:
            for order in batch:
                if self._waiting:  # else stop() has given them up meanwhile
                    self._waiting.popleft()
                    self.done += 1
                self.lateness[c.class_of((now_ns - order[3]) // 1000)] += 1

    def _mourn(self, error: MySqlError, backoff_s: float) -> None:
        if not self._away_since_s:
            self._away_since_s = time.monotonic()
        self._log(
            f"MySQL at {self._config.mysql_host}:{self._config.mysql_port} fails: {error}. "
            f"Trying again in {backoff_s:.1f} s; {len(self._waiting)} purchases wait."
        )

    def _rejoice(self) -> None:
        if self._away_since_s:
            self._log(
                f"MySQL is back after {time.monotonic() - self._away_since_s:.1f} s; "
                f"{len(self._waiting)} purchases wait."
            )
            self._away_since_s = 0.0
