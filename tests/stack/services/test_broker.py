"""Tests of the broker's configuration and its formatted data folder."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from racetrack.stack.service import Context, NotReady
from racetrack.stack.services import broker
from tests.stack.conftest import Answer


def test_listeners_and_advertised_addresses(context: Context) -> None:
    port, controller = context.settings.kafka_port, context.settings.kafka_controller_port
    settings = context.settings.model_copy(update={"bind_address": "192.0.2.7"})
    rendered = broker.server_properties(Context(settings, context.work, context.parts))
    clients = f"CLIENT://192.0.2.7:{port}"
    assert rendered["listeners"] == f"{clients},CONTROLLER://192.0.2.7:{controller}"
    assert rendered["advertised.listeners"] == clients
    assert rendered["log.retention.ms"] == rendered["log.retention.bytes"] == "-1"


def test_the_folder_is_formatted_with_ids_of_its_own(context: Context) -> None:
    broker.SERVICE.launch(context)
    data = context.work / "data"
    assert (data / "bootstrap.checkpoint").read_text() == "9.9\n"
    lines = dict(line.split("=", 1) for line in (data / "meta.properties").read_text().splitlines())
    assert lines["cluster.id"] == broker.cluster_id_file(context).read_text()
    for name in ("cluster.id", "directory.id"):
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", lines[name])
    assert lines["cluster.id"] != lines["directory.id"]


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


def test_the_first_of_several_brokers_is_the_controller(context: Context) -> None:
    first, second = (broker.server_properties(in_pod(context, n)) for n in (0, 1))
    kafka, controller = context.settings.kafka_port, context.settings.kafka_controller_port
    assert first["process.roles"] == "broker,controller"
    assert second["process.roles"] == "broker"
    assert (first["node.id"], second["node.id"]) == ("1", "2")
    voters = {each["controller.quorum.voters"] for each in (first, second)}
    assert voters == {f"1@redpanda-0:{controller}"}
    assert "CONTROLLER://" in first["listeners"]
    assert "CONTROLLER://" not in second["listeners"]
    assert "CONTROLLER:PLAINTEXT" in second["listener.security.protocol.map"]
    assert second["advertised.listeners"] == (
        f"CLIENT://redpanda-1:{kafka},OUTSIDE://192.0.2.7:30002"
    )


def test_brokers_of_several_pods_have_one_cluster_id(context: Context) -> None:
    lines = []
    for number in (0, 1):
        pod = in_pod(context, number)
        broker.SERVICE.launch(pod)
        lines.append((pod.work / "data/meta.properties").read_text().splitlines())
    (_, first, cluster, one), (_, second, same, other) = lines
    assert (first, second) == ("node.id=1", "node.id=2")
    assert cluster == same
    assert one != other


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
