"""End-to-end tests with services that the user provides: a Kafka with TLS and a password, whose
user has rights only on names with a prefix; and a registry with TLS and a password."""

import re
import time
from collections.abc import Iterator

import pytest

from tests.e2e.shared import Door, text_of_run
from tests.relay import Relay
from tests.secured_kafka import FAR, PREFIX, RELAY, SecuredKafka, secured_kafka
from tests.secured_registry import PASSWORD as REGISTRY_PASSWORD
from tests.secured_registry import SecuredRegistry, secured_registry
from tests.waiting import wait_until

SECRET = re.compile(r'a \\*"secret')  # however quotation marks are escaped


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with secured_kafka(tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredRegistry]:
    with secured_registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.mark.parametrize(
    ("engine", "has_registry"),
    [
        *(("dh", False), ("kstreams", False), ("spark", False), ("cal", False)),
        *(("pg", True), ("flink", True)),
    ],
)
def test_a_run_is_verified_and_leaves_nothing(
    kafka: SecuredKafka,
    registry: SecuredRegistry,
    engine: str,
    has_registry: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in (kafka.settings() | (registry.settings() if has_registry else {})).items():
        monkeypatch.setenv(name, value)
    verify = [] if engine == "cal" else ["--verify"]
    door = Door("run_experiment.sh", engine, "500", "5", "5", "1.0", *verify)
    door.until(r"^\[4/")
    assert all(name.startswith(PREFIX) for name in (*kafka.topics(), *registry.subjects()))
    assert bool(registry.subjects()) == has_registry
    text = text_of_run(door)
    assert registry.subjects() == kafka.topics() == set()
    assert "broker" not in door.record()["results"]["processes"]
    assert not SECRET.search(text) and REGISTRY_PASSWORD not in text


def test_a_killed_run_leaves_nothing(
    kafka: SecuredKafka, registry: SecuredRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**kafka.settings(), **registry.settings()}.items():
        monkeypatch.setenv(name, value)
    door = Door("run_experiment.sh", "pg", "500", "20", "5", "1.0")
    door.until(r"^\[4/")
    assert kafka.topics() and registry.subjects()
    door.process.kill()
    wait_until(lambda: not (kafka.topics() or registry.subjects()), "clean-up", 30, every_s=0.2)
    assert door.wait() == -9


def test_a_run_outlasts_a_broker_that_goes_away_for_a_while(
    kafka: SecuredKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**kafka.settings_over_relay(), "LOADGEN_ACKS": "all"}.items():
        monkeypatch.setenv(name, value)
    with Relay(kafka.ports[RELAY], kafka.ports[FAR]).running() as relay:
        door = Door("run_experiment.sh", "cal", "500", "20", "5", "1.0")
        door.until(r"^\[4/")
        relay.cut()
        time.sleep(5)
        relay.mend()
        assert door.wait() == 0, door.output
    measured = door.record()["measured"]
    assert measured["handed_over"] == measured["end_offsets"]
