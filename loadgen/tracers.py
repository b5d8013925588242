"""Tracer events that are only sent to the main topic: there is nothing to write to a database."""

from __future__ import annotations

from collections.abc import Iterator

from loadgen.schedule import Schedule
from loadgen.source import Order, Source


def partition_of(n: int, partitions: int) -> int:
    """Return the partition of tracer event n (0-based)."""
    return n // 2 % partitions


class TracerEvents(Source):
    """Schedule of the tracer events, which the workers send as derived events."""

    name = "tracer_event"
    help_text = "tracer events, which show how fresh views are"
    optional = True

    def __init__(
        self, schedule: Schedule, start_milli_per_s: int = 0, last_events: int = 0
    ) -> None:
        super().__init__(schedule, start_milli_per_s)
        self.last_events = last_events

    def make(self, _n: int, _due_ns: int) -> None:
        return None

    def due(self, now_ns: int) -> Iterator[Order]:
        """Count the events that became due; yield no order."""
        self.done += sum(1 for _ in super().due(now_ns))
        return iter(())
