"""Tests of the view reader: its instructions, its connection, and the values it reports; and that
the run ends with the reason if the reader's process ends."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from racetrack.config import load
from racetrack.engines.contract import Access, Engine
from racetrack.errors import RacetrackError
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.mysql_endpoint import MysqlEndpoint
from racetrack.probes.reader import COLUMNS, Client, Job
from racetrack.probes.views import READS_CSV, ReadsProbe
from racetrack.results.folder import RunFolder
from racetrack.stack.contract import Endpoints
from racetrack.workloads.contract import Query, find_workload
from tests.run.fakes import FakeEngine, FakeStack

ENDPOINTS = Endpoints(
    kafka=KafkaEndpoint("127.0.0.1:1"),
    registry="http://127.0.0.1:2",
    connect="http://127.0.0.1:3",
    mysql=MysqlEndpoint("127.0.0.1", 3, "shop", "shop", "", "debezium", ""),
    loadgen_host="127.0.0.1",
    loadgen_port=4,
    redis="127.0.0.1:5",
)


def test_its_job_brings_all_settings_secrets_too_to_another_process() -> None:
    settings = load({"SHOP_ITEMS": "77", "MYSQL_SHOP_PASSWORD": "hush", "LOADGEN_ACKS": "all"})
    engine = cast(Engine, SimpleNamespace(name="swift"))
    job = Job.of(engine, Access(settings, ENDPOINTS, "mine"), 2.0)
    there = Job(**json.loads(job.as_line())).access
    assert there.settings == settings
    assert there.settings.mysql_shop_password.get_secret_value() == "hush"
    assert there.endpoints == ENDPOINTS
    assert there.namespace == "mine"
    assert there.queries == find_workload("shop").queries


def test_all_questions_are_asked_on_one_connection() -> None:
    opened = []

    @contextmanager
    def reader(access: Access) -> Iterator[SimpleNamespace]:
        opened.append(access)
        yield SimpleNamespace(rows=lambda *_: "rows")

    engine = cast(Engine, SimpleNamespace(reader=reader))
    client = Client(engine, Access(load(), ENDPOINTS, "mine"))
    assert [client.ask(Query("best")) for _ in range(2)] == ["rows"] * 2
    assert len(opened) == 1


WITHIN_S = 20.0


@pytest.fixture
def probe(tmp_path: Path) -> ReadsProbe:
    engine, stack = FakeEngine(), FakeStack(load({"READS_PER_SECOND": "2"}))
    return ReadsProbe(engine, stack.as_stack(), RunFolder.create(tmp_path, engine.name, "100"), 2.0)


@pytest.mark.slow
def test_a_reader_that_ends_is_reported_with_its_log_tail(probe: ReadsProbe) -> None:
    probe.start()
    give_up = time.monotonic() + WITHIN_S
    with pytest.raises(RacetrackError, match=r"(?s)view reader can't be read any more.*fake"):
        while time.monotonic() < give_up:
            probe.check()
            probe.stopping.wait(0.05)
    assert probe.pids == []
    probe.stop()


def test_answers_are_timed_once_and_errors_are_none(probe: ReadsProbe, tmp_path: Path) -> None:
    (file,) = tmp_path.rglob(READS_CSV)
    assert probe.new_answer_times() == []
    rows = [",".join(COLUMNS), "1000,1001,1012,best,10,,", "2000,2001,2002,best,,,it is gone"]
    file.write_text("\n".join([*rows, "3000,3001,30"]))
    assert probe.new_answer_times() == [12.0]
    with file.open("a") as more:
        more.write("07,best,10,,\n")
    assert probe.new_answer_times() == [7.0]
    assert probe.new_answer_times() == []
