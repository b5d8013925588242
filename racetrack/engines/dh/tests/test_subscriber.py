"""Tests of the clients that follow Deephaven's tables: a real server, started by the test."""

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from racetrack.clock import now_ms
from racetrack.config import Settings, load
from racetrack.engines.contract import Progress, Seen, Summary
from racetrack.engines.dh.observation import Subscribers, with_cause
from racetrack.engines.dh.subscriber import Update
from racetrack.engines.dh.tests.brought import Brought, brought
from racetrack.errors import RacetrackError
from racetrack.workloads.contract import find_workload

pytestmark = pytest.mark.slow

# Tables with the names and columns of those that are followed, which change by themselves. The keys
# 1001 and 10001 are the first of tracer rows.
SCRIPT = """
from deephaven import agg, time_table
ticks = time_table("PT0.1s").update(["partition = (int) (i % 3)", "max_received_at = 7L + ii"])
pageviews_progress = ticks.agg_by([agg.count_("total"), agg.max_("max_received_at")], "partition")
item_summary = (
    ticks.view(["item_id = 999L + (ii % 5)", "price = java.math.BigDecimal.ONE"])
    .agg_by([agg.count_("pageviews"), agg.sum_("revenue = price")], "item_id")
    .update("orders = pageviews / 2")
)
profile_views_enriched = ticks.view(
    ["owner_id = 10001L + partition", "received_at = Timestamp", "owner_email = (String) null"]
).tail_by(10, "owner_id")
"""
FAILING = """
late = time_table("PT0.1s").update("partition = Integer.parseInt(ii > 300 ? `no number` : `1`)")
pageviews_progress = late.count_by("total", "partition").update("max_received_at = total")
"""


@pytest.fixture(scope="module")
def server(server: Brought) -> Brought:
    with server.session() as session:
        session.run_script(SCRIPT)
    return server


@pytest.fixture(scope="module")
def settings(server: Brought) -> Settings:
    return load(server.settings())


def follow(settings: Settings, *, is_traced: bool, can_subscribe: bool = True) -> Iterator[Update]:
    """Yield the updates of a client, which ends when the test has seen enough of them."""
    subscribers = Subscribers(lambda: can_subscribe)
    names = [view.name for view in find_workload(settings.workload).traced_views]
    yield from subscribers.follow(settings, "", threading.Event(), names if is_traced else ())


@pytest.mark.parametrize("can_subscribe", [True, False], ids=["subscribed", "polled"])
def test_counts_are_those_of_the_table(settings: Settings, can_subscribe: bool) -> None:
    counted: dict[int, int] = {}
    totals: set[int] = set()
    for update in follow(settings, is_traced=False, can_subscribe=can_subscribe):
        if isinstance(update, Progress):
            assert update.total >= counted.get(update.partition, 0)
            counted[update.partition] = update.total
            continue
        assert isinstance(update, Summary)
        assert update.total == sum(counted.values())
        assert update.max_received_at_ms == 6 + update.total
        assert update.dt_ms == update.timestamp_ms - update.max_received_at_ms
        totals.add(update.total)
        if len(totals) == 3:
            break
    assert set(counted) == {0, 1, 2}


@pytest.mark.parametrize("can_subscribe", [True, False], ids=["subscribed", "polled"])
def test_only_tracer_rows_are_reported(settings: Settings, can_subscribe: bool) -> None:
    views = ("item_summary.pageviews", "item_summary.orders", "profile_views_enriched.received_at")
    expected = {(view, partition) for view in views for partition in range(3)}
    began_ms, found = now_ms(), set()
    for seen in follow(settings, is_traced=True, can_subscribe=can_subscribe):
        assert isinstance(seen, Seen)
        assert seen.view in views
        found.add((seen.view, seen.partition))
        assert found <= expected
        if found == expected and seen.value > began_ms:  # a time after the first rows
            break


def test_a_table_that_fails_is_named_and_its_client_can_follow_another(
    server: Brought, settings: Settings
) -> None:
    subscribers = Subscribers()

    def updates() -> Iterator[Update]:
        return subscribers.follow(settings, "", threading.Event())

    with server.session() as session:
        session.run_script(FAILING)
        try:
            with pytest.raises(RacetrackError, match="pageviews_progress") as failure:
                list(updates())
        finally:
            session.run_script(SCRIPT)
    error = with_cause(str(failure.value), server.log())
    assert error.endswith('For input string: "no number"')
    client = subscribers.pids
    again = updates()
    assert isinstance(next(again), Progress)
    assert subscribers.pids == client


def test_two_threads_can_follow_the_same_views(settings: Settings) -> None:
    """The verification follows them beside the run."""
    subscribers, stop = Subscribers(), threading.Event()
    names = [view.name for view in find_workload(settings.workload).traced_views]
    first, second = (subscribers.follow(settings, "", stop, names) for _ in range(2))
    assert isinstance(next(first), Seen) and isinstance(next(second), Seen)
    assert len(set(subscribers.pids)) == 2
    second.close()  # type: ignore[attr-defined]  # a generator
    assert isinstance(next(first), Seen)
    assert len(subscribers.pids) == 1


def test_a_subscription_that_is_cut_off_is_an_error() -> None:
    with brought() as other:
        with other.session() as session:
            session.run_script(SCRIPT)
        updates = follow(load(other.settings()), is_traced=False)
        next(updates)
        os.kill(other.pid, signal.SIGKILL)
        with pytest.raises(RacetrackError, match="pageviews_progress"):
            list(updates)
