"""The part of the load generator's settings that is this workload's, with their defaults."""

from __future__ import annotations

from dataclasses import dataclass

from loadgen.config import Config, Reader

MAX_CAMPAIGNS = 10_000
MAX_ADS_PER_CAMPAIGN = 100


@dataclass(frozen=True)
class AdsSettings:
    """How many ads there are, and where their events go; whether their times are skewed; and where
    the Redis is that engines look ads up in (host, port), if there is one.
    """

    seed: int
    topic: str
    partitions: int
    campaigns: int
    ads_per_campaign: int
    with_skew: bool
    redis: tuple[str, int] | None = None


def load(config: Config, read: Reader) -> AdsSettings:
    """The settings, by the names of the environment. ConfigError names one that can't be used."""
    has_redis = read.text("LOADGEN_REDIS", "")
    return AdsSettings(
        seed=config.seed,
        topic=read.text("PAGEVIEWS_TOPIC", "ad-events"),
        partitions=config.partitions,
        campaigns=read.whole("ADS_CAMPAIGNS", 100, 1, MAX_CAMPAIGNS),
        ads_per_campaign=read.whole("ADS_PER_CAMPAIGN", 10, 1, MAX_ADS_PER_CAMPAIGN),
        with_skew=read.choice("ADS_WITH_SKEW", "false", ("false", "true")) == "true",
        redis=read.endpoint("LOADGEN_REDIS", "") if has_redis else None,
    )
