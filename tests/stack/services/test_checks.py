"""Tests of health checks, which report what is missing, and of the broker's configuration."""

import json
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from racetrack.errors import RacetrackError
from racetrack.stack.service import Context, NotReady, find_service
from racetrack.stack.services import broker, debezium
from tests.stack.conftest import Answer, http


@pytest.mark.parametrize(
    ("name", "port", "message", "is_ready"),
    [
        ("mysql", "mysql_port", b"\x00", False),
        ("loadgen", "loadgen_port", b"SSH-2.0-OpenSSH\n", False),
        ("loadgen", "loadgen_port", b"LOADGEN Connected.\n", True),
        ("redis", "redis_port", b"-LOADING\r\n", False),
        ("registry", "schema_registry_port", http(b"", "503 Unavailable"), False),
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
    ("connector", "tables", "missing"),
    [
        (task("RUNNING"), ("users", "items", "purchases"), None),
        (task("RUNNING"), ("users", "items"), "shop.purchases"),
        (http(b"", "404 Not Found"), (), "port {}"),  # of MySQL: the shop is waited for
    ],
)
def test_debezium_is_ready_when_every_table_has_its_schema(
    connector: bytes, tables: tuple[str, ...], missing: str | None, context: Context, answer: Answer
) -> None:
    answer(context.settings.connect_port, connector)
    answer(context.settings.schema_registry_port, subjects(*tables))
    named = missing and missing.format(context.settings.mysql_port)
    with pytest.raises(NotReady, match=named) if named else nullcontext():
        find_service("debezium").check(context)


def test_debezium_whose_task_failed_is_not_waited_for(context: Context, answer: Answer) -> None:
    answer(context.settings.connect_port, task("FAILED", "Access denied for user"))
    with pytest.raises(RacetrackError, match="Access denied for user"):
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


def formatted(context: Context) -> dict[str, str]:
    """Return the ids in a formatted folder."""
    text = (context.work / "data/meta.properties").read_text()
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def in_pod(context: Context, number: int) -> Context:
    update = {
        "bind_address": "0.0.0.0",  # noqa: S104
        "peer_kafka": "redpanda",
        "kafka_outside": "192.0.2.7:30001,192.0.2.7:30002",
        "racetrack_instance": f"redpanda-{number}",
    }
    work = context.work / str(number)
    work.mkdir()
    return replace(context, settings=context.settings.model_copy(update=update), work=work)


def test_the_first_of_several_brokers_of_one_cluster_is_the_controller(context: Context) -> None:
    pods = [in_pod(context, number) for number in (0, 1)]
    for pod in pods:
        broker.SERVICE.launch(pod)
    first, second = (broker.server_properties(pod) for pod in pods)
    kafka, controller = context.settings.kafka_port, context.settings.kafka_controller_port
    assert (first["process.roles"], second["process.roles"]) == ("broker,controller", "broker")
    assert (first["node.id"], second["node.id"]) == ("1", "2")
    voters = {each["controller.quorum.voters"] for each in (first, second)}
    assert voters == {f"1@redpanda-0:{controller}"}
    assert ["CONTROLLER://" in each["listeners"] for each in (first, second)] == [True, False]
    assert "CONTROLLER:PLAINTEXT" in second["listener.security.protocol.map"]
    clients = f"CLIENT://redpanda-1:{kafka},OUTSIDE://192.0.2.7:30002"
    assert second["advertised.listeners"] == clients
    one, other = map(formatted, pods)
    assert (one["node.id"], other["node.id"]) == ("1", "2")
    assert one["cluster.id"] == other["cluster.id"]
    assert one["directory.id"] != other["directory.id"]


@pytest.mark.parametrize(
    ("leaders", "brokers", "missing"),
    [
        ((1, 1), 2, ""),
        ((1, -1), 2, "without a leader: pageviews/1"),
        ((1, 1), 1, "1 of 2 brokers have registered"),
    ],
)
def test_it_is_ready_when_all_brokers_are_there_and_lead(
    leaders: tuple[int, int], brokers: int, missing: str, context: Context, answer: Answer
) -> None:
    """Use fake answers: the moment just after a killed broker answers again can't be reproduced."""
    context = replace(context, settings=context.settings.model_copy(update={"broker_replicas": 2}))
    broker.SERVICE.launch(context)
    partitions = {n: SimpleNamespace(leader=leader) for n, leader in enumerate(leaders)}
    metadata = SimpleNamespace(
        brokers=range(brokers),
        cluster_id=broker.cluster_id_file(context).read_text(),
        topics={"pageviews": SimpleNamespace(partitions=partitions)},
    )
    client = SimpleNamespace(list_topics=lambda **_: metadata)
    service = broker.Broker(lambda _: cast(Any, client))
    answer(context.settings.kafka_port, b"")
    if missing:
        with pytest.raises(NotReady, match=missing):
            service.check(context)
    else:
        service.check(context)
