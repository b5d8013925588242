"""Tests of the renderer: its bytes are the events of the sequence as JSON."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.config import Reader
from loadgen.config import load as load_config
from racetrack.workloads.nexmark.load.events import NexmarkEvents
from racetrack.workloads.nexmark.load.render import Renderer, message
from racetrack.workloads.nexmark.load.sequence import RESERVED_EVENTS, Auction, event
from racetrack.workloads.nexmark.load.settings import NexmarkSettings, load
from racetrack.workloads.nexmark.tests.load.test_sequence import schedule, texts
from tests.loadgen.messages import message_ffi, rendered

CAPACITY, SEED, PARTITIONS = 64, 42, 4
DUE_MS = 1_763_712_000_123


def settings_of(**given: str) -> NexmarkSettings:
    env = {"WORKLOAD": "nexmark", "EVENTS_PARTITIONS": str(PARTITIONS), **given}
    return load(load_config(env), Reader(env))


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    return Renderer(message_ffi(), texts(), CAPACITY, SEED, PARTITIONS)


@pytest.mark.slow
@settings(max_examples=200)
@given(
    partition=st.integers(0, PARTITIONS - 1),
    first=st.integers(RESERVED_EVENTS, 2**40).filter(lambda n: n % 2**32 <= 2**32 - CAPACITY),
    count=st.integers(1, CAPACITY),
    due_ms=st.integers(10**12, 9 * 10**12),
    per_s=st.integers(1, 10**7),
)
def test_rendered_bytes_are_the_events_of_the_sequence(
    renderer: Renderer,
    partition: int,
    first: int,
    count: int,
    due_ms: int,
    per_s: int,
) -> None:
    share = renderer.share(partition)
    renderer.follow(share, schedule(per_s))
    renderer.clear()
    renderer.events(share, first, count, due_ms)
    expected = [message(event(share, first + i, texts(), due_ms), due_ms) for i in range(count)]
    assert rendered(renderer) == [(None, value) for value in expected]


def test_a_partition_begins_with_a_seller_and_two_auctions_that_never_expire(
    renderer: Renderer,
) -> None:
    ids = set()
    for partition in range(PARTITIONS):
        renderer.clear()
        renderer.events(renderer.share(partition), 0, 4, DUE_MS)
        seller, first, second, _ = (json.loads(value) for _, value in rendered(renderer))
        assert (seller["event_type"], seller["person"]["state"]) == (0, "OR")
        auctions = [first["auction"], second["auction"]]
        assert [each["category"] for each in auctions] == [10, 1000 + partition]
        assert {each["seller"] for each in auctions} == {seller["person"]["id"]}
        assert all(each["expires"] > 2 * DUE_MS for each in auctions)
        assert all(each["id"] % 123 == 0 for each in auctions)
        ids |= {each["id"] for each in auctions}
    assert len(ids) == 2 * PARTITIONS


@pytest.mark.slow
def test_tracer_events_are_bids_whose_prices_count_them_per_auction() -> None:
    events = NexmarkEvents(settings_of(), message_ffi())
    renderer, highest = events.renderer(1), dict[int, int]()
    for n in range(6 * PARTITIONS):
        partition, content = events.derived("tracer_event", n)
        assert partition == n // 2 % PARTITIONS
        renderer.clear()
        renderer.one(content, DUE_MS)
        ((_, value),) = rendered(renderer)
        bid = json.loads(value)["bid"]
        assert bid["price"] == highest.get(bid["auction"], 0) + 1
        highest[bid["auction"]] = bid["price"]
        assert bid["channel"] == f"tracer-{partition + 1}"
    assert highest and set(highest.values()) == {3}


def test_for_q3_they_are_auctions_of_the_reserved_seller() -> None:
    events = NexmarkEvents(settings_of(NEXMARK_QUERIES="q3"), message_ffi())
    found = [events.derived("tracer_event", n) for n in range(6 * PARTITIONS)]
    auctions = [(partition, each) for partition, each in found if isinstance(each, Auction)]
    assert len(auctions) == len(found)
    for partition in range(PARTITIONS):
        ids = [each.id % 2**32 for of, each in auctions if of == partition]
        assert ids == [1, 2, 3, 4, 5, 6]
    assert {each.category for _, each in auctions} == {10}
