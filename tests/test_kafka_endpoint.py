import json
import pickle
from pathlib import Path

import pytest

from racetrack import kafka_endpoint
from racetrack.config import for_record, load
from racetrack.errors import UsageError
from racetrack.kafka_endpoint import KafkaEndpoint

OUTSIDE = {"KAFKA_BOOTSTRAP_SERVERS": "a.example:9092", "KAFKA_TOPIC_PREFIX": "race-1."}
SASL = {
    **OUTSIDE,
    "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
    "KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
    "KAFKA_SASL_USERNAME": "me",
    "KAFKA_SASL_PASSWORD": 'a "secret" \\ word',
}


def endpoint(overrides: dict[str, str]) -> KafkaEndpoint:
    found = kafka_endpoint.elsewhere(load(overrides))
    assert found
    return found


def test_without_an_address_the_stack_has_a_broker_of_its_own() -> None:
    assert kafka_endpoint.elsewhere(load()) is None


def test_a_password_is_in_the_properties_of_both_kinds_of_clients() -> None:
    kafka = endpoint(SASL)
    client = kafka.librdkafka({"acks": "all"})
    assert client["sasl.password"] == 'a "secret" \\ word'
    assert client["acks"] == "all"
    assert kafka.java()["sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required"
        ' username="me" password="a \\"secret\\" \\\\ word";'
    )


def test_a_password_may_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("from a file\n")
    kafka = endpoint({**SASL, "KAFKA_SASL_PASSWORD_FILE": str(tmp_path / "password")})
    assert kafka.librdkafka()["sasl.password"] == "from a file"


def test_a_missing_file_is_named() -> None:
    with pytest.raises(UsageError, match="KAFKA_SASL_PASSWORD_FILE: /none/such can't be read"):
        endpoint({**SASL, "KAFKA_SASL_PASSWORD_FILE": "/none/such"})


def test_certificates_are_files_for_librdkafka_and_texts_for_java(tmp_path: Path) -> None:
    for name in ("certificate", "key"):
        (tmp_path / name).write_text(f"the {name}")
    kafka = endpoint(
        {
            **OUTSIDE,
            "KAFKA_SECURITY_PROTOCOL": "SSL",
            "KAFKA_SSL_CERTIFICATE_LOCATION": str(tmp_path / "certificate"),
            "KAFKA_SSL_KEY_LOCATION": str(tmp_path / "key"),
            "KAFKA_SSL_KEY_PASSWORD": "of the key",
        }
    )
    assert kafka.librdkafka()["ssl.key.location"] == str(tmp_path / "key")
    assert kafka.java()["ssl.keystore.key"] == "the key"
    assert kafka.java()["ssl.key.password"] == "of the key"


def test_other_properties_are_passed_on_word_for_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_CLIENT_SOCKET_CONNECTION_SETUP_TIMEOUT_MS", "secret 1")
    kafka = endpoint(OUTSIDE)
    for properties in (kafka.librdkafka(), kafka.java()):
        assert properties["socket.connection.setup.timeout.ms"] == "secret 1"
    recorded = for_record(load(OUTSIDE))
    assert recorded["kafka_client"] == "socket.connection.setup.timeout.ms"


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"KAFKA_BOOTSTRAP_SERVERS": "a.example"}, "host:port"),
        ({"KAFKA_BOOTSTRAP_SERVERS": "a.example:1"}, "KAFKA_TOPIC_PREFIX is empty"),
        ({"KAFKA_TOPIC_PREFIX": "race-1."}, "set KAFKA_BOOTSTRAP_SERVERS too"),
        ({**OUTSIDE, "KAFKA_TOPIC_PREFIX": "r."}, "at least four"),
        ({**OUTSIDE, "KAFKA_TOPIC_PREFIX": "race"}, "a full stop at the end"),
        ({**OUTSIDE, "KAFKA_SECURITY_PROTOCOL": "SASL_SSL"}, "don't fit"),
        ({**OUTSIDE, "KAFKA_SASL_MECHANISM": "PLAIN"}, "don't fit"),
        ({**OUTSIDE, "KAFKA_SSL_KEY_LOCATION": "k"}, "need each other"),
        ({**SASL, "KAFKA_SASL_MECHANISM": "NONE"}, "SCRAM-SHA-256"),
        ({**SASL, "KAFKA_SASL_MECHANISM": "OAUTHBEARER"}, "SCRAM-SHA-256"),
    ],
)
def test_contradicting_settings_are_refused(overrides: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError, match=says) as refused:
        load(overrides)
    assert "secret" not in str(refused.value)


def test_no_secret_is_shown_or_recorded() -> None:
    kafka = endpoint(SASL)
    assert str(kafka) == "a.example:9092"
    assert "secret" not in repr(kafka)
    assert "secret" not in json.dumps(for_record(load(SASL)))


def test_a_process_gets_it_by_its_environment() -> None:
    kafka = endpoint({**SASL, "KAFKA_REPLICATION_FACTOR": "3"})
    assert KafkaEndpoint.from_environment(kafka.environment()) == kafka
    assert pickle.loads(pickle.dumps(kafka)) == kafka  # noqa: S301  # to the view reader's process


def test_names_in_the_cluster_have_the_prefix() -> None:
    kafka = endpoint(OUTSIDE)
    assert kafka.topic("pageviews") == "race-1.pageviews"
    assert kafka.name_of("race-1.pageviews") == "pageviews"
    assert kafka.librdkafka({"group.id": "reader"})["group.id"] == "race-1.reader"
