"""Periodic log lines of the generator: events sent and refused."""

from __future__ import annotations

import time
from typing import Callable

LOG_EVERY_S = 10.0


def noun(key: str) -> str:
    """Return the singular of a rate's key: pageviews_per_second -> "pageview"."""
    return key.partition("s_")[0]


class Report:
    """Logs the number of events every ten seconds."""

    def __init__(self, always: set[str], log: Callable[[str], None]) -> None:
        self._always, self._log = always, log
        self._since_s = time.monotonic()
        self._counts: dict[str, int] = {}
        self._refused = 0

    def log_if_due(self, done: dict[str, int], refused: int) -> None:
        """Log if ten seconds have passed. Counts are totals since the start, by key."""
        now_s = time.monotonic()
        elapsed_s = now_s - self._since_s
        if elapsed_s < LOG_EVERY_S:
            return
        for key, total in done.items():
            count = total - self._counts.get(key, 0)
            if count or key in self._always:
                self._log(
                    f"Simulated {count} {noun(key)} actions in the last {elapsed_s:.1f} seconds, "
                    f"effective rate {count / elapsed_s:.2f}/s"
                )
            self._counts[key] = total
        if refused > self._refused:
            self._log(
                f"Refused {refused - self._refused} pageviews in the last {elapsed_s:.1f} seconds: "
                "the Kafka client's queue is full, or they could not be delivered"
            )
            self._refused = refused
        self._since_s = now_s
