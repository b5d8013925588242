"""Tests that the pageviews of a partition, including those of purchases, are sent in the order of
their due times, because lag compares the n-th message of a partition with the n-th that was due."""

import os
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen import counters as c
from loadgen.clock import NS_PER_MS, NS_PER_S
from loadgen.schedule import Schedule
from racetrack.workloads.shop.load.purchases import Purchases
from racetrack.workloads.shop.load.sequence import CHANNELS, page_url
from racetrack.workloads.shop.load.tracers import Reserved, TracerEvents
from racetrack.workloads.shop.tests.load.bench import (
    ALL_USERS,
    EVERYTHING,
    SETTINGS,
    START_NS,
    USERS,
    Bench,
    Sent,
    views,
)


@pytest.fixture(scope="module")
def counters() -> Iterator[c.Counters]:
    fd = c.create_fd(len(USERS), 2)
    yield c.Counters(fd, len(USERS), 2)
    os.close(fd)


steps = st.one_of(
    st.tuples(st.just("go_on"), st.integers(0, 60)),
    st.tuples(st.just("pageview_rate"), st.sampled_from([0, 1, 50, 3_000])),
    st.tuples(st.just("purchase_rate"), st.sampled_from([0, 1, 50, 1_000])),
    st.tuples(st.just("mark_rate"), st.sampled_from([0, 1, 50, 1_000])),
    st.tuples(st.just("move"), st.integers(0, 2)),
    st.tuples(st.just("die"), st.integers(0, 1)),
    st.tuples(st.just("broker_takes"), st.sampled_from([0, 3, 40, EVERYTHING])),
)


@settings(max_examples=60)
@given(st.lists(steps, max_size=15))
def test_what_is_due_goes_out_once_and_in_order_whatever_happens(
    counters: c.Counters, story: list[tuple[str, int]]
) -> None:
    bench = Bench(counters)
    bench.pageview_rate(3_000)
    bench.purchase_rate(400)
    for what, how_much in story:
        getattr(bench, what)(how_much)
        bench.go_on(1)
    bench.finish()
    for partition, sent in enumerate(bench.broker.topic):
        expected = [Sent(what, at_ns // NS_PER_MS) for at_ns, what in bench.due(partition)]
        assert sent == expected
    assert counters.column(c.HANDED) == [len(sent) for sent in bench.broker.topic]


@pytest.mark.slow
@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["pageview_rate", "purchase_rate", "mark_rate"]),
            st.sampled_from([0, 20, 700, 2_000]),
            st.integers(0, 80),
        ),
        max_size=10,
    )
)
def test_a_rate_that_is_heard_of_too_late_changes_no_order_and_loses_nothing(
    counters: c.Counters, changes: list[tuple[str, int, int]]
) -> None:
    bench = Bench(counters)
    for what, per_s, late_ms in changes:
        getattr(bench, what)(per_s, late_ms)
        bench.go_on(7)
    # Let so many pageviews become due that they include all that were sent too early.
    for change in (bench.pageview_rate, bench.purchase_rate, bench.mark_rate):
        change(2_000)
    bench.go_on(500)
    bench.finish()
    for partition, sent in enumerate(bench.broker.topic):
        assert all(a.stamp_ms <= b.stamp_ms for a, b in pairwise(sent))
        due = [what for _, what in bench.due(partition)]
        for kind in ("scheduled", "purchase", "tracer_event"):  # each in order, once
            mine = [m.what for m in sent if kind_of(m.what) == kind]
            assert mine == [what for what in due if kind_of(what) == kind]


def kind_of(what: Any) -> str:
    """Return the kind of a message. Only tracer events have reserved users as viewers."""
    if not isinstance(what, tuple):
        return "scheduled"
    viewer, _ = what
    return "tracer_event" if viewer > SETTINGS.users else "purchase"


def test_a_rate_that_nobody_can_follow_fills_no_memory(counters: c.Counters) -> None:
    bench = Bench(counters, max_waiting=100)
    bench.broker_takes(0)
    bench.pageview_rate(1_000)
    bench.purchase_rate(10_000)
    for _ in range(50):
        bench.go_on(10)
    states = bench.workers[0].states.values()
    assert max(len(state.derived) for state in states) == 100
    bench.finish()
    for _ in range(200):
        bench.go_on(1)
    for partition, sent in enumerate(bench.broker.topic):
        assert [m.what for m in sent] == [what for _, what in bench.due(partition)]


def test_a_purchase_s_pageview_is_of_the_product_by_the_customer() -> None:
    schedule = Schedule.starting(START_NS, 1_000_000, 1000 * NS_PER_S)
    rows = Purchases(SETTINGS, schedule)
    for view in views(Purchases.name, schedule).take(START_NS + NS_PER_S // 10):
        user, item, _ = rows.make(view.number, 0)
        viewer, page = view.content
        assert (viewer, page // len(CHANNELS) + 1) == (user, item)
        assert user in USERS[view.partition]
        assert view.due_ns == START_NS + (view.number + 1) * NS_PER_MS


def test_a_tracer_event_is_a_purchase_and_a_pageview_of_reserved_ids_of_its_partition() -> None:
    schedule = Schedule.starting(START_NS, 1_000_000, 1000 * NS_PER_S)
    reserved, rows = Reserved.of(SETTINGS), TracerEvents(SETTINGS, schedule)
    seen: dict[int, list[str]] = {}
    for view in views(TracerEvents.name, schedule).take(START_NS + NS_PER_S // 10):
        partition = view.number // 2 % len(USERS)
        assert view.partition == partition
        user, item, pieces = rows.make(view.number, 0)
        assert (user, item, pieces) == (21 + partition, 8 + partition, 1)
        viewer, page = view.content
        assert viewer in ALL_USERS[partition]
        assert viewer > user
        seen.setdefault(partition, []).append(page_url(page, reserved.last_item))
    for partition in range(3):
        mine = [f"/products/{8 + partition}", f"/profiles/{21 + partition}"]
        assert seen[partition][:4] == 2 * mine
