"""Tests of a Kafka Connect that the user provides: a real one, as are Kafka, registry and MySQL."""

import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from racetrack import install
from racetrack.config import Settings, load
from racetrack.errors import SetupError
from racetrack.stack import net
from racetrack.stack.elsewhere import RUN_NAME
from racetrack.stack.own_connect import ELSEWHERE
from racetrack.stack.provided import Provided
from racetrack.stack.service import Context, find_service, wait_until_ready
from racetrack.stack.services import registry
from racetrack.verify.tables import CdcTopics
from racetrack.workloads.contract import View, find_workload
from tests.secured_connect import SecuredConnect, secured_connect
from tests.secured_kafka import PREFIX, SecuredKafka, secured_kafka
from tests.secured_mysql import SecuredMysql, secured_mysql
from tests.secured_registry import SecuredRegistry, secured_registry
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

READY_WITHIN_S = 60.0
TABLES = ("users", "items", "purchases")


class Site:
    """All services, and the settings of a run that uses them."""

    def __init__(
        self,
        kafka: SecuredKafka,
        registry: SecuredRegistry,
        mysql: SecuredMysql,
        connect: SecuredConnect,
    ) -> None:
        self.kafka, self.registry, self.mysql, self.connect = kafka, registry, mysql, connect

    def settings(self) -> Settings:
        services = (self.kafka, self.registry, self.mysql, self.connect)
        given = {k: v for each in services for k, v in each.settings().items()}
        return net.elsewhere(load(given), "schema_registry_port", "connect_port")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp
    with (
        secured_kafka(folder("kafka")) as kafka,
        secured_registry(folder("registry")) as schemas,
        secured_mysql() as mysql,
        secured_connect(folder("connect"), kafka, schemas, mysql) as connect,
    ):
        yield Site(kafka, schemas, mysql, connect)


def test_the_check_lists_what_is_possible_and_leaves_nothing(site: Site) -> None:
    passed = ELSEWHERE.check(site.settings())
    assert passed.operations[-1] == "delete connectors"
    assert site.connect.connectors() == []


def test_a_refused_login_is_shown_before_the_run(site: Site) -> None:
    site.mysql.execute("ALTER USER race@'%' ACCOUNT LOCK")
    try:
        with pytest.raises(SetupError, match="Debezium there refuses the connector: database"):
            ELSEWHERE.check(site.settings())
    finally:
        site.mysql.execute("ALTER USER race@'%' ACCOUNT UNLOCK")


def test_its_topics_are_named_as_usual_and_all_is_removed(site: Site, tmp_path: Path) -> None:
    used, named = site.settings(), {f"{PREFIX}mysql.shop.{table}" for table in TABLES}
    site.mysql.execute(
        f"CREATE DATABASE {RUN_NAME}",
        *(f"CREATE TABLE {RUN_NAME}.{table} (id INT PRIMARY KEY)" for table in TABLES),
        *(f"INSERT INTO {RUN_NAME}.{table} VALUES (7)" for table in TABLES),  # noqa: S608
        "COMMIT",
    )
    with relays(used, tmp_path) as contexts:
        service = find_service("debezium")
        wait_until_ready(service, contexts["debezium"], READY_WITHIN_S, lambda: None)
        assert service.versions(contexts["debezium"])["debezium"] == used.debezium_version
        wait_until(lambda: site.kafka.topics() == named, "topics", READY_WITHIN_S, every_s=0.2)
        with closing(CdcTopics(net.kafka(used), registry.url(used), find_workload("shop"))) as read:
            users = find_workload("shop").view("users")
            wait_until(lambda: rows(read, users) == [{"id": 7}], "rows", READY_WITHIN_S, 0.2)
    lines: list[str] = []
    Provided(used).remove(lines.append, RUN_NAME)
    assert [line.split()[1] for line in lines] == ["the", "the", "6", "3"], lines
    assert site.connect.connectors() == []
    assert site.mysql.databases() == site.registry.subjects() == site.kafka.topics() == set()


def rows(topics: CdcTopics, view: View) -> list[dict[str, object]]:
    """Return the rows of a table that have arrived in its topic."""
    topics.read_on()
    found: list[dict[str, object]] = topics.table(view).to_pylist()
    return found


@contextmanager
def relays(used: Settings, folder: Path) -> Iterator[dict[str, Context]]:
    """Start the stack's relays to the registry and to Kafka Connect."""
    parts = install.ensure(["nginx"], install.read_versions(), print)
    contexts = {name: Context(used, folder / name, parts) for name in ("registry", "debezium")}
    running = []
    try:
        for name, context in contexts.items():
            context.work.mkdir()
            launch = find_service(name).launch(context)
            running.append(subprocess.Popen(launch.argv, cwd=context.work))
        yield contexts
    finally:
        for each in running:
            each.kill()
            each.wait()
