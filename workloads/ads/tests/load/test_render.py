"""Sequence and renderer: the same seed gives the same events, and they are JSON byte for byte."""

import hashlib
import json
import re
from collections import Counter
from typing import Any
from uuid import UUID

import pytest
from cffi import FFI  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.sequence import Stream
from workloads.ads.load.render import SLOT_BYTES, Renderer, tail_piece, to_json
from workloads.ads.load.sequence import (
    AD_TYPES,
    EVENT_TYPES,
    KINDS,
    Ids,
    ad_and_kind,
    ad_event,
    uuids,
)
from workloads.ads.tests.load.ads_settings import load

CAPACITY = 64
DUE_MS = 1_763_712_000_123
SETTINGS = load()
IDS = Ids.of(SETTINGS)
# As yahoo/streaming-benchmarks writes it, but that the time is a number there in quotes.
PUBLISHED = re.compile(
    r'\{"user_id": "[0-9a-f-]{36}", "page_id": "[0-9a-f-]{36}", "ad_id": "[0-9a-f-]{36}",'
    r' "ad_type": "[a-z-]+", "event_type": "[a-z]+", "event_time": \d{13},'
    r' "ip_address": "1\.2\.3\.4"\}'
)


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    ffi = FFI()
    ffi.cdef(
        "typedef struct { int err; void *rkt; int32_t partition; char *payload; size_t len;"
        " char *key; size_t key_len; int64_t offset; void *_private; } rd_kafka_message_t;"
    )
    return Renderer(ffi, IDS, CAPACITY, SETTINGS.seed)


def rendered(renderer: Renderer) -> list[bytes]:
    """Every message in the batch; none has a key."""
    ffi: Any = renderer._ffi
    messages = [renderer.messages[i] for i in range(renderer.count)]
    assert all(m.key == ffi.NULL and m.key_len == 0 for m in messages)
    return [ffi.buffer(m.payload, m.len)[:] for m in messages]


@settings(max_examples=50)
@given(
    seed=st.integers(0, 2**63 - 1),
    first=st.integers(0, 2**33).filter(lambda n: (n & 0xFFFFFFFF) <= 2**32 - CAPACITY),
    count=st.integers(1, CAPACITY),
    due_ms=st.integers(10**12, 10**13 - 1),
)
def test_rendered_bytes_are_the_events_of_the_sequence(
    renderer: Renderer, seed: int, first: int, count: int, due_ms: int
) -> None:
    renderer.clear()
    renderer.events(Stream(seed, "ad events/1"), first, count, due_ms)
    stream = Stream(seed, "ad events/1")
    events = [ad_event(stream, first + i, IDS) for i in range(count)]
    assert rendered(renderer) == [to_json(event, due_ms) for event in events]


def test_a_message_has_the_published_form(renderer: Renderer) -> None:
    renderer.clear()
    renderer.events(renderer.share(0), 0, CAPACITY, DUE_MS)
    for message in rendered(renderer):
        assert PUBLISHED.fullmatch(message.decode())
        assert len(message) < SLOT_BYTES
        told = json.loads(message)
        assert told["event_time"] == DUE_MS
        assert told["ad_id"] in IDS.ads


def test_groups_with_different_times_share_a_batch(renderer: Renderer) -> None:
    renderer.clear()
    renderer.events(renderer.share(0), 0, 3, DUE_MS)
    renderer.events(renderer.share(0), 3, 2, DUE_MS + 1)
    times = [json.loads(message)["event_time"] for message in rendered(renderer)]
    assert times == [DUE_MS] * 3 + [DUE_MS + 1] * 2


def test_a_time_that_is_not_milliseconds_is_refused() -> None:
    with pytest.raises(ValueError, match="thirteen"):
        tail_piece(1_763_712_000)


def test_all_of_them_come_equally_often() -> None:
    stream, count = Stream(42, "ad events/0"), 30_000
    events = [ad_event(stream, n, IDS) for n in range(count)]
    for column, values in (
        ("event_type", EVENT_TYPES),
        ("ad_type", AD_TYPES),
        ("user_id", IDS.users),
        ("page_id", IDS.pages),
        ("ad_id", IDS.ads),
    ):
        found = Counter(getattr(event, column) for event in events)
        assert found.keys() == set(values)
        # Five standard deviations of a count.
        mean = count / len(values)
        assert max(abs(n - mean) for n in found.values()) < 5 * mean**0.5, column


def test_what_came_of_an_event_does_not_depend_on_its_ad() -> None:
    """Both are picked by one random number."""
    stream, count, ads = Stream(42, "ad events/0"), 30_000, 4
    pairs = Counter(ad_and_kind(stream.draw(n)[1], ads) for n in range(count))
    assert len(pairs) == ads * KINDS
    mean = count / len(pairs)
    assert max(abs(n - mean) for n in pairs.values()) < 5 * mean**0.5


def test_ids_are_uuids_of_the_seed() -> None:
    found = uuids(42, "ad ids", 1_000)
    assert found == uuids(42, "ad ids", 2_000)[:1_000]
    assert len(set(found)) == 1_000
    assert {UUID(one).version for one in found} == {4}
    assert not set(found) & set(uuids(43, "ad ids", 1_000))
    assert not set(found) & set(uuids(42, "user ids", 1_000))


def test_a_seed_gives_the_very_bytes_that_it_has_always_given(renderer: Renderer) -> None:
    found = []
    for partition in range(2):
        renderer.clear()
        renderer.events(renderer.share(partition), 5, CAPACITY, DUE_MS)
        found.append(hashlib.sha256(b"".join(rendered(renderer))).hexdigest()[:16])
    assert found == ["7c37f41b23376cb5", "1f83c276dde2616a"]
