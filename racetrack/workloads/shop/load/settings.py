"""Settings of the load generator for the shop, with their defaults."""

from __future__ import annotations

from dataclasses import dataclass

from loadgen.config import Config, Reader

# A worker prepares a text for each page and channel, which takes 80 MB at this many users.
MAX_USERS = 200_000
MAX_ITEMS = 200_000


@dataclass(frozen=True)
class ShopSettings:
    """Size of the shop, and initial rates in thousandths of an event per second (`milli_per_s`)."""

    seed: int
    topic: str
    partitions: int
    users: int
    items: int
    flagged_profiles: int
    purchases_milli_per_s: int
    tracer_events_milli_per_s: int
    updates_milli_per_s: int
    deletes_milli_per_s: int


def load(config: Config, read: Reader) -> ShopSettings:
    """Load the settings from the environment. Raises ConfigError for an invalid one."""
    users = read.whole("SHOP_USERS", 10_000, 1, MAX_USERS)
    return ShopSettings(
        seed=config.seed,
        topic=read.text("PAGEVIEWS_TOPIC", "pageviews"),
        partitions=config.partitions,
        users=users,
        items=read.whole("SHOP_ITEMS", 1_000, 1, MAX_ITEMS),
        flagged_profiles=read.whole("SHOP_FLAGGED_PROFILES", min(50, users), 1, users),
        purchases_milli_per_s=read.rate("PURCHASES_PER_SECOND_START", "3"),
        tracer_events_milli_per_s=read.rate("TRACER_EVENTS_PER_SECOND", "0"),
        updates_milli_per_s=read.rate("UPDATES_PER_SECOND", "0"),
        deletes_milli_per_s=read.rate("DELETES_PER_SECOND", "0"),
    )
