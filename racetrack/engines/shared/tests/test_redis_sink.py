"""Tests of following views in a real Redis, written as in the published benchmark."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from racetrack.clock import now_ms
from racetrack.config import load
from racetrack.engines.contract import Progress, Summary
from racetrack.engines.shared.redis_sink import views
from racetrack.engines.shared.redis_sink.progress import PROGRESS, follow
from racetrack.errors import RacetrackError
from racetrack.workloads.contract import find_workload
from tests.redis_server import Server, running_redis

WITHIN_S = 20.0


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def server(started: Server) -> Server:
    """Return the Redis server, emptied."""
    started.client.flushall()
    return started


def counted(server: Server, partition: int, total: int, newest_ms: int) -> None:
    """Write counts as an engine does, in one transaction."""
    counted = {"total": total, "max_received_at": newest_ms}
    transaction = server.client.pipeline(transaction=True)
    transaction.hset(PROGRESS, str(partition), json.dumps(counted))
    transaction.publish(PROGRESS, json.dumps({"partition": partition, **counted}))
    transaction.execute()


def window(server: Server, campaign: str, start_ms: int, seen: int) -> None:
    """Write one of a campaign's windows, in which the engine has counted `seen` views of ads."""
    name, client = f"{campaign}/{start_ms}", server.client
    client.hset(campaign, str(start_ms), name)
    client.hset(campaign, "windows", f"{campaign}/list")
    client.lpush(f"{campaign}/list", str(start_ms))
    client.hincrby(name, "seen_count", seen)
    client.hset(name, "time_updated", str(start_ms + 10_500))


def test_what_stands_is_reported_first_then_each_change(server: Server) -> None:
    counted(server, 0, 10, 1_000)
    counted(server, 5, 7, 3_000)
    events = follow(server.endpoint, threading.Event())
    first = [next(events) for _ in range(3)]
    assert [(p.partition, p.total) for p in first if isinstance(p, Progress)] == [(0, 10), (5, 7)]
    assert isinstance(first[2], Summary)
    assert (first[2].total, first[2].max_received_at_ms) == (17, 3_000)
    began_ms = now_ms()
    counted(server, 0, 12, 4_000)
    change, total = next(events), next(events)
    at_ms = change.timestamp_ms
    assert began_ms <= at_ms <= now_ms()
    assert change == Progress(at_ms, 0, 12, 4_000)
    assert total == Summary(at_ms, 19, 4_000, at_ms - 4_000)


def test_no_change_is_missed_or_reported_twice_while_it_begins(server: Server) -> None:
    """Begin to follow the counts again and again, while the engine continues to count."""
    ended = threading.Event()

    def count() -> int:
        total = 0
        while not ended.is_set():
            total += 1
            counted(server, 0, total, total)
        return total

    with ThreadPoolExecutor(1) as pool:
        last = pool.submit(count)
        try:
            for _ in range(20):
                events = (each for each in follow(server.endpoint, threading.Event()))
                totals = [p.total for p in (next(events) for _ in range(40)) if type(p) is Progress]
                assert totals == list(range(totals[0], totals[0] + len(totals)))
        finally:
            ended.set()
        assert last.result(WITHIN_S) > 20


def test_what_was_published_before_the_end_is_reported(server: Server) -> None:
    stop = threading.Event()
    counted(server, 0, 1, 1_000)
    events = follow(server.endpoint, stop)
    begun = [next(events), next(events)]
    for total in range(2, 50):
        counted(server, 0, total, 1_000)
    stop.set()
    totals = [each.total for each in (*begun, *events) if isinstance(each, Progress)]
    assert totals == list(range(1, 50))


@pytest.mark.parametrize(
    ("happens", "named"),
    [
        (lambda client: client.publish(PROGRESS, "three"), "three"),
        # The reader must not reconnect, because it would miss the changes in between.
        (lambda client: client.client_kill_filter(_type="pubsub"), r"127\.0\.0\.1:\d+"),
    ],
)
def test_what_is_no_progress_and_a_connection_that_is_lost_are_named(
    server: Server, happens: Callable[[Any], object], named: str
) -> None:
    counted(server, 0, 1, 1_000)
    events = follow(server.endpoint, threading.Event())
    assert [type(next(events)) for _ in range(2)] == [Progress, Summary]
    happens(server.client)
    with pytest.raises(RacetrackError, match=named):
        next(events)


def test_the_windows_of_reserved_campaigns_are_summed_up(server: Server) -> None:
    (traced,) = find_workload("ads").traced_views
    first, second, *_ = traced.keys(load())
    for campaign, start_ms, seen in (
        (first, 0, 3),
        (first, 10_000, 4),
        (second, 0, 9),
        ("x", 0, 8),
    ):
        window(server, campaign, start_ms, seen)
    stop = threading.Event()
    found = views.follow(server.endpoint, [traced], load(), stop)
    values = [next(found) for _ in traced.keys(load())]
    stop.set()
    assert [(seen.partition, seen.value) for seen in values[:3]] == [(0, 7), (1, 9), (2, 0)]
