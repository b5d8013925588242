"""Tracer events: views of reserved ads, used to measure view lag.

Each partition has a campaign of its own with one ad, which no other event and no change of an ad
uses. So the windows of that campaign show how many of the partition's tracer events a view contains
(docs/views.md). Tracer event n (0-based) belongs to partition n // 2 % partitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from loadgen.source import Order, Source

# Ids of version 4 in form, but not random: those of partition p contain the number p + 1.
_CAMPAIGN, _AD = "00000000-0000-4000-8000-{:012d}", "00000000-0000-4000-a000-{:012d}"


class Reserved(NamedTuple):
    """Campaigns and ads that are reserved for tracer events: one of each per partition."""

    campaigns: list[str]
    ads: list[str]

    @classmethod
    def of(cls, partitions: int) -> Reserved:
        numbers = range(1, partitions + 1)
        return cls([_CAMPAIGN.format(n) for n in numbers], [_AD.format(n) for n in numbers])


def partition_of(n: int, partitions: int) -> int:
    """Return the partition of tracer event n."""
    return n // 2 % partitions


class TracerEvents(Source):
    """Schedule of the tracer events. The workers send them as derived events; there is nothing to
    write to the database."""

    name = "tracer_event"
    help_text = "tracer events, which show how fresh views are"
    optional = True

    def make(self, _n: int, _due_ns: int) -> None:
        return None

    def due(self, now_ns: int) -> Iterator[Order]:
        """Count the events that became due; yield no order."""
        self.done += sum(1 for _ in super().due(now_ns))
        return iter(())
