"""End-to-end tests with services that the user provides: a MySQL with TLS and a password, whose
user has rights only on databases named `racetrack_…`, and those for replication; and a Kafka
Connect with TLS and a password."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest

from tests.e2e.shared import Door, run_folder
from tests.secured_connect import PASSWORD as CONNECT_PASSWORD
from tests.secured_connect import SecuredConnect, secured_connect
from tests.secured_kafka import SecuredKafka, secured_kafka
from tests.secured_mysql import PASSWORD, SecuredMysql, secured_mysql
from tests.secured_registry import PASSWORD as REGISTRY_PASSWORD
from tests.secured_registry import SecuredRegistry, secured_registry
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e

CHANGES = {"UPDATES_PER_SECOND": "5", "DELETES_PER_SECOND": "1"}


@pytest.fixture(scope="module")
def mysql() -> Iterator[SecuredMysql]:
    with secured_mysql() as running:
        yield running


@dataclass(frozen=True)
class Site:
    """All services but the engine."""

    kafka: SecuredKafka
    registry: SecuredRegistry
    mysql: SecuredMysql
    connect: SecuredConnect

    def settings(self) -> dict[str, str]:
        services = (self.kafka, self.registry, self.mysql, self.connect)
        return {name: value for each in services for name, value in each.settings().items()}

    def left(self) -> set[str]:
        """Return the names of everything that runs created."""
        theirs = (self.kafka.topics(), self.registry.subjects(), self.mysql.databases())
        return set().union(*theirs, self.connect.connectors())


@pytest.fixture(scope="module")
def site(mysql: SecuredMysql, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp
    with (
        secured_kafka(folder("kafka")) as kafka,
        secured_registry(folder("registry")) as registry,
        secured_connect(folder("connect"), kafka, registry, mysql) as connect,
    ):
        yield Site(kafka, registry, mysql, connect)


def use(settings: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)


def output_and_files(door: Door) -> str:
    """Return a run's output and the content of its folder."""
    files = [path for path in run_folder(door.output).rglob("*") if path.is_file()]
    return door.output + "".join(path.read_text(errors="replace") for path in files)


def test_a_run_is_verified_and_leaves_nothing(
    mysql: SecuredMysql, monkeypatch: pytest.MonkeyPatch
) -> None:
    use({**mysql.settings(), **CHANGES}, monkeypatch)
    door = Door("run_experiment.sh", "pg", "500", "5", "5", "1.0", "--verify")
    door.until(r"^\[4/")
    assert len(mysql.databases()) == 1
    assert door.wait() == 0, door.output
    assert mysql.databases() == set()
    log = (run_folder(door.output) / "stack/debezium.log").read_text()
    assert "obtain global read lock" not in log  # it would stop the server's other users
    text = output_and_files(door)
    assert PASSWORD not in text
    assert "MySQL was not started by this run" in text


def test_a_killed_run_leaves_nothing(mysql: SecuredMysql, monkeypatch: pytest.MonkeyPatch) -> None:
    use(mysql.settings(), monkeypatch)
    door = Door("run_experiment.sh", "cal", "500", "20", "5", "1.0")
    door.until(r"^\[4/")
    assert mysql.databases()
    door.process.kill()
    wait_until(lambda: not mysql.databases(), "clean-up", 30, every_s=0.2)
    assert door.wait() == -9


def test_a_run_with_connect_elsewhere_is_verified_and_leaves_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    use({**site.settings(), **CHANGES}, monkeypatch)
    door = Door("run_experiment.sh", "pg", "500", "5", "5", "1.0", "--verify")
    door.until(r"^\[4/")
    (connector,) = site.connect.connectors()
    config = str(site.connect.config(connector))
    assert door.wait() == 0, door.output
    assert site.left() == set()
    text = output_and_files(door)
    for secret in (PASSWORD, REGISTRY_PASSWORD, CONNECT_PASSWORD):
        assert secret not in text and secret not in config
    assert "Kafka Connect was not started by this run" in text


def test_a_killed_run_with_connect_elsewhere_leaves_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(site.settings(), monkeypatch)
    door = Door("run_experiment.sh", "pg", "500", "20", "5", "1.0")
    door.until(r"^\[4/")
    assert len(site.left()) > 3
    door.process.kill()
    wait_until(lambda: not site.left(), "clean-up", 30, every_s=0.2)
    assert door.wait() == -9
