"""Writes database changes to MySQL in due order, in its own thread.

While MySQL is slow or down, a limited number of changes wait; further changes are refused and
counted. Events and the control socket are not delayed."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Callable

from loadgen import counters as c
from loadgen.clock import Clock
from loadgen.config import Config
from loadgen.mysql import MySqlError
from loadgen.source import Order, Source

FIRST_BACKOFF_S, MAX_BACKOFF_S = 0.2, 5.0
# Pending changes share a transaction: one transaction per change would limit the rate.
MAX_PER_TRANSACTION = 200


class Writer:
    """Collects due changes from its sources (`tick`, called in the main loop) and writes them (in a
    thread)."""

    def __init__(
        self,
        config: Config,
        clock: Clock,
        sources: Sequence[Source],
        database: Any,
        log: Callable[[str], None],
    ) -> None:
        self._config, self._clock, self._sources, self._log = config, clock, sources, log
        self._database = database
        self._waiting: deque[Order] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._down_since_s = 0.0
        self._refused_logged = {source.name: 0 for source in sources}
        self._thread = threading.Thread(target=self._write_all, name="writer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def tick(self, now_ns: int) -> None:
        """Queue the changes that became due, in due order."""
        if not self._thread.is_alive():
            raise RuntimeError("the thread that writes to MySQL has died; see its traceback")
        due = itertools.chain.from_iterable(source.due(now_ns) for source in self._sources)
        for order in sorted(due, key=lambda order: order.due_ns):
            self._queue(order)

    def _queue(self, order: Order) -> None:
        with self._changed:
            if len(self._waiting) >= self._config.backlog:
                order.source.refused += 1
            else:
                self._waiting.append(order)
                self._changed.notify()

    def log_refused(self) -> None:
        """Log the changes refused since the last call, if any."""
        for source in self._sources:
            refused, said = source.refused, self._refused_logged[source.name]
            if refused > said:
                self._log(
                    f"Refused {refused - said} {source.name}s: {self._config.backlog}"
                    " changes are already waiting for MySQL, or no row is left to change"
                )
                self._refused_logged[source.name] = refused

    def stop(self, within_s: float) -> None:
        """Write pending changes for up to `within_s`; refuse the rest."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join(within_s)
        with self._changed:
            left = len(self._waiting)
            for order in self._waiting:
                order.source.refused += 1
            self._waiting.clear()
        if left:
            self._log(f"Gave up {left} changes that were still waiting for MySQL")

    def _write_all(self) -> None:
        """Write pending changes in order. Return after `stop`, once none are left or a write fails
        (runs in the thread)."""
        backoff_s = FIRST_BACKOFF_S
        batch: list[Order] = []
        while True:
            # After a failure retry the same batch: part of it may be in MySQL already.
            batch = batch or self._next_batch()
            if not batch:
                return
            try:
                unchanged = batch[0].source.write(self._database, [order.work for order in batch])
            except MySqlError as error:
                self._log_failure(error, backoff_s)
                with self._changed:
                    self._changed.wait_for(lambda: self._stopping, timeout=backoff_s)
                    if self._stopping:
                        return  # stop() counts what is left
                backoff_s = min(backoff_s * 2, MAX_BACKOFF_S)
                continue
            backoff_s = FIRST_BACKOFF_S
            self._log_recovery()
            self._count(batch, unchanged)
            batch = []

    def _next_batch(self) -> list[Order]:
        """Return the oldest pending changes of one source, without removing them from the queue.

        Wait until there are any; return an empty list after `stop` if none are left.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stopping)
            oldest = itertools.islice(self._waiting, MAX_PER_TRANSACTION)
            return list(
                itertools.takewhile(lambda order: order.source is self._waiting[0].source, oldest)
            )

    def _count(self, batch: list[Order], unchanged: int) -> None:
        now_ns = self._clock.now_ns()
        with self._changed:
            for order in batch:
                order.source.lateness[c.class_of((now_ns - order.due_ns) // 1000)] += 1
            source = batch[0].source
            if self._waiting:  # otherwise stop() has refused them
                for _ in batch:
                    self._waiting.popleft()
                source.done += len(batch) - unchanged
                source.refused += unchanged

    def _log_failure(self, error: MySqlError, backoff_s: float) -> None:
        if not self._down_since_s:
            self._down_since_s = time.monotonic()
        self._log(
            f"MySQL at {self._config.mysql_host}:{self._config.mysql_port} fails: {error}. "
            f"Trying again in {backoff_s:.1f} s; {self._waiting_text()}."
        )

    def _log_recovery(self) -> None:
        if self._down_since_s:
            self._log(
                f"MySQL is back after {time.monotonic() - self._down_since_s:.1f} s; "
                f"{self._waiting_text()}."
            )
            self._down_since_s = 0.0

    def _waiting_text(self) -> str:
        with self._changed:
            count = {source.name: 0 for source in self._sources}
            for order in self._waiting:
                count[order.source.name] += 1
        return ", ".join(f"{n} {name}s" for name, n in count.items() if n) + " wait"
