"""Tests of the programs that write the results of Nexmark's queries to topics: all queries of an
engine at once, on a real Kafka with generated events."""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import duckdb
import pytest

from racetrack import install
from racetrack.config import load
from racetrack.engines import find_engine
from racetrack.engines.contract import NoSuchView, Seen
from racetrack.engines.shared.tests.nexmark_topic import (
    fill,
    judged,
    settings_of,
    traced_values,
    write,
)
from racetrack.engines.shared.tests.programs import RUN_NEXMARK, service_of
from racetrack.probes.positions import TracedProgress
from racetrack.stack.native.stack import NativeStack
from racetrack.stack.service import Context
from racetrack.workloads.nexmark.harness import WORKLOAD
from racetrack.workloads.nexmark.tests.test_views import db
from tests.secured_kafka import SecuredKafka, secured_kafka
from tests.servers import running
from tests.waiting import wait_until

__all__ = ["db"]  # a fixture: the rows that the views should have

pytestmark = pytest.mark.slow

RIGHT_S = 60.0
POSITIONS, ROW_EVERY_S = 2_000, 0.005


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with secured_kafka(tmp_path_factory.mktemp("kafka")) as kafka:
        write(kafka)
        yield kafka


def queries_of(engine: str) -> tuple[str, ...]:
    return WORKLOAD.with_scripts(find_engine(engine).script_ending)


@pytest.mark.parametrize("engine", RUN_NEXMARK)
def test_all_queries_are_right_and_show_tracer_rows(
    engine: str, kafka: SecuredKafka, db: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    stack = NativeStack(load(settings_of(kafka, queries_of(engine))))
    parts = install.ensure([engine], install.read_versions(), print)
    service = service_of(engine)
    launch = service.launch(Context(stack.settings, tmp_path, parts))
    is_ready = Path(launch.env["READY_FILE"]).exists
    environment = {**os.environ, **launch.env}
    with running([launch.argv], tmp_path, is_ready, service.ready_within_s, environment):

        def is_right(query: str) -> bool:
            with suppress(NoSuchView):  # nothing is written yet
                return judged(db, find_engine(engine), stack, query).right
            return False

        for query in queries_of(engine):
            wait_until(partial(is_right, query), f"right rows of {query}", RIGHT_S, 1.0)
        traced_values(find_engine(engine), stack)


def test_progress_ends_though_the_engine_goes_on_writing_rows(kafka: SecuredKafka) -> None:
    positions = [
        json.dumps({"partition": 0, "number": number, "position": number, "due_ms": number})
        for number in range(POSITIONS)
    ]
    fill(kafka, WORKLOAD.positions, 1, [(0, text) for text in positions])
    engine, stop, ended = find_engine("kstreams"), threading.Event(), threading.Event()
    progress = TracedProgress(engine, NativeStack(load(settings_of(kafka, ["q1"]))))
    (view,) = progress.traced

    def goes_on() -> None:
        for number in range(1, POSITIONS):
            progress.take(Seen(number, view.name, 0, number))
            if ended.wait(ROW_EVERY_S):
                break

    rows = threading.Thread(target=goes_on)
    rows.start()
    try:
        for _ in progress.updates(stop):
            stop.set()
        assert rows.is_alive()
    finally:
        ended.set()
        rows.join()
