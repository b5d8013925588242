"""Tests of a Deephaven that the user provides: a real server, started by the test."""

import json
import re
from pathlib import Path

import pytest
from confluent_kafka.cimpl import NewTopic
from pydeephaven import DHError

from racetrack.config import load
from racetrack.engines.contract import NoSuchView
from racetrack.engines.dh import engine as dh
from racetrack.engines.dh.elsewhere import ELSEWHERE
from racetrack.engines.dh.inputs import PATIENCE, given_to_scripts
from racetrack.engines.dh.tests.brought import KEY, Brought, load_there
from racetrack.engines.shared.tests import fakes
from racetrack.errors import SetupError
from racetrack.stack.contract import Stack
from racetrack.stack.elsewhere import RUN_NAME
from racetrack.stack.native.stack import NativeStack
from racetrack.stack.provided import SERVICES
from racetrack.workloads.contract import find_workload
from tests.secured_kafka import ADMIN, secured_kafka
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

# Views that change by themselves, instead of those of a workload.
SCRIPT = """
import os
from deephaven import time_table
secret = ENVIRONMENT["SECRET"]
ticks = time_table("PT0.1s").update(["partition = (int) (i % 3)", "max_received_at = 7L + ii"])
pageviews_progress = ticks.count_by("total", "partition").view(
    ["partition", "total", "max_received_at = total"]
)
"""
TRIED, SECRET = {"scripts/tried.py": SCRIPT}, {"SECRET": "secret-of-kafka"}


@pytest.fixture
def elsewhere(server: Brought) -> Stack:
    """Return a stack whose Deephaven runs elsewhere."""
    return fakes.stack(**server.settings())


def test_the_views_have_the_runs_name_and_leave_nothing(server: Brought, elsewhere: Stack) -> None:
    before = server.names()
    load_there(server, TRIED, SECRET)
    names = server.names() - before
    assert {f"{RUN_NAME}_{table}" for table in ("ticks", "pageviews_progress")} == names
    assert all(name.startswith(f"{RUN_NAME}_") for name in names)
    assert dh.ENGINE.read_view(elsewhere, "pageviews_progress").num_rows <= 3
    with pytest.raises(NoSuchView):
        dh.ENGINE.read_view(elsewhere, "nothing")
    (remark,) = dh.ENGINE.remarks(elsewhere)
    assert RUN_NAME in remark and KEY not in remark
    assert KEY not in " ".join(dh.ENGINE.usage_hints(NativeStack(elsewhere.settings)))
    assert re.fullmatch(r"[\d.]+", dh.ENGINE.versions(elsewhere)["deephaven"])
    (line,) = ELSEWHERE.remove(elsewhere.settings, RUN_NAME)
    assert line.startswith(f"removed {len(names)} tables named {RUN_NAME}_…")
    assert server.names() == before
    assert ELSEWHERE.remove(elsewhere.settings, RUN_NAME) == ()
    assert "secret-of-kafka" not in server.log()


def test_what_a_killed_run_left_is_removed_by_its_name_only(
    server: Brought, elsewhere: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = f"{RUN_NAME}7_table"
    load_there(server, TRIED, SECRET)
    with server.session() as session:
        session.run_script(f"{others} = __import__('deephaven').empty_table(1)")
        services = ["deephaven"]
        _, variables = fakes.removed_of_killed_run(elsewhere.settings, services, monkeypatch)
        assert variables[SERVICES] == '["deephaven"]' and KEY not in json.dumps(dict(variables))
        assert {name for name in session.tables if RUN_NAME in name} == {others}
        assert f"{RUN_NAME}7" in dh.ENGINE.remarks(elsewhere)[1]
        session.run_script(f"del {others}")


@pytest.mark.parametrize(
    ("script", "address", "error"),
    [
        (
            "x = 1\n\nraise ValueError('no such thing')",
            [],
            r"scripts/tried\.py.*line 3[\s\S]*no such thing",
        ),
        ("", ["localhost:1"], r"can't connect to localhost:1: [\s\S]*BIND_ADDRESS"),
    ],
)
def test_a_script_that_fails_leaves_nothing(
    server: Brought, elsewhere: Stack, script: str, address: list[str], error: str
) -> None:
    before = server.names()
    with pytest.raises(DHError, match=error):
        load_there(server, {"scripts/tried.py": script}, addresses=address)
    ELSEWHERE.remove(elsewhere.settings, RUN_NAME)
    assert server.names() == before
    with server.session() as session:
        session.run_script(f"assert {RUN_NAME!r} not in globals()")


def test_what_cannot_be_removed_is_listed(server: Brought) -> None:
    settings = load({**server.settings(), "DEEPHAVEN_URL": "https://localhost:1"})
    (line,) = ELSEWHERE.remove(settings, RUN_NAME)
    assert "Connection refused" in line and f"{RUN_NAME}_remove(globals())" in line


# ---- Addresses ---------------------------------------------------------------------------------


def test_the_content_of_files_is_sent_not_their_paths(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_text("the authorities")
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SSL\nssl.ca.location=ca.pem\n")
    settings = load(
        {
            "KAFKA_BOOTSTRAP_SERVERS": "kafka.example:9093",
            "KAFKA_TOPIC_PREFIX": "racetrack-1.",
            "KAFKA_CLIENT_PROPERTIES": str(file),
        }
    )
    endpoints = NativeStack(settings).internal_endpoints
    wanted = given_to_scripts(endpoints, [find_workload("shop").script(".py")], {})
    sent = json.loads(wanted["environment"]["KAFKA_JAVA_CONFIG"])
    assert sent["ssl.truststore.certificates"] == "the authorities"
    assert str(ca) not in json.dumps(sent)
    assert wanted["addresses"][0] == "kafka.example:9093"
    assert wanted["environment"]["SCHEMA_REGISTRY_URL"] == endpoints.registry


# ---- The check ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "setting", "remedy"),
    [
        ({"DEEPHAVEN_PSK_FILE": "", "DEEPHAVEN_PSK": "wrong"}, "DEEPHAVEN_PSK", "PSK_FILE"),
        ({"DEEPHAVEN_URL": "https://localhost:1"}, "DEEPHAVEN_URL", "Connection refused"),
    ],
)
def test_a_wrong_setting_is_named_with_the_servers_answer(
    server: Brought, changed: dict[str, str], setting: str, remedy: str
) -> None:
    wrong = {name: value.format(port=server.port) for name, value in changed.items()}
    with pytest.raises(SetupError) as refused:
        ELSEWHERE.check(load({**server.settings(), **wrong}))
    (why,) = str(refused.value).splitlines()[1:]
    assert f"{setting}: can't log in: " in why and remedy in why
    assert KEY not in why


# ---- Kafka -------------------------------------------------------------------------------------

KAFKA_SCRIPT = """
from deephaven import dtypes, time_table
from deephaven.stream.kafka import consumer, producer
servers = {**ENVIRONMENT["CLIENT"], "bootstrap.servers": ENVIRONMENT["SERVERS"]}
read = consumer.consume(
    servers,
    "tried",
    offsets=consumer.ALL_PARTITIONS_SEEK_TO_BEGINNING,
    key_spec=consumer.KeyValueSpec.IGNORE,
    value_spec=consumer.simple_spec("text", dtypes.string),
    table_type=consumer.TableType.append(),
)
written = time_table("PT0.1s").update("text = `` + ii").last_by()
text = producer.simple_spec("text")
stop_writing = producer.produce(written, servers, "tried", text, text, last_by_key_columns=True)
pageviews_progress = read.count_by("total").view(
    ["partition = 0", "total", "max_received_at = total"]
)
"""


def test_consumers_and_producers_end_with_the_run(
    server: Brought, elsewhere: Stack, tmp_path: Path
) -> None:
    def counted() -> list[int]:
        rows = dh.ENGINE.read_view(elsewhere, "pageviews_progress")
        totals: list[int] = rows.column("total").to_pylist()
        return totals

    before = server.kafka_threads()
    with secured_kafka(tmp_path) as kafka:
        kafka.admin.create_topics([NewTopic("tried", 2, 1)])["tried"].result(10)
        environment = {"SERVERS": kafka.address(ADMIN), "CLIENT": PATIENCE}
        load_there(server, {"scripts/tried.py": KAFKA_SCRIPT}, environment)
        wait_until(lambda: counted() > [10], "message", every_s=0.2)
        assert len(server.kafka_threads()) == len(before) + 2
        ELSEWHERE.remove(elsewhere.settings, RUN_NAME)
        wait_until(lambda: server.kafka_threads() == before, "end of all threads", every_s=0.5)
