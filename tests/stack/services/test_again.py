"""Tests that a killed service starts again with the files that it left."""

from pathlib import Path

import pytest

from racetrack.stack.service import Context, find_service
from racetrack.stack.services import broker, mysql
from tests.service_facts import LAUNCHED

# Not tested is the registry: its server behind nginx gets another free port each time.
SERVICES = [name for name in LAUNCHED if name != "registry"]


@pytest.mark.parametrize("name", SERVICES)
def test_it_can_be_launched_twice_and_keeps_its_ports(name: str, context: Context) -> None:
    service = find_service(name)
    first, second = service.launch(context), service.launch(context)
    assert second.argv == first.argv
    assert second.env == first.env


def test_mysql_finds_its_tables(context: Context) -> None:
    mysql.SERVICE.launch(context)
    (context.work / "data/ibdata1").write_text("with purchases")
    mysql.SERVICE.launch(context)
    assert (context.work / "data/ibdata1").read_text() == "with purchases"


def test_the_broker_is_the_same_cluster(context: Context) -> None:
    broker.SERVICE.launch(context)
    id_file = broker.cluster_id_file(context)
    before = id_file.read_text()
    topic = context.work / "data/pageviews-0"
    topic.mkdir()
    broker.SERVICE.launch(context)
    assert id_file.read_text() == before
    assert topic.is_dir()


def test_debezium_goes_on_from_where_it_was(context: Context) -> None:
    find_service("debezium").launch(context)
    left = {Path(name): f"left in {name}" for name in ("offsets", "schema-history")}
    for name, text in left.items():
        (context.work / name).write_text(text)
    find_service("debezium").launch(context)
    assert {name: (context.work / name).read_text() for name in left} == left
