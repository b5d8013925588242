"""Tests of a Deephaven that the user provides: a real server, started by the test."""

import json
import re
from pathlib import Path

import pytest
from pydeephaven import DHError

from racetrack.config import load
from racetrack.engines.contract import NoSuchView
from racetrack.engines.dh import engine as dh
from racetrack.engines.dh.elsewhere import ELSEWHERE
from racetrack.engines.dh.inputs import given_to_scripts
from racetrack.engines.dh.tests.brought import KEY, Brought, load_there
from racetrack.engines.shared.tests import fakes
from racetrack.errors import SetupError
from racetrack.stack.contract import Stack
from racetrack.stack.elsewhere import RUN_NAME
from racetrack.stack.native.stack import NativeStack
from racetrack.stack.provided import SERVICES
from racetrack.workloads.contract import find_workload

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
