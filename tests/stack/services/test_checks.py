"""Tests that health checks report what is missing until everything is present."""

import json
from contextlib import nullcontext

import pytest

from racetrack.errors import RacetrackError
from racetrack.stack.service import Context, NotReady, find_service
from racetrack.stack.services import debezium
from tests.stack.conftest import Answer, http


@pytest.mark.parametrize("name", ["mysql", "broker", "registry", "debezium", "redis", "loadgen"])
def test_nothing_listens_yet(name: str, context: Context) -> None:
    (port, *_) = find_service(name).ports(context.settings).values()
    with pytest.raises(NotReady, match=str(port)):
        find_service(name).check(context)


@pytest.mark.parametrize(
    ("name", "port", "message", "is_ready"),
    [
        ("mysql", "mysql_port", b"\x00", False),
        ("loadgen", "loadgen_port", b"SSH-2.0-OpenSSH\n", False),
        ("loadgen", "loadgen_port", b"LOADGEN Connected.\n", True),
        ("redis", "redis_port", b"-LOADING\r\n", False),
        ("registry", "schema_registry_port", http(b"", "503 Unavailable"), False),
        ("registry", "schema_registry_port", http(b"<html>"), False),
        ("registry", "schema_registry_port", http(b"{}"), False),
        ("registry", "schema_registry_port", http(b'["a-value"]'), True),
    ],
)
def test_only_the_answer_of_a_service_makes_it_ready(
    name: str, port: str, message: bytes, is_ready: bool, context: Context, answer: Answer
) -> None:
    answer(getattr(context.settings, port), message)
    with nullcontext() if is_ready else pytest.raises(NotReady):
        find_service(name).check(context)


def task(state: str, trace: str = "") -> bytes:
    """Return Connect's answer for a connector whose task is in this state."""
    return http(json.dumps({"tasks": [{"state": state, "trace": trace}]}).encode())


def subjects(*tables: str) -> bytes:
    return http(json.dumps([f"mysql.shop.{table}-value" for table in tables]).encode())


@pytest.mark.parametrize(
    ("tables", "missing"),
    [(("users", "items", "purchases"), ""), (("users", "items"), "purchases")],
)
def test_debezium_is_ready_when_every_table_has_its_schema(
    tables: tuple[str, ...], missing: str, context: Context, answer: Answer
) -> None:
    answer(context.settings.connect_port, task("RUNNING"))
    answer(context.settings.schema_registry_port, subjects(*tables))
    with pytest.raises(NotReady, match=f"shop.{missing}") if missing else nullcontext():
        find_service("debezium").check(context)


def test_debezium_whose_task_failed_is_not_waited_for(context: Context, answer: Answer) -> None:
    answer(context.settings.connect_port, task("FAILED", "Access denied for user"))
    with pytest.raises(RacetrackError, match="Access denied for user"):
        find_service("debezium").check(context)


def test_debezium_waits_for_the_shop_before_it_registers(context: Context, answer: Answer) -> None:
    answer(context.settings.connect_port, http(b"", "404 Not Found"))
    answer(context.settings.schema_registry_port, http(b"[]"))
    with pytest.raises(NotReady, match=f"port {context.settings.mysql_port}"):
        find_service("debezium").check(context)


def test_the_connector_names_where_its_password_is(context: Context) -> None:
    config = debezium.connector_config(context)
    password = context.settings.mysql_debezium_password.get_secret_value()
    assert password not in json.dumps(config)
    variable = config["database.password"].removeprefix("${env:").removesuffix("}")
    assert find_service("debezium").launch(context).env[variable] == password
    assert debezium.worker_properties(context)["config.providers.env.param.allowlist.pattern"] == (
        variable
    )
