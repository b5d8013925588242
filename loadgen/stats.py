"""Statistics: the line of JSON for `stats` and `watch`, and the periodic lines of the log."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple

from loadgen.clock import NS_PER_MS, NS_PER_S
from loadgen.config import show_rate
from loadgen.counters import quantile_us

SAMPLE_EVERY_NS = 100 * NS_PER_MS
RATE_WINDOW_NS = 1 * NS_PER_S
LATENESS_WINDOW_NS = 10 * NS_PER_S
LOG_EVERY_S = 10.0


class Sample(NamedTuple):
    """Totals at a time: completed events, and the histogram of their lateness."""

    at_ns: int
    done: int
    lateness: Sequence[int]


class Window:
    """Recent rate and lateness of one kind of event, from samples every SAMPLE_EVERY_NS."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque()

    def add(self, sample: Sample) -> None:
        """Add a sample and drop those older than the window."""
        self._samples.append(sample)
        while sample.at_ns - self._samples[0].at_ns > LATENESS_WINDOW_NS:
            self._samples.popleft()

    def achieved_per_s(self) -> float:
        """Return the rate over the last RATE_WINDOW_NS."""
        if len(self._samples) < 2:
            return 0.0
        last = self._samples[-1]
        first = next(s for s in self._samples if last.at_ns - s.at_ns <= RATE_WINDOW_NS)
        if first is last:
            first = self._samples[-2]
        return round((last.done - first.done) * NS_PER_S / (last.at_ns - first.at_ns), 2)

    def lateness_ms(self) -> dict[str, float]:
        """Return p50, p99 and max of the lateness over the last LATENESS_WINDOW_NS, milliseconds,
        rounded up by at most 3 %."""
        if not self._samples:
            return {"p50": 0.0, "p99": 0.0, "max": 0.0}
        recent = [b - a for a, b in zip(self._samples[0].lateness, self._samples[-1].lateness)]
        return {
            name: quantile_us(recent, q) / 1000
            for name, q in (("p50", 0.5), ("p99", 0.99), ("max", 1.0))
        }


def rate_number(milli_per_s: int) -> Any:
    """Return a rate as a JSON number, an integer if possible."""
    text = show_rate(milli_per_s)
    return float(text) if "." in text else int(text)


def events_entry(
    milli_per_s: int, window: Window, due: list[int], handed: list[int], refused: list[int]
) -> dict[str, Any]:
    """Return the statistics of events, for `stats`. Lists have one number per partition."""
    return {
        "rate": rate_number(milli_per_s),
        "achieved_per_s": window.achieved_per_s(),
        "due": due,
        "handed": handed,
        "refused": refused,
        "lateness_ms": window.lateness_ms(),
    }


def source_entry(milli_per_s: int, window: Window, counts: dict[str, Any]) -> dict[str, Any]:
    """Return the statistics of a source of database changes, for `stats`."""
    return {
        "rate": rate_number(milli_per_s),
        "achieved_per_s": window.achieved_per_s(),
        **counts,
        "lateness_ms": window.lateness_ms(),
    }


def to_line(entry: dict[str, Any]) -> str:
    """Format an entry as one line."""
    return json.dumps(entry, separators=(", ", ": "))


def noun(key: str) -> str:
    """Return the singular of a rate's key: events_per_second -> "event"."""
    return key.partition("s_")[0]


class PeriodicLog:
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
                f"Refused {refused - self._refused} events in the last {elapsed_s:.1f} seconds: "
                "the Kafka client's queue is full, or they could not be delivered"
            )
            self._refused = refused
        self._since_s = now_s
