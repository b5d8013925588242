"""Tests of the sequence of events and of the renderer that writes them: a seed always gives the
same events, and valid JSON."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.popularity import Popularity, zipf
from loadgen.sequence import Stream
from racetrack.workloads.shop.load.render import Renderer, Share, to_json
from racetrack.workloads.shop.load.render_skewed import SkewedRenderer
from racetrack.workloads.shop.load.sequence import (
    CHANNELS,
    page_number,
    page_url,
    pageview,
)
from racetrack.workloads.shop.load.tracers import Reserved
from tests.loadgen.messages import message_ffi, rendered

USERS, ITEMS, CAPACITY = 300, 40, 64
EVEN_ITEMS, EVEN_USERS = zipf(ITEMS), zipf(USERS)
EXPONENT, SEED = 1.2, 42
POPULAR = zipf(ITEMS, EXPONENT), zipf(USERS, EXPONENT)
STAMP_MS = 1_763_712_000_123
PARTITION_USERS = [user for user in range(1, USERS + 1) if user % 3 == 0]
VIEWERS = Popularity([user**-EXPONENT for user in PARTITION_USERS])
SHOP = Reserved(USERS, ITEMS, partitions=3)


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    return Renderer(message_ffi(), SHOP, CAPACITY)


@pytest.fixture(scope="module")
def skewed() -> SkewedRenderer:
    return SkewedRenderer(
        message_ffi(),
        SHOP,
        CAPACITY,
        SEED,
        [[], PARTITION_USERS],
        items=POPULAR[0],
        users=POPULAR[1],
        viewers=[VIEWERS, VIEWERS],
    )


@settings(max_examples=50)
@given(
    seed=st.integers(0, 2**63 - 1),
    first=st.integers(0, 2**33).filter(lambda n: (n & 0xFFFFFFFF) < 2**32 - CAPACITY),
    count=st.integers(1, CAPACITY),
    stamp_ms=st.integers(10**12, 10**13 - 1),
)
def test_rendered_bytes_are_the_events_of_the_sequence(
    renderer: Renderer, skewed: SkewedRenderer, seed: int, first: int, count: int, stamp_ms: int
) -> None:
    stream, users = Stream(seed, "pageviews/1"), renderer.users_array(PARTITION_USERS)
    renderer.clear()
    renderer.events(Share(stream, users), first, count, stamp_ms)
    even = EVEN_ITEMS, EVEN_USERS, zipf(len(PARTITION_USERS))
    assert rendered(renderer) == expected(stream, first, count, stamp_ms, even)
    first %= 2**32
    skewed.clear()
    skewed.events(skewed.share(1), first, count, stamp_ms)
    of_seed, popular = Stream(SEED, "pageviews/1"), (*POPULAR, VIEWERS)
    assert rendered(skewed) == expected(of_seed, first, count, stamp_ms, popular)


def expected(
    stream: Stream, first: int, count: int, stamp_ms: int, of: tuple[Popularity, ...]
) -> list[tuple[bytes, bytes]]:
    """Return the messages of a partition, as keys and values."""
    events = (pageview(stream, n, PARTITION_USERS, *of) for n in range(first, first + count))
    return [(b"%d" % e.user_id, to_json(e.user_id, e.url, e.channel, stamp_ms)) for e in events]


@pytest.mark.slow
@pytest.mark.parametrize(("size", "users"), [(128, 200_000), (129, 300), (65_536, 300)])
def test_every_message_has_the_size_of_the_setting(size: int, users: int) -> None:
    renderer = Renderer(message_ffi(), Reserved(users, 9, partitions=3), 3, size=size)
    most = Reserved(users, 9, partitions=3).last_user
    for event in ((1, 0), (most, len(CHANNELS) * (9 + 3 + most) - 5)):
        renderer.one(event, STAMP_MS)
    renderer.one((7, 3 * len(CHANNELS) + 1), STAMP_MS)
    messages = rendered(renderer)
    assert [len(value) for _, value in messages] == [size] * 3
    record = [json.loads(value) for _, value in messages]
    assert record[1]["user_id"] == most
    assert list(record[2]) == ["user_id", "url", "channel", "received_at", "padding"]
    assert messages[2][1] == to_json(7, "/products/4", "paid search", STAMP_MS, size)


def test_the_mixture_is_half_products_half_profiles_and_even() -> None:
    stream, n = Stream(42, "pageviews/0"), 20_000
    numbers = [page_number(stream.draw(i)[1], EVEN_ITEMS, EVEN_USERS) for i in range(n)]
    products = [x for x in numbers if page_url(x, ITEMS).startswith("/products/")]
    assert len(products) / n == pytest.approx(0.5, abs=0.02)
    for channel in range(len(CHANNELS)):
        share = sum(x % len(CHANNELS) == channel for x in numbers) / n
        assert share == pytest.approx(0.2, abs=0.02)
    assert {page_url(x, ITEMS) for x in products} == {f"/products/{i + 1}" for i in range(ITEMS)}
