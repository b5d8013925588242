"""Tests of Nexmark's programs: a real server, and a real Kafka with generated events."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from racetrack import plugins
from racetrack.config import load
from racetrack.engines.dh.elsewhere import ELSEWHERE
from racetrack.engines.dh.engine import ENGINE
from racetrack.engines.dh.tests.brought import brought
from racetrack.engines.shared.tests.nexmark_topic import TRACERS, traced_values, write
from racetrack.stack.contract import Stack
from racetrack.stack.elsewhere import RUN_NAME
from racetrack.stack.native.stack import NativeStack
from racetrack.verify.compare import Compared, compare
from racetrack.workloads.contract import ALL_PARTITIONS
from racetrack.workloads.nexmark.harness import WORKLOAD
from racetrack.workloads.nexmark.tests.test_views import (
    DELAY_MS,
    PARTITIONS,
    QUERIES,
    db,
    messages,
)
from tests.secured_kafka import ADMIN, PREFIX, secured_kafka
from tests.waiting import wait_until

__all__ = ["db"]  # a fixture: the rows that the views should have

pytestmark = pytest.mark.slow

LOSE_EVENTS = """
bid = bid.where("price % 2 = 0")
auction = auction.where("seller % 2 = 0")
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Return a stack whose Kafka and Deephaven run elsewhere."""
    with secured_kafka(tmp_path_factory.mktemp("kafka")) as kafka, brought() as server:
        write(kafka)
        settings = {
            **server.settings(),
            "KAFKA_BOOTSTRAP_SERVERS": kafka.address(ADMIN),
            "KAFKA_TOPIC_PREFIX": PREFIX,
            "EVENTS_PARTITIONS": str(PARTITIONS),
            "WORKLOAD": "nexmark",
            "NEXMARK_QUERIES": ",".join(QUERIES),
            "NEXMARK_WATERMARK_DELAY_MS": str(DELAY_MS),
        }
        yield NativeStack(load(settings))


@contextmanager
def loaded(stack: Stack) -> Iterator[None]:
    ENGINE.load_demo(stack)
    try:
        yield
    finally:
        ELSEWHERE.remove(stack.settings, RUN_NAME)


def judged(db: duckdb.DuckDBPyConnection, stack: Stack, query: str) -> Compared:
    return compare(db, WORKLOAD.view(query), ENGINE.read_view(stack, query), 3)


def test_all_queries_are_right_and_show_tracer_rows(
    stack: Stack, db: duckdb.DuckDBPyConnection
) -> None:
    with loaded(stack):
        wait_until(lambda: judged(db, stack, "q0").right, "all bids", 20, 0.2)
        wrong = {query: found for query in QUERIES if not (found := judged(db, stack, query)).right}
        seen = traced_values(ENGINE, stack)
    assert wrong == {}
    bids = sum(message["bid"] is not None for message in messages())
    assert seen["q15.total_bids", ALL_PARTITIONS] == bids
    assert {seen["q16.total_bids", partition] for partition in range(PARTITIONS)} == {TRACERS}
    assert {seen["q4.final", partition] for partition in range(PARTITIONS)} == {TRACERS // 2}


def test_a_program_that_loses_events_is_wrong(
    stack: Stack,
    db: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    shutil.copytree(plugins.SCRIPTS, tmp_path / "scripts")
    monkeypatch.setattr(plugins, "SCRIPTS", tmp_path / "scripts")
    with (plugins.SCRIPTS / "nexmark/nexmark.py").open("a") as file:
        file.write(LOSE_EVENTS)
    kept = sum(
        message["bid"] is not None and message["bid"]["price"] % 2 == 0 for message in messages()
    )
    with loaded(stack):
        wait_until(lambda: ENGINE.read_view(stack, "q0").num_rows == kept, "other bids", 20, 0.2)
        right = [query for query in QUERIES if judged(db, stack, query).right]
    assert right == []
