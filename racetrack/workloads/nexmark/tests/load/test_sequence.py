"""Tests of Nexmark's events: pure functions of the seed, distributed as in nexmark/nexmark."""

import json
import math
from collections import Counter
from functools import cache
from typing import Any

import pytest

from loadgen.schedule import Schedule
from racetrack.workloads.nexmark.load.render import Renderer
from racetrack.workloads.nexmark.load.sequence import RESERVED_EVENTS
from racetrack.workloads.nexmark.load.texts import FIRST_NAMES, LAST_NAMES, Texts, prepare
from tests.loadgen.messages import message_ffi, rendered

SEED, PARTITIONS, DUE_MS = 42, 4, 1_763_712_000_123
RATE, HORIZON_MS = 20_000, 83  # 100 auctions come with 1,666 events
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


@pytest.mark.slow
def test_ids_refer_to_recent_records() -> None:
    """A bid may be on an auction that is up to ten auctions ahead."""
    last = {1: 999, 2: 999}
    streams = [events_of(partition, 2_000)[3:] for partition in range(PARTITIONS)]
    for row in zip(*streams, strict=True):
        for event in row:
            if event["event_type"] == 1:
                last[1] = event["auction"]["id"]
            elif event["event_type"] == 2:
                behind = last[1] - event["bid"]["auction"]
                assert -10 <= behind <= 100


@pytest.mark.slow
def test_prices_are_uniform_in_their_logarithm() -> None:
    _, auctions, bids = sample()
    for prices in ([b["price"] for b in bids], [a["initialBid"] for a in auctions]):
        assert min(prices) >= 100
        assert max(prices) < 10**8
        logs = [math.log10(price) for price in prices]
        assert mean(logs) == near(5)
        variance = mean([(value - 5) ** 2 for value in logs])
        assert variance == pytest.approx(3, rel=2 * WITHIN)
    assert mean([b["price"] for b in bids]) == near((10**8 - 100) / (6 * math.log(10)))
    assert all(a["reserve"] >= a["initialBid"] + 100 for a in auctions)
    # In q15 and others, prices have three ranks.
    ranks = Counter(min(2, (len(str(b["price"])) - 3) // 2) for b in bids)
    assert ranks[2] / len(bids) == near(1 / 3)


@pytest.mark.slow
def test_texts_have_the_published_lengths() -> None:
    """Texts are shorter by the spaces at their ends, about 0.16 of a character."""
    persons, auctions, bids = sample()
    assert mean([len(a["itemName"]) for a in auctions]) == near(11 - 0.16)
    assert mean([len(a["description"]) for a in auctions]) == near(51 - 0.16)
    names = {f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES}
    assert {p["name"] for p in persons} == names
    states = Counter(p["state"] for p in persons)
    assert all(count / len(persons) == pytest.approx(1 / 6, rel=0.05) for count in states.values())
    assert all(len(p["creditCard"]) == 19 for p in persons)
    # `extra` fills up to 200, 500 and 100 bytes, counting eight bytes per number.
    for records, numbers, average in ((persons, 1, 200), (auctions, 6, 500), (bids, 4, 100)):
        left_out = ("channel", "url")
        sizes = [
            8 * numbers
            + sum(len(v) for k, v in each.items() if isinstance(v, str) and k not in left_out)
            for each in records
        ]
        assert mean([float(size) for size in sizes]) == near(average)


@pytest.mark.slow
def test_auctions_expire_after_a_number_of_events() -> None:
    _, auctions, _ = sample()
    lives = [float(a["expires"] - DUE_MS) for a in auctions]
    assert (min(lives), max(lives)) == (1, 2 * HORIZON_MS)
    assert mean(lives) == near(0.5 + HORIZON_MS)
    assert {a["category"] for a in auctions} == set(range(10, 15))


def test_another_rate_changes_when_auctions_expire_and_nothing_else() -> None:
    renderer = Renderer(message_ffi(), texts(), BATCH, SEED, PARTITIONS)
    found = []
    for per_s in (RATE, 10 * RATE):
        share = renderer.share(0)
        renderer.follow(share, schedule(per_s))
        renderer.clear()
        renderer.events(share, 3, 1_000, DUE_MS)
        found.append([json.loads(value) for _, value in rendered(renderer)])
    slow, fast = found
    lives = [
        [e["auction"].pop("expires") - DUE_MS for e in events if e["event_type"] == 1]
        for events in found
    ]
    assert slow == fast
    assert max(lives[1]) <= 2 * HORIZON_MS / 10 < max(lives[0])
