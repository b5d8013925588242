"""Tests of Nexmark's programs: a real server, and a real Kafka with generated events."""

from collections.abc import Iterator

import duckdb
import pytest

from racetrack.config import load
from racetrack.engines.dh.elsewhere import ELSEWHERE
from racetrack.engines.dh.engine import ENGINE
from racetrack.engines.dh.tests.brought import Brought
from racetrack.engines.shared.tests.nexmark_topic import (
    TRACERS,
    judged,
    settings_of,
    traced_values,
    write,
)
from racetrack.stack.contract import Stack
from racetrack.stack.elsewhere import RUN_NAME
from racetrack.stack.native.stack import NativeStack
from racetrack.workloads.contract import ALL_PARTITIONS
from racetrack.workloads.nexmark.tests.test_views import (
    PARTITIONS,
    QUERIES,
    db,
    messages,
)
from tests.secured_kafka import secured_kafka
from tests.waiting import wait_until

__all__ = ["db"]  # a fixture: the rows that the views should have

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def stack(server: Brought, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Return a stack whose Kafka and Deephaven run elsewhere."""
    with secured_kafka(tmp_path_factory.mktemp("kafka")) as kafka:
        write(kafka)
        yield NativeStack(load({**server.settings(), **settings_of(kafka, QUERIES)}))


def test_all_queries_are_right_and_show_tracer_rows(
    stack: Stack, db: duckdb.DuckDBPyConnection
) -> None:
    ENGINE.load_demo(stack)
    try:
        wait_until(lambda: judged(db, ENGINE, stack, "q0").right, "all bids", 20, 0.2)
        found = {query: judged(db, ENGINE, stack, query) for query in QUERIES}
        seen = traced_values(ENGINE, stack)
    finally:
        ELSEWHERE.remove(stack.settings, RUN_NAME)
    assert {query: each for query, each in found.items() if not each.right} == {}
    bids = sum(message["bid"] is not None for message in messages())
    assert seen["q15.total_bids", ALL_PARTITIONS] == bids
    assert {seen["q16.total_bids", partition] for partition in range(PARTITIONS)} == {TRACERS}
    assert {seen["q4.final", partition] for partition in range(PARTITIONS)} == {TRACERS // 2}
