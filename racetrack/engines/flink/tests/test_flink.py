"""Flink's module without Flink: what it sends to the gateway, what it makes of what it reads."""

import json
import threading
from collections.abc import Iterator
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from racetrack import config as settings
from racetrack.engines import find_engine
from racetrack.engines.contract import DemoError, NoSuchView, Progress, Summary
from racetrack.engines.flink import checkpoint, engine, script
from racetrack.engines.flink.engine import _addresses
from racetrack.engines.flink.gateway import Gateway, root_cause
from racetrack.engines.flink.job import JobLog
from racetrack.engines.flink.settings import FlinkSettings
from racetrack.engines.shared.upsert import topics, totals
from racetrack.stack.applicability import why_ignored
from tests.fake_server import serve_in_background

FLINK = find_engine("flink")
SQL = FLINK.script(settings.load()).read_text()
KAFKA, REGISTRY = "127.0.0.1:54092", "http://127.0.0.1:54081"
TRACE = """\
org.apache.flink.table.gateway.service.utils.SqlExecutionException: Failed to execute 1.
\tat org.apache.flink.table.gateway.Service.run(Service.java:414)
Caused by: org.apache.flink.table.api.ValidationException: SQL validation failed. From line 1
\tat org.apache.flink.table.planner.Planner.parse(Planner.java:12)
\t... 6 more
Caused by: org.apache.calcite.sql.validate.SqlValidatorException: Object 'nowhere' not found
Did you mean 'elsewhere'?
\tat java.base/java.lang.Thread.run(Thread.java:840)
\t... 9 more
"""
CAUSE = "SqlValidatorException: Object 'nowhere' not found\nDid you mean 'elsewhere'?"


def stack() -> Any:
    return SimpleNamespace(
        settings=settings.load(),
        internal_endpoints=SimpleNamespace(kafka=KAFKA, registry=REGISTRY),
        endpoints=SimpleNamespace(kafka=KAFKA),
        program=lambda service, name: f"/parts/{service}/bin/{name}",
    )


class FakeGateway(BaseHTTPRequestHandler):
    """Speaks the gateway's REST as far as it is used; refuses what contains `nowhere`."""

    statements: list[str]
    log_message = lambda *_: None  # noqa: E731 - quiet

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/sessions"):
            self.answer(200, {"sessionHandle": "s"})
        else:
            self.statements.append(body["statement"])
            self.answer(200, {"operationHandle": str(len(self.statements) - 1)})

    def do_GET(self) -> None:
        operation, token = self.path.split("/")[-3], self.path.split("/")[-1]
        asked: dict[str, int] = self.server.asked  # type: ignore[attr-defined]
        asked[self.path] = asked.get(self.path, 0) + 1
        if "nowhere" in self.statements[int(operation)]:
            self.answer(500, {"errors": ["Internal server error.", TRACE]})
        elif asked[self.path] == 1:
            self.answer(200, {"resultType": "NOT_READY", "nextResultUri": self.path})
        elif token == "0":
            self.answer(200, {"resultType": "PAYLOAD", "nextResultUri": f"{self.path[:-1]}1"})
        else:
            self.answer(200, {"resultType": "EOS"})

    def answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=UTF-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def gateway() -> Iterator[str]:
    """A gateway's URL."""
    FakeGateway.statements = []
    with ThreadingHTTPServer(("127.0.0.1", 0), FakeGateway) as server:
        server.asked = {}  # type: ignore[attr-defined]
        serve_in_background(server)
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_statements_are_run_in_order_each_to_its_end(gateway: str) -> None:
    with Gateway(gateway) as opened:
        opened.run_all(["CREATE TABLE a", "CREATE TABLE b"])
    assert FakeGateway.statements == ["CREATE TABLE a", "CREATE TABLE b"]


def test_a_refused_statement_is_shown_with_its_root_cause(gateway: str) -> None:
    with Gateway(gateway) as opened, pytest.raises(DemoError) as refused:
        opened.run_all(["CREATE TABLE a", "SELECT * FROM nowhere", "CREATE TABLE c"])
    assert CAUSE in str(refused.value)
    assert "SELECT * FROM nowhere" in str(refused.value)
    assert "\tat " not in str(refused.value)
    assert FakeGateway.statements[-1] == "SELECT * FROM nowhere"


@pytest.mark.parametrize(
    ("trace", "cause"),
    [
        (TRACE, CAUSE),
        ("java.io.IOException: gone\n\tat a.B.c(B.java:1)\n", "java.io.IOException: gone"),
        ("no trace at all", "no trace at all"),
    ],
)
def test_the_root_cause_of_a_trace(trace: str, cause: str) -> None:
    assert root_cause(trace) == cause


def test_a_script_is_taken_apart_at_its_semicolons_only() -> None:
    sql = """
-- A comment; with the demo's semicolon
CREATE TABLE a (`odd;name` INT) WITH ('topic' = 'x;''y');

SELECT 1 - 1; -- and one behind
EXECUTE STATEMENT SET
BEGIN
INSERT INTO a SELECT 1;
-- between
INSERT INTO b SELECT 2;
END;
SELECT 3;
"""
    assert script.statements(sql) == [
        "CREATE TABLE a (`odd;name` INT) WITH ('topic' = 'x;''y')",
        "SELECT 1 - 1",
        "EXECUTE STATEMENT SET\nBEGIN\nINSERT INTO a SELECT 1;\nINSERT INTO b SELECT 2;\nEND;",
        "SELECT 3",
    ]


@pytest.mark.parametrize(
    "sql", ["SELECT 1; SELECT 2", "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1;"]
)
def test_a_script_that_breaks_off_is_not_run_in_part(sql: str) -> None:
    with pytest.raises(ValueError, match=r"has no end|END is missing"):
        script.statements(sql)


def test_only_what_flink_writes_is_made() -> None:
    own = script.own_topics(SQL)
    assert "high_value_users_sink" in own
    assert not {"pageviews", "dd_flagged_profiles", "mysql.shop.users"} & set(own)


def test_the_scripts_templates_get_the_stacks_addresses() -> None:
    lines = _addresses(stack(), SQL).splitlines()
    assert [line.split()[2] for line in lines] == [
        "at_kafka",
        "at_kafka_and_registry",
        "at_kafka_in_avro",
    ]
    assert all(f"'{KAFKA}'" in line and line.endswith(");") for line in lines)
    assert sum(line.count(f"'{REGISTRY}'") for line in lines) == 3
    assert "redpanda" not in "".join(lines)


def test_where_to_play_can_be_pasted() -> None:
    said = "\n".join(FLINK.usage_hints(stack()))
    assert f"/parts/flink/bin/sql-client.sh gateway --endpoint 127.0.0.1:{port()}" in said
    assert _addresses(stack(), SQL) in said
    assert "demo.flink.sql" in said


def port() -> int:
    return FlinkSettings.of(settings.load()).flink_port


def test_the_last_complete_checkpoint_is_found_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "flink.log"
    log.write_text(
        "2026-11-23T10:00:00.000Z INFO CheckpointCoordinator: Completed checkpoint 9 for job 0a1"
        " (86 bytes, checkpointDuration=4 ms, finalizationTime=0 ms).\n"
        "2026-11-23T10:00:01.000Z INFO CheckpointCoordinator: Completed checkpoint 1 for job 7fe"
        " (86 bytes, checkpointDuration=4 ms, finalizationTime=0 ms).\n"
        "2026-11-23T10:00:02.000Z INFO CheckpointCoordinator: Triggering checkpoint 2 (type="
        "CheckpointType{name='Checkpoint', sharingFilesStrategy=FORWARD_BACKWARD}) for job 7fe.\n"
    )
    assert checkpoint.last(log, "file:///tmp/checkpoints/") == "file:///tmp/checkpoints/7fe/chk-1"
    log.write_text("2026-11-23T10:00:00.000Z INFO ExecutionGraph: nothing of the kind\n")
    assert checkpoint.last(log, "file:///tmp/checkpoints") is None


def test_a_job_that_started_before_is_not_the_one_that_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "flink.log"
    line = "2026-11-23T10:00:00.000Z INFO ExecutionGraph: Job {} (0a1) switched from state {}.\n"
    path.write_text(line.format("old", "CREATED to RUNNING"))
    log = JobLog(path)
    log.skip()
    assert not log.has_started()
    with path.open("a") as file:
        file.write(line.format("new", "CREATED to RUNNING"))
    assert log.has_started()
    with path.open("a") as file:
        file.write(line.format("new", "RUNNING to FAILING"))
    with pytest.raises(DemoError):
        log.has_started()


def test_a_setting_that_makes_it_wrong_is_a_caveat() -> None:
    wrong = settings.load({"FLINK_UPSERT_MATERIALIZE": "NONE"})
    assert [c for c in FLINK.caveats(wrong) if "NONE" in c]
    assert not [c for c in FLINK.caveats(settings.load()) if "NONE" in c]


def test_progress_is_what_the_topics_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told = [
        topics.Written(
            "flink.pageviews_progress",
            0,
            1_700_000_000_100,
            b'{"partition":2}',
            b'{"partition":2,"total":5,"max_received_at":1700000000040}',
        ),
        None,
        topics.Written(
            "flink.pageviews_summary",
            0,
            1_700_000_000_123,
            b'{"summary_of":"all"}',
            b'{"summary_of":"all","total":7,"max_received_at":1700000000050}',
        ),
    ]
    monkeypatch.setattr(totals, "follow", lambda *_: iter(told))
    log = tmp_path / "flink.log"
    log.write_text("")
    there = stack()
    there.log_of = lambda _service: log
    assert list(FLINK.updates(there, threading.Event())) == [
        Progress(1_700_000_000_100, 2, 5, 1_700_000_000_040),
        Summary(1_700_000_000_123, 7, 1_700_000_000_050, 73.0),
    ]


def test_a_view_comes_back_without_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        b"""{"item_id":1,"name":"a","category":null,"revenue":12345678901234567890.10,
        "orders":2,"items_sold":3,"pageviews":7,"conversion_rate":0.2857142857142857}""",
        b"""{"item_id":2,"name":"b","category":"c","revenue":0,
        "orders":0,"items_sold":0,"pageviews":0,"conversion_rate":null}""",
    ]
    monkeypatch.setattr(engine, "is_written", lambda *_: True)
    monkeypatch.setattr(engine, "latest", lambda *_: rows)
    table = FLINK.read_view(stack(), "item_summary").to_pylist()
    assert [row["revenue"] for row in table] == [Decimal("12345678901234567890.10"), Decimal(0)]
    assert [row["conversion_rate"] for row in table] == [2 / 7, None]
    assert [row["category"] for row in table] == [None, "c"]


def test_an_empty_view_has_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "is_written", lambda *_: True)
    monkeypatch.setattr(engine, "latest", lambda *_: [])
    table = FLINK.read_view(stack(), "pageviews_progress")
    assert table.num_rows == 0
    assert set(table.column_names) == {"partition", "total", "max_received_at"}


def test_a_view_that_it_does_not_have_is_no_empty_one() -> None:
    with pytest.raises(NoSuchView, match="nothing_such"):
        FLINK.read_view(stack(), "nothing_such")


def test_views_that_nobody_has_loaded_are_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "is_written", lambda *_: False)
    with pytest.raises(NoSuchView, match="not loaded"):
        FLINK.read_view(stack(), "item_summary")


def test_a_failed_job_is_found_in_the_log(tmp_path: Path) -> None:
    path = tmp_path / "flink.log"
    path.write_text("x Job insert-into_a (0f) switched from state CREATED to RUNNING.\nhalf a")
    log = JobLog(path)
    log.check()
    with path.open("a") as file:
        file.write(
            f" line\nx Job insert-into_a (0f) switched from state RUNNING to FAILING.\n{TRACE}"
        )
    with pytest.raises(DemoError, match="Object 'nowhere' not found"):
        log.check()


def test_the_published_image_heeds_its_settings() -> None:
    assert why_ignored("FLINK_PARALLELISM", "compose", airgap=False) == ""
