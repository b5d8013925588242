"""Tests of configuration and data of MySQL and Redis, and that a killed service starts again with
the files that it left."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from racetrack import install
from racetrack.config import load
from racetrack.errors import RacetrackError
from racetrack.stack.service import Context, find_service
from racetrack.stack.services import broker, mysql
from tests.redis_server import running_redis
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


def test_a_socket_path_that_is_too_long(context: Context) -> None:
    deep = replace(context, work=context.work / ("x" * 107))
    with pytest.raises(RacetrackError, match=r"107 bytes at most.*STACK_NAME"):
        mysql.configuration(deep)


def test_a_password_can_hold_anything(context: Context) -> None:
    odd = context.settings.model_copy(update={"mysql_shop_password": SecretStr("a'b\\c")})
    assert r"CREATE USER IF NOT EXISTS 'shop'@'%' IDENTIFIED BY 'a\'b\\c'" in mysql.users_sql(odd)


def test_debezium_may_read_and_no_more(context: Context) -> None:
    grants = [line for line in mysql.users_sql(context.settings) if line.startswith("GRANT")]
    rights = "SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT, LOCK TABLES"
    assert grants == [
        "GRANT ALL ON shop.* TO 'shop'@'%'",
        f"GRANT {rights} ON *.* TO 'debezium'@'%'",
    ]


def test_it_does_not_run_as_root(context: Context) -> None:
    user = mysql.configuration(context).get("user")
    assert user == ("nobody" if os.geteuid() == 0 else None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_all_of_its_folder_belongs_to_whom_it_becomes(context: Context) -> None:
    mysql.SERVICE.launch(context)
    assert {path.owner() for path in (context.work, *context.work.rglob("*"))} == {"nobody"}


def test_its_data_is_a_copy_of_what_was_made_once(context: Context) -> None:
    mysql.SERVICE.launch(context)
    assert (context.work / "data/ibdata1").read_text() == "9.9\n"
    (context.work / "data/ibdata1").write_text("changed")
    assert (context.parts["mysql"] / "made/data/ibdata1").read_text() == "9.9\n"


def test_it_keeps_nothing_and_answers_anybody_without_a_password(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        rows = server.client.config_get("*")
        assert (rows["save"], rows["appendonly"]) == ("", "no")
        assert (rows["bind"], rows["protected-mode"]) == ("127.0.0.1", "no")
        server.client.set("a", "b")
        parts = install.ensure(["redis"], install.read_versions(), print)
        version = server.client.info("server")["redis_version"]
        context = Context(load(), tmp_path, parts)
        assert find_service("redis").versions(context) == {"redis": version}
        server.process.terminate()
        assert server.process.wait(20) == 0
        assert {path.name for path in tmp_path.iterdir()} == {"redis.log"}
