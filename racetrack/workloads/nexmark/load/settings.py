"""Settings of the load generator for the workload `nexmark`, with their defaults."""

from __future__ import annotations

from dataclasses import dataclass

from loadgen.config import Config, Reader

# The query whose tracer events are auctions. Those of all others are bids.
BY_AUCTIONS = "q3"


@dataclass(frozen=True)
class NexmarkSettings:
    """The topic, its number of partitions, and the initial rate of tracer events in thousandths per
    second. `traces_auctions` is True if tracer events are auctions, not bids."""

    seed: int
    topic: str
    partitions: int
    traces_auctions: bool = False
    tracer_events_milli_per_s: int = 0


def load(config: Config, read: Reader) -> NexmarkSettings:
    """Load the settings from the environment. Raises ConfigError for an invalid one."""
    return NexmarkSettings(
        seed=config.seed,
        topic=read.text("EVENTS_TOPIC", "nexmark"),
        partitions=config.partitions,
        traces_auctions=read.text("NEXMARK_QUERIES", "") == BY_AUCTIONS,
        tracer_events_milli_per_s=read.rate("TRACER_EVENTS_PER_SECOND", "0"),
    )
