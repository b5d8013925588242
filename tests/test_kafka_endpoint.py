import json
import pickle
from pathlib import Path

import pytest

from racetrack import kafka_endpoint
from racetrack.config import for_record, load
from racetrack.errors import UsageError
from racetrack.kafka_endpoint import KafkaEndpoint

OUTSIDE = {"KAFKA_BOOTSTRAP_SERVERS": "a.example:9092", "KAFKA_TOPIC_PREFIX": "race-1."}
FILE = "KAFKA_CLIENT_PROPERTIES"
LOGIN = """# comments and blank lines are skipped

security.protocol = sasl_ssl
sasl.mechanisms=SCRAM-SHA-512
sasl.username=me
sasl.password=a "secret" \\ word
"""


def with_file(folder: Path, text: str = LOGIN, mode: int = 0o600) -> dict[str, str]:
    """Return the settings for a Kafka elsewhere with these client properties."""
    file = folder / "client.properties"
    file.write_text(text)
    file.chmod(mode)
    return {**OUTSIDE, FILE: str(file)}


def endpoint(overrides: dict[str, str]) -> KafkaEndpoint:
    kafka = kafka_endpoint.elsewhere(load(overrides))
    assert kafka
    return kafka


def test_a_password_is_in_the_properties_of_both_kinds_of_clients(tmp_path: Path) -> None:
    kafka = endpoint(with_file(tmp_path))
    client = kafka.librdkafka({"acks": "all", "group.id": "reader"})
    assert client["sasl.password"] == 'a "secret" \\ word'
    assert (client["acks"], client["group.id"]) == ("all", "race-1.reader")
    assert kafka.java()["security.protocol"] == "SASL_SSL"
    assert kafka.java()["sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required"
        ' username="me" password="a \\"secret\\" \\\\ word";'
    )


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"{FILE}: /none/such can't be read"):
        endpoint({**OUTSIDE, FILE: "/none/such"})


def test_certificates_are_files_for_librdkafka_and_texts_for_java(tmp_path: Path) -> None:
    for name in ("certificate", "key"):
        (tmp_path / name).write_text(f"the {name}")
    files = "ssl.certificate.location=certificate\nssl.key.location=key\nssl.key.password=word"
    kafka = endpoint(with_file(tmp_path, f"security.protocol=SSL\n{files}"))
    assert kafka.librdkafka()["ssl.key.location"] == str(tmp_path / "key")
    java = {"ssl.keystore.type": "PEM", "ssl.keystore.key": "the key", "ssl.key.password": "word"}
    assert java.items() <= kafka.java().items()


def test_properties_have_the_names_and_values_of_each_kind_of_client(tmp_path: Path) -> None:
    text = (
        "socket.timeout.ms=9000\nsocket.send.buffer.bytes=0\nreconnect.backoff.ms=50\n"
        "ssl.endpoint.identification.algorithm=none"
    )
    kafka = endpoint(with_file(tmp_path, text))
    assert kafka.librdkafka()["socket.timeout.ms"] == "9000"
    assert kafka.java() == {
        "bootstrap.servers": "a.example:9092",
        "security.protocol": "PLAINTEXT",
        "request.timeout.ms": "9000",
        "send.buffer.bytes": "-1",
        "reconnect.backoff.ms": "50",
        "ssl.endpoint.identification.algorithm": "",
    }


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"KAFKA_BOOTSTRAP_SERVERS": "a.example"}, "host:port"),
        ({"KAFKA_BOOTSTRAP_SERVERS": "a.example:1"}, "KAFKA_TOPIC_PREFIX"),
        ({FILE: "LICENSE"}, "KAFKA_BOOTSTRAP_SERVERS"),
        ({**OUTSIDE, "KAFKA_TOPIC_PREFIX": "r."}, "KAFKA_TOPIC_PREFIX"),
    ],
)
def test_contradicting_settings_are_refused(overrides: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        load(overrides)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("security.protocol=SSL\nssl.ca.location=ca.pem", r"ca\.location: .* can't be read"),
        ("security.protocol=SASL_SSL", "don't fit"),
        ("sasl.mechanism=PLAIN", "don't fit"),
        ("ssl.key.location=k", "need each other"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER", "SCRAM-SHA-256"),
        ("client.id=a\nclient.id=b", "client.id .*twice"),
        ("sasl.usernam=me", r"Did you mean sasl\.username\?"),
        ("sasl.oauthbearer.config=secret", "in common"),
        ("ssl.truststore.location=t.jks", "ssl.ca.location"),
        ("bootstrap.servers=a:9", "KAFKA_BOOTSTRAP_SERVERS"),
        ("\nsecret", "line 2"),
        ("MIIsecret==", "line 1"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"{FILE}: .*{says}") as refused:
        endpoint(with_file(tmp_path, text))
    assert "secret" not in str(refused.value)


def test_a_password_that_all_users_can_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"{FILE}: .*chmod 600"):
        endpoint(with_file(tmp_path, mode=0o644))
    assert endpoint(with_file(tmp_path, "client.id=mine", 0o644))


def test_processes_get_it_but_no_password_is_shown_or_recorded(tmp_path: Path) -> None:
    settings = {**with_file(tmp_path), "KAFKA_REPLICATION_FACTOR": "3"}
    kafka = endpoint(settings)
    assert str(kafka) == "a.example:9092"
    assert "secret" not in repr(kafka)
    assert "secret" not in json.dumps(for_record(load(settings)))
    assert KafkaEndpoint.from_environment(kafka.environment()) == kafka
    assert pickle.loads(pickle.dumps(kafka)) == kafka  # noqa: S301  # to the view reader's process


def test_names_of_topics_have_the_prefix() -> None:
    kafka = endpoint(OUTSIDE)
    assert kafka.topic("pageviews") == "race-1.pageviews"
    assert kafka.name_of("race-1.pageviews") == "pageviews"
