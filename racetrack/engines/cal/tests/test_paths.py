"""Tests of the calibration engine's observation paths: what is written on a path is what the code
that follows other engines receives there."""

import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from racetrack.clock import now_ms
from racetrack.config import Settings, load
from racetrack.engines.cal.engine import ENGINE
from racetrack.engines.cal.services.cal import SERVICE
from racetrack.engines.cal.sinks import Count, PostgresSink, RedisSink, Total
from racetrack.engines.cal.views import Views
from racetrack.engines.contract import Progress, Seen, Summary
from racetrack.engines.shared.tests import fakes
from racetrack.engines.shared.tests.postgres import PASSWORD, Postgres, for_the_shop
from racetrack.errors import UsageError
from racetrack.run.checks import services_of
from tests.redis_server import running_redis

NOW_MS = 1_795_000_000_000
WITHIN_S = 20.0
TRACED = {"TRACER_EVENTS_PER_SECOND": "80"}


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with for_the_shop() as found:
        found.rows("CREATE DATABASE shop OWNER shop")
        yield found


def views_in(settings: Settings) -> Views:
    return Views.of_text(SERVICE.environment(settings)["CAL_VIEWS"])


@pytest.mark.parametrize(
    ("path", "needed", "stamped_by"),
    [
        ("topic", set(), "broker"),
        ("postgres", {"postgres"}, ""),
        ("deephaven", {"deephaven"}, ""),
        ("redis", {"redis"}, ""),
    ],
)
def test_a_path_needs_its_server_which_is_no_cost_of_the_engine_and_has_its_clock(
    path: str, needed: set[str], stamped_by: str
) -> None:
    settings = load({"CAL_PATH": path})
    of_all = {"mysql", "broker", "loadgen", "cal"}
    assert set(services_of(ENGINE, settings)) == of_all | needed
    assert ENGINE.measured_services(settings) == ("cal",)
    assert ENGINE.observer_in(settings).stamped_by == stamped_by


@pytest.mark.slow
def test_what_is_written_to_postgresql_is_followed_there(server: Postgres) -> None:
    stack = fakes.stack(
        CAL_PATH="postgres",
        POSTGRES_PORT=str(server.port),
        POSTGRES_PASSWORD=PASSWORD,
        **TRACED,
    )
    environment = SERVICE.environment(stack.settings)
    sink = PostgresSink(
        f"{environment['CAL_CONNINFO']} password={environment['PGPASSWORD']}",
        views_in(stack.settings),
    )
    sink.write_counts(Total(7, NOW_MS), [Count(2, 7, NOW_MS)])
    stop, began_ms = threading.Event(), now_ms()
    threading.Timer(WITHIN_S, stop.set).start()
    updates = ENGINE.updates(stack, stop)
    progress, summary = islice(updates, 2)
    assert isinstance(progress, Progress) and isinstance(summary, Summary)
    assert (progress.partition, progress.total, summary.total) == (2, 7, 7)
    sink.write_counts(Total(9, NOW_MS + 5), [Count(2, 8, NOW_MS + 5), Count(4, 1, NOW_MS + 1)])
    *changed, summary = islice(updates, 3)
    assert [(each.total, each.max_received_at_ms) for each in changed] == [
        (8, NOW_MS + 5),
        (1, NOW_MS + 1),
    ]
    assert isinstance(summary, Summary) and summary.timestamp_ms >= began_ms
    sink.write_traced({3: NOW_MS + 123})
    sink.write_traced({3: NOW_MS + 456})
    (seen,) = islice(ENGINE.seen(stack, ENGINE.traced_views(stack.settings), stop), 1)
    stop.set()
    assert isinstance(seen, Seen)
    assert (seen.view, seen.partition, seen.value) == (
        "profile_views_enriched.received_at",
        3,
        NOW_MS + 456,
    )


@pytest.mark.slow
def test_what_is_written_to_redis_is_followed_there(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        stack = fakes.stack(CAL_PATH="redis", REDIS_PORT=str(server.port), **TRACED)
        environment = SERVICE.environment(stack.settings)
        assert environment["CAL_REDIS"] == server.endpoint
        server.client.set("of the generator", "stays")
        sink = RedisSink(server.endpoint, views_in(stack.settings))
        sink.write_counts(Total(7, NOW_MS), [Count(2, 7, NOW_MS)])
        stop, began_ms = threading.Event(), now_ms()
        threading.Timer(WITHIN_S, stop.set).start()
        updates = ENGINE.updates(stack, stop)
        stored, summary = islice(updates, 2)
        assert isinstance(stored, Progress) and isinstance(summary, Summary)
        assert (stored.partition, stored.total, summary.total) == (2, 7, 7)
        sink.write_counts(Total(8, NOW_MS + 5), [Count(4, 1, NOW_MS + 5)])
        changed, summary = islice(updates, 2)
        assert isinstance(changed, Progress) and isinstance(summary, Summary)
        assert (changed.partition, changed.total, summary.total) == (4, 1, 8)
        assert began_ms <= changed.timestamp_ms <= now_ms()
        sink.write_traced({3: NOW_MS + 123})
        sink.write_traced({3: NOW_MS + 456})
        seen = ENGINE.seen(stack, ENGINE.traced_views(stack.settings), stop)
        (newest,) = islice((each for each in seen if each.partition == 3), 1)
        stop.set()
        assert server.client.get("of the generator") == "stays"
    assert (newest.view, newest.value) == ("profile_views_enriched.received_at", NOW_MS + 456)


def test_reads_from_redis_are_refused() -> None:
    with pytest.raises(UsageError, match="READS_PER_SECOND=0"):
        ENGINE.check(fakes.stack(CAL_PATH="redis", READS_PER_SECOND="2"))
