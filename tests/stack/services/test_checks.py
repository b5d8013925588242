"""Tests that health checks report what is missing until everything is present."""

import json

import pytest

from racetrack.errors import RacetrackError
from racetrack.stack.service import Context, NotReady, find_service
from racetrack.stack.services import debezium, registry
from tests.stack.conftest import Answer, http


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mysql", "nothing answers on port {mysql_port}"),
        ("broker", "nothing answers on port {kafka_port}"),
        ("registry", "{schema_registry_port}.*refused"),
        ("debezium", "nothing answers on port {connect_port}"),
        ("redis", "port {redis_port} does not answer"),
        ("loadgen", "control port {loadgen_port} does not answer"),
    ],
)
def test_nothing_listens_yet(name: str, said: str, context: Context) -> None:
    expected = said.format_map(context.settings.model_dump())
    with pytest.raises(NotReady, match=expected):
        find_service(name).check(context)


@pytest.mark.parametrize(
    ("name", "port", "message", "said"),
    [
        ("mysql", "mysql_port", b"\x00", "shop can't log in yet"),
        ("loadgen", "loadgen_port", b"SSH-2.0-OpenSSH\n", r"SSH-2\.0"),
        ("redis", "redis_port", b"-LOADING\r\n", "-LOA"),
        ("registry", "schema_registry_port", http(b"", "503 Unavailable"), "HTTP 503"),
        ("registry", "schema_registry_port", http(b"<html>"), "not JSON"),
        ("registry", "schema_registry_port", http(b"{}"), "a list was expected"),
    ],
)
def test_what_answers_otherwise_is_not_ready(
    name: str, port: str, message: bytes, said: str, context: Context, answer: Answer
) -> None:
    answer(getattr(context.settings, port), message)
    with pytest.raises(NotReady, match=said):
        find_service(name).check(context)


def test_loadgen_is_ready_when_it_greets(context: Context, answer: Answer) -> None:
    answer(context.settings.loadgen_port, b"LOADGEN Connected.\n")
    find_service("loadgen").check(context)


def test_registry_answers_with_its_subjects(context: Context, answer: Answer) -> None:
    answer(context.settings.schema_registry_port, http(b'["a-value"]'))
    find_service("registry").check(context)
    assert registry.subjects(context.settings) == {"a-value"}


def task(state: str, trace: str = "") -> bytes:
    """Return Connect's answer for a connector whose task is in this state."""
    return http(json.dumps({"tasks": [{"state": state, "trace": trace}]}).encode())


def subjects(*tables: str) -> bytes:
    return http(json.dumps([f"mysql.shop.{table}-value" for table in tables]).encode())


def test_debezium_is_ready_when_every_table_has_its_schema(
    context: Context, answer: Answer
) -> None:
    answer(context.settings.connect_port, task("RUNNING"))
    answer(context.settings.schema_registry_port, subjects("users", "items", "purchases"))
    find_service("debezium").check(context)


def test_debezium_names_the_schema_that_is_missing(context: Context, answer: Answer) -> None:
    answer(context.settings.connect_port, task("RUNNING"))
    answer(context.settings.schema_registry_port, subjects("users", "items"))
    with pytest.raises(NotReady, match=r"not in the schema registry yet: mysql.shop.purchases-va"):
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
