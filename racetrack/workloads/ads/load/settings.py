"""Settings of the load generator for the workload `ads`, with their defaults."""

from __future__ import annotations

from dataclasses import dataclass

from loadgen.config import Config, Reader

MAX_CAMPAIGNS = 10_000
MAX_ADS_PER_CAMPAIGN = 100
# With an exponent of 4, more than 90 % of the events are of the same ad.
MAX_KEY_SKEW = 4.0
# A worker prepares a text for each user and page, which takes 100 MB at this many users.
MAX_USERS = 10_000
# Every event with a padding field fits into the minimum.
MIN_EVENT_BYTES, MAX_EVENT_BYTES = 280, 65_536


@dataclass(frozen=True)
class AdsSettings:
    """The numbers of campaigns, ads and users, the topic, whether times are skewed, and the skew of
    the ads' popularity (exponent of Zipf's law). `event_bytes` is the size to which events are
    padded; 0: no padding. `redis` is the host and port of a Redis that the engine queries for
    campaigns; None if it queries none. `updates_milli_per_s` and
    `tracer_events_milli_per_s` are the initial rates of moves and of tracer events, in thousandths
    per second."""

    seed: int
    topic: str
    partitions: int
    campaigns: int
    ads_per_campaign: int
    with_skew: bool
    key_skew: float
    users: int
    event_bytes: int
    updates_milli_per_s: int = 0
    tracer_events_milli_per_s: int = 0
    redis: tuple[str, int] | None = None


def load(config: Config, read: Reader) -> AdsSettings:
    """Load the settings from the environment. Raises ConfigError for an invalid one."""
    has_redis = read.text("LOADGEN_REDIS", "")
    return AdsSettings(
        seed=config.seed,
        topic=read.text("EVENTS_TOPIC", "ad-events"),
        partitions=config.partitions,
        campaigns=read.whole("ADS_CAMPAIGNS", 100, 1, MAX_CAMPAIGNS),
        ads_per_campaign=read.whole("ADS_PER_CAMPAIGN", 10, 1, MAX_ADS_PER_CAMPAIGN),
        with_skew=read.choice("ADS_WITH_SKEW", "false", ("false", "true")) == "true",
        key_skew=read.number("ADS_KEY_SKEW", 0.0, 0.0, MAX_KEY_SKEW),
        users=read.whole("ADS_USERS", 100, 1, MAX_USERS),
        event_bytes=read.size("ADS_EVENT_BYTES", MIN_EVENT_BYTES, MAX_EVENT_BYTES),
        updates_milli_per_s=read.rate("UPDATES_PER_SECOND", "0"),
        tracer_events_milli_per_s=read.rate("TRACER_EVENTS_PER_SECOND", "0"),
        redis=read.endpoint("LOADGEN_REDIS", "") if has_redis else None,
    )
