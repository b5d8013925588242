"""Tracer events: views of reserved ads, used to measure view lag.

Each partition has a campaign of its own with one ad, which no other event and no change of an ad
uses. So the windows of that campaign show how many of the partition's tracer events a view contains
(docs/views.md)."""

from __future__ import annotations

from typing import NamedTuple

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
