"""Tests of the sequence of events and of the renderer that writes them: a seed always gives the
same events, and valid JSON."""

import hashlib
import json
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.popularity import zipf
from loadgen.sequence import Stream, mix32
from racetrack.workloads.ads.load.events import AdEvents
from racetrack.workloads.ads.load.render import (
    SLOT_BYTES,
    PaddedRenderer,
    Renderer,
    to_json,
)
from racetrack.workloads.ads.load.sequence import (
    AD_TYPES,
    EVENT_TYPES,
    KINDS,
    LATE_MS,
    LATE_ONE_IN,
    SKEW_MS,
    Ids,
    ad_and_kind,
    ad_event,
    skew_ms,
)
from racetrack.workloads.ads.load.settings import MAX_EVENT_BYTES, MIN_EVENT_BYTES
from racetrack.workloads.ads.tests.load.ads_settings import load
from tests.loadgen.messages import message_ffi, rendered

CAPACITY = 64
NOT_LATE = 2**32 // 20_000  # a random number that makes no event late
DUE_MS = 1_763_712_000_123
SETTINGS = load()
IDS = Ids.of(SETTINGS)
# The format of yahoo/streaming-benchmarks, except that there the time is in quotes.
PUBLISHED = re.compile(
    r'\{"user_id": "[0-9a-f-]{36}", "page_id": "[0-9a-f-]{36}", "ad_id": "[0-9a-f-]{36}",'
    r' "ad_type": "[a-z-]+", "event_type": "[a-z]+", "event_time": \d{13},'
    r' "ip_address": "1\.2\.3\.4"\}'
)


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    return Renderer(message_ffi(), IDS, CAPACITY, SETTINGS.seed)


@pytest.fixture(scope="module")
def skewed() -> Renderer:
    return Renderer(message_ffi(), IDS, CAPACITY, SETTINGS.seed, with_skew=True)


def values_of(renderer: Renderer) -> list[bytes]:
    """Return every message in the batch; none has a key."""
    messages = rendered(renderer)
    assert {key for key, _ in messages} <= {None}
    return [value for _, value in messages]


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
    assert values_of(renderer) == [to_json(event, due_ms) for event in events]


@settings(max_examples=50)
@given(first=st.integers(0, 2**31), later_ms=st.integers(0, 3 * LATE_MS))
def test_skew_moves_times_and_nothing_else(skewed: Renderer, first: int, later_ms: int) -> None:
    """Due times jump between examples. In a run they only increase, unless a rate changes late."""
    stream, due_ms = skewed.share(0), DUE_MS + later_ms
    skewed.clear()
    skewed.events(stream, first, CAPACITY, due_ms)
    expected = [
        to_json(ad_event(stream, n, IDS), due_ms + skew_of(stream, n))
        for n in range(first, first + CAPACITY)
    ]
    assert values_of(skewed) == expected


def skew_of(stream: Stream, n: int) -> int:
    who, what = stream.draw(n)
    return skew_ms(who, what, len(IDS.users) * len(IDS.pages), len(IDS.ads))


@pytest.mark.slow
def test_with_a_key_skew_ads_are_as_popular_and_nothing_else_changes() -> None:
    popularity, count = zipf(len(IDS.ads), 1.2), 30_000
    renderer = Renderer(message_ffi(), IDS, count, SETTINGS.seed, popularity=popularity)
    stream = renderer.share(0)
    renderer.events(stream, 0, count, DUE_MS)
    events = [ad_event(stream, n, IDS, popularity) for n in range(count)]
    assert values_of(renderer) == [to_json(event, DUE_MS) for event in events]
    even = [ad_event(stream, n, IDS) for n in range(count)]
    assert [event._replace(ad_id="") for event in events] == [e._replace(ad_id="") for e in even]
    found = Counter(event.ad_id for event in events)
    for ad, weight in zip(IDS.ads[:3], popularity.weights, strict=False):
        assert found[ad] / count == pytest.approx(weight / sum(popularity.weights), rel=0.05)
    views = Counter(event.event_type for event in events if event.ad_id == IDS.ads[0])
    assert views["view"] / views.total() == pytest.approx(1 / 3, abs=0.03)


def test_skew_is_up_to_50_ms_either_way() -> None:
    stream, count = Stream(42, "ad events/0"), 50_000
    found = Counter(skew_of(stream, n) for n in range(count))
    mean = count / (2 * SKEW_MS)
    for ms in range(-SKEW_MS, SKEW_MS):
        assert abs(found.pop(ms) - mean) < 5 * mean**0.5, ms
    assert sum(found.values()) < 10  # the late events


def test_one_event_in_100_000_is_up_to_a_minute_late() -> None:
    heads, ads, late = len(IDS.users) * len(IDS.pages), len(IDS.ads), []
    for head in range(heads):
        # Start with the lowest random number that stands for this pair of user and page.
        who = -(-head * 2**32 // heads)
        while skew_ms(who, mix32(who), heads, ads) != skew_ms(NOT_LATE, mix32(who), heads, ads):
            late.append(skew_ms(who, mix32(who), heads, ads))
            who += 1
    assert len(late) / 2**32 == pytest.approx(1 / LATE_ONE_IN, rel=0.01)
    assert min(late) >= -LATE_MS - SKEW_MS
    assert max(late) < SKEW_MS
    assert sum(late) / len(late) == pytest.approx(-LATE_MS / 2, rel=0.02)


def test_a_message_has_the_published_form(renderer: Renderer) -> None:
    renderer.clear()
    renderer.events(renderer.share(0), 0, CAPACITY, DUE_MS)
    for message in values_of(renderer):
        assert PUBLISHED.fullmatch(message.decode())
        assert len(message) < SLOT_BYTES
        record = json.loads(message)
        assert record["event_time"] == DUE_MS
        assert record["ad_id"] in IDS.ads


@pytest.mark.parametrize("size", [MIN_EVENT_BYTES, 1_000, MAX_EVENT_BYTES])
@pytest.mark.parametrize("skews", [{}, {"ADS_WITH_SKEW": "true", "ADS_KEY_SKEW": "1.2"}])
def test_a_padded_event_is_the_same_event_with_another_field(
    size: int, skews: dict[str, str]
) -> None:
    plain, padded = (
        AdEvents(load(ADS_EVENT_BYTES=str(each), **skews), message_ffi()).renderer(CAPACITY)
        for each in (0, size)
    )
    assert isinstance(padded, PaddedRenderer) and not isinstance(plain, PaddedRenderer)
    for renderer in (plain, padded):
        renderer.events(renderer.share(0), 0, CAPACITY, DUE_MS)
    for short, long in zip(values_of(plain), values_of(padded), strict=True):
        assert len(long) == size
        record = json.loads(long)
        assert list(record)[-1] == "padding"
        del record["padding"]
        assert json.dumps(record).encode() == short
    if not skews:
        event = ad_event(padded.share(0), 0, IDS)
        assert values_of(padded)[0] == to_json(event, DUE_MS, size)
        longest = (max(AD_TYPES, key=len), max(EVENT_TYPES, key=len))
        longest_event = event._replace(ad_type=longest[0], event_type=longest[1])
        message = to_json(longest_event, DUE_MS, size)
        assert len(message) == size and json.loads(message)["padding"]


def test_all_of_them_come_equally_often_and_the_kind_does_not_depend_on_the_ad() -> None:
    """One random number picks both the ad and the kind of event."""
    stream, count, ads = Stream(42, "ad events/0"), 30_000, 4
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
        assert is_even(found), column
    pairs = Counter(ad_and_kind(stream.draw(n)[1], ads) for n in range(count))
    assert len(pairs) == ads * KINDS and is_even(pairs)


def is_even(found: Counter[Any]) -> bool:
    """Return whether all counts are within five standard deviations of their mean."""
    mean = found.total() / len(found)
    return all(abs(n - mean) < 5 * mean**0.5 for n in found.values())


def test_a_seed_gives_the_very_bytes_that_it_has_always_given(renderer: Renderer) -> None:
    found = []
    for partition in range(2):
        renderer.clear()
        renderer.events(renderer.share(partition), 5, CAPACITY, DUE_MS)
        found.append(hashlib.sha256(b"".join(values_of(renderer))).hexdigest()[:16])
    assert found == ["7c37f41b23376cb5", "1f83c276dde2616a"]
