"""Tests of Nexmark's events: pure functions of the seed, distributed as in nexmark/nexmark."""

import json
from collections import Counter
from functools import cache
from typing import Any

import pytest

from loadgen.schedule import Schedule
from racetrack.workloads.nexmark.load.render import Renderer
from racetrack.workloads.nexmark.load.sequence import RESERVED_EVENTS
from racetrack.workloads.nexmark.load.texts import Texts, prepare
from tests.loadgen.messages import message_ffi, rendered

SEED, PARTITIONS, DUE_MS = 42, 4, 1_763_712_000_123
RATE = 20_000
BATCH = 5_000
EVENTS = 300_000
WITHIN = 0.01


def schedule(per_s: int) -> Schedule:
    """Return the schedule of a partition at this rate over all partitions."""
    return Schedule.starting(0, per_s * 1000, PARTITIONS * 1000 * 10**9)


def events_of(partition: int, count: int, seed: int = SEED) -> list[dict[str, Any]]:
    renderer = Renderer(message_ffi(), texts(), BATCH, seed, PARTITIONS)
    share = renderer.share(partition)
    renderer.follow(share, schedule(RATE))
    found = []
    for first in range(0, count, BATCH):
        renderer.clear()
        renderer.events(share, first, min(BATCH, count - first), DUE_MS)
        found += [json.loads(value) for _, value in rendered(renderer)]
    return found


@cache
def texts() -> Texts:
    """Return the texts of SEED, which take seconds to make."""
    return prepare(SEED)


@cache
def sample() -> tuple[list[dict[str, Any]], ...]:
    """Return the persons, auctions and bids of EVENTS events over all partitions."""
    kinds: tuple[list[dict[str, Any]], ...] = ([], [], [])
    for partition in range(PARTITIONS):
        for event in events_of(partition, EVENTS // PARTITIONS)[RESERVED_EVENTS:]:
            kind = event["event_type"]
            kinds[kind].append(event[("person", "auction", "bid")[kind]])
    return kinds


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def near(value: float) -> Any:
    return pytest.approx(value, rel=WITHIN)


def test_a_seed_gives_the_same_events_and_another_gives_others() -> None:
    assert events_of(1, 200) == events_of(1, 200)
    assert events_of(1, 200)[3:] != events_of(1, 200, seed=7)[3:]


@pytest.mark.slow
def test_kinds_have_the_published_proportions() -> None:
    persons, auctions, bids = map(len, sample())
    assert auctions == near(3 * persons)
    assert bids == near(46 * persons)


@pytest.mark.slow
def test_ids_of_persons_and_auctions_are_consecutive_over_all_partitions() -> None:
    persons, auctions, _ = sample()
    for records in (persons, auctions):
        assert sorted(each["id"] for each in records) == list(range(1000, 1000 + len(records)))


@pytest.mark.slow
def test_hot_keys_are_as_frequent_as_published() -> None:
    """Ids that are not hot may coincide with hot ones, in about one event of a hundred."""
    _, auctions, bids = sample()
    hot_sellers = sum(each["seller"] % 100 == 0 for each in auctions) / len(auctions)
    hot_auctions = sum(each["auction"] % 100 == 0 for each in bids) / len(bids)
    hot_bidders = sum(each["bidder"] % 100 == 1 for each in bids) / len(bids)
    assert hot_sellers == near(0.75 + 0.25 / 100)
    assert hot_auctions == near(0.5 + 0.5 / 100)
    assert hot_bidders == near(0.75 + 0.25 / 100)
    channels = Counter(each["channel"] for each in bids)
    assert len(channels) > 10_000 - 10
    for name in ("Google", "Facebook", "Baidu", "Apple"):
        assert channels[name] / len(bids) == near(0.125)
