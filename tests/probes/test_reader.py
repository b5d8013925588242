"""Tests of the view reader: its instructions, the values it reports, and its restarts; and that the
run ends with the reason if the reader's process ends."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pytest

from racetrack.config import Settings, load
from racetrack.engines.contract import Access, Engine, NoSuchView, Reader
from racetrack.errors import RacetrackError
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.mysql_endpoint import MysqlEndpoint
from racetrack.probes.reader import COLUMNS, Client, Job, answerable
from racetrack.probes.views import READS_CSV, ReadsProbe
from racetrack.results.folder import RunFolder
from racetrack.stack.contract import Endpoints
from racetrack.workloads.contract import Query, TracedView, find_workload
from tests.run.fakes import FakeEngine, FakeStack

BY = TracedView("sold", "orders", "item_id", "shop_items", "purchases")
WHOLE, SOME, NOBODYS = Query("best"), Query("sold", by=BY), Query("missing")
ENDPOINTS = Endpoints(
    kafka=KafkaEndpoint("127.0.0.1:1"),
    registry="http://127.0.0.1:2",
    connect="http://127.0.0.1:3",
    mysql=MysqlEndpoint("127.0.0.1", 3, "shop", "shop", "", "debezium", ""),
    loadgen_host="127.0.0.1",
    loadgen_port=4,
    redis="127.0.0.1:5",
)


class OneTable:
    """A fake reader with two views. It first raises these failures, one at each read."""

    def __init__(self, failures: list[str]) -> None:
        self._failures = failures

    def rows(self, view: str, key: str, among: Sequence[int]) -> pa.Table:
        if view not in ("best", "sold"):
            raise NoSuchView("no such view")
        if self._failures:
            raise RacetrackError(self._failures.pop())
        return pa.table({key or "id": list(among), "orders": [7] * len(among)})


class OneEngine:
    """A fake engine that opens a OneTable as its reader, and counts how many it has opened and
    closed."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self.opened = self.closed = 0

    @contextmanager
    def reader(self, access: Access) -> Iterator[Reader]:
        self.opened += 1
        yield OneTable(self.failures)
        self.closed += 1


@pytest.fixture
def engine() -> OneEngine:
    return OneEngine()


def access(settings: Settings) -> Access:
    return Access(settings, ENDPOINTS, "mine")


def job(settings: Settings, engine: str = "swift") -> Job:
    swift = SimpleNamespace(name=engine)
    return Job.of(cast(Engine, swift), access(settings), 2.0)


@pytest.fixture
def client(engine: OneEngine) -> Client:
    return Client(cast(Engine, engine), access(load()))


def test_its_job_brings_all_settings_secrets_too_to_another_process() -> None:
    settings = load({"SHOP_ITEMS": "77", "MYSQL_SHOP_PASSWORD": "hush", "LOADGEN_ACKS": "all"})
    there = Job(**json.loads(job(settings).as_line())).access
    assert there.settings == settings
    assert there.settings.mysql_shop_password.get_secret_value() == "hush"
    assert there.endpoints == ENDPOINTS
    assert there.namespace == "mine"
    assert there.queries == find_workload("shop").queries


def test_it_keeps_its_connection_until_it_fails_and_then_opens_another(
    client: Client, engine: OneEngine
) -> None:
    client.ask(WHOLE)
    client.ask(WHOLE)
    assert (engine.opened, engine.closed) == (1, 0)
    engine.failures.append("the connection ended")
    with pytest.raises(RacetrackError, match="the connection ended"):
        client.ask(WHOLE)
    assert (engine.opened, engine.closed) == (1, 1)
    assert client.ask(SOME).num_rows > 0
    assert engine.opened == 2
    client.close()
    assert engine.closed == 2


def test_questions_that_the_engine_never_answers_are_left_out(client: Client) -> None:
    assert answerable(client, [WHOLE, NOBODYS, SOME]) == [WHOLE, SOME]


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
