"""Tests of a run's checks and removals in a Kafka that the user provides: a real one, with TLS,
passwords, and rights on a prefix only."""

import time
from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import cast

import pytest
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from racetrack.config import load
from racetrack.engines import find_engine
from racetrack.errors import BusyError, SetupError
from racetrack.kafka_endpoint import KafkaEndpoint, elsewhere
from racetrack.run.checks import require_known_clock
from racetrack.stack.contract import Stack
from racetrack.stack.own_kafka import OwnNames
from racetrack.stack.own_kafka_check import check
from tests.relay import Relay
from tests.secured_kafka import FAR, PREFIX, RELAY, RIGHTS, SecuredKafka, secured_kafka

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with secured_kafka(tmp_path_factory.mktemp("kafka")) as running:
        yield running


def own(settings: dict[str, str]) -> KafkaEndpoint:
    found = elsewhere(load(settings))
    assert found
    return found


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "certificate"])
def test_all_kinds_of_passwords_and_certificates_work(kafka: SecuredKafka, mechanism: str) -> None:
    has_password = mechanism != "certificate"
    own_settings = kafka.settings(mechanism) if has_password else kafka.settings_with_certificate()
    OwnNames(own(own_settings)).require_none()


def test_topics_of_others_stay(kafka: SecuredKafka) -> None:
    names = [f"{PREFIX}mine", "race_1", "race_10.theirs", "theirs"]
    for made in kafka.admin.create_topics([NewTopic(name, 1) for name in names]).values():
        made.result(10)
    mine = OwnNames(own(kafka.settings()))
    with pytest.raises(BusyError, match=rf"1 topics begin with {PREFIX}"):
        mine.require_none()
    assert mine.remove().count == 1
    assert kafka.topics() == set(names[1:])
    for done in kafka.admin.delete_topics(names[1:]).values():
        done.result(10)


def test_what_can_t_be_removed_is_listed(kafka: SecuredKafka) -> None:
    kafka.admin.create_topics([NewTopic(f"{PREFIX}mine", 1)])[f"{PREFIX}mine"].result(10)
    kafka.allow({name: right for name, right in RIGHTS.items() if name != "TOPIC.DELETE"})
    removed = OwnNames(own(kafka.settings())).remove()
    assert removed.count == 0
    assert f"{PREFIX}mine" in removed.remaining[0]
    kafka.allow(RIGHTS)
    assert OwnNames(own(kafka.settings())).remove().remaining == []


@pytest.mark.parametrize("missing", RIGHTS)
def test_each_missing_right_is_named(kafka: SecuredKafka, missing: str) -> None:
    kafka.allow({name: right for name, right in RIGHTS.items() if name != missing})
    kind, _, operation = missing.partition(".")
    began_s = time.monotonic()
    try:
        with pytest.raises(SetupError) as refused:
            check(own(kafka.settings()))
        took_s = time.monotonic() - began_s
    finally:
        kafka.allow(RIGHTS)
        OwnNames(own(kafka.settings())).remove()
    right = f"Give the user the right {operation} on {kind.lower()}s named {PREFIX}*."
    lines = str(refused.value).splitlines()[1:]
    assert [line for line in lines if not line.endswith(right)] == []
    assert took_s < 10


def test_with_all_rights_the_check_passes_and_leaves_nothing(kafka: SecuredKafka) -> None:
    passed = check(own(kafka.settings()))
    assert passed.clock
    assert abs(passed.clock.offset_ms) <= passed.clock.uncertainty_ms < 20
    assert kafka.topics() == set()


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"sasl_password": "not the secret"}, "sasl.password"),
        ({"ssl_ca_location": ""}, "ssl.ca.location"),
        ({"KAFKA_BOOTSTRAP_SERVERS": "none.invalid:9092"}, "KAFKA_BOOTSTRAP_SERVERS"),
        ({"KAFKA_REPLICATION_FACTOR": "3"}, "KAFKA_REPLICATION_FACTOR"),
    ],
)
def test_a_wrong_property_or_setting_is_named(
    kafka: SecuredKafka, changed: dict[str, str], named: str
) -> None:
    if not named.isupper():
        changed = {"KAFKA_CLIENT_PROPERTIES": kafka.client_properties(**changed)}
    with pytest.raises(SetupError) as refused:
        check(own({**kafka.settings(), **changed}), within_s=4.0)
    (reason,) = str(refused.value).splitlines()[1:]
    assert reason.strip().startswith(f"{next(iter(changed))}: can't ") and named in reason
    assert "not the secret" not in reason


@pytest.mark.parametrize(("delay_ms", "is_accepted"), [(10, True), (30, False)])
def test_a_far_broker_is_accepted_if_its_clock_is_known(
    kafka: SecuredKafka, delay_ms: int, is_accepted: bool
) -> None:
    with Relay(kafka.ports[RELAY], kafka.ports[FAR], delay_ms / 1000).running():
        clock = check(own(kafka.settings_over_relay())).clock
    assert clock
    assert abs(clock.offset_ms) <= clock.uncertainty_ms
    assert delay_ms <= clock.uncertainty_ms < delay_ms + 5
    stack = cast(Stack, SimpleNamespace(clocks={"broker": clock}, settings=load()))
    require_known_clock(find_engine("dh"), stack)
    with nullcontext() if is_accepted else pytest.raises(SetupError, match="± 20 ms"):
        require_known_clock(find_engine("flink"), stack)
