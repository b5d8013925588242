"""The broker's configuration and its formatted data folder."""

import re
from types import SimpleNamespace
from typing import Any, cast

import pytest

from racetrack.stack.service import Context, NotReady
from racetrack.stack.services import broker
from tests.stack.conftest import Answer


@pytest.mark.parametrize(
    ("bind", "advertised"), [("127.0.0.1", "127.0.0.1"), ("192.0.2.7", "192.0.2.7")]
)
def test_listeners_and_advertised_addresses(bind: str, advertised: str, context: Context) -> None:
    port, controller = context.settings.kafka_port, context.settings.kafka_controller_port
    settings = context.settings.model_copy(update={"bind_address": bind})
    rendered = broker.server_properties(Context(settings, context.work, context.parts))
    assert rendered["listeners"] == (
        f"CLIENT://{advertised}:{port},CONTROLLER://{advertised}:{controller}"
    )
    assert rendered["advertised.listeners"] == f"CLIENT://{advertised}:{port}"


def test_nothing_is_thrown_away_unless_asked(context: Context) -> None:
    rendered = broker.server_properties(context)
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


@pytest.mark.parametrize("leaders", [(1, 1), (1, -1)])
def test_it_is_ready_when_it_leads_what_it_kept(
    leaders: tuple[int, int], context: Context, answer: Answer
) -> None:
    """A broker that was killed, in the moment after it answers again, can't be had on demand."""
    broker.SERVICE.launch(context)
    partitions = {n: SimpleNamespace(leader=leader) for n, leader in enumerate(leaders)}
    metadata = SimpleNamespace(
        cluster_id=broker.cluster_id_file(context).read_text(),
        topics={"pageviews": SimpleNamespace(partitions=partitions)},
    )
    client = SimpleNamespace(list_topics=lambda **_: metadata)
    service = broker.Broker(lambda _: cast(Any, client))
    answer(context.settings.kafka_port, b"")
    if -1 in leaders:
        with pytest.raises(NotReady, match="without a leader: pageviews/1"):
            service.check(context)
    else:
        service.check(context)
