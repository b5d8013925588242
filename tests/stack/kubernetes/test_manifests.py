"""Tests of the values that the harness reads from the manifests, and of what it adds to them, also
for services that run elsewhere."""

import json
from pathlib import Path

import pytest

from racetrack.config import Settings, load
from racetrack.engines import all_engines
from racetrack.engines.contract import Engine
from racetrack.run.checks import services_of
from racetrack.stack.kubernetes import manifests, own_files
from tests.secured_kafka import client_properties

ENGINES = [engine for engine in all_engines() if "kubernetes" in engine.runtimes]


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_each_service_has_a_manifest_and_pods_scale_if_the_engine_does(engine: Engine) -> None:
    assert manifests.missing([*services_of(engine, load()), "swiftd"]) == ["swiftd"]
    folder = manifests.ENGINES / engine.name / "kubernetes" / "full"
    text = "".join(file.read_text() for file in folder.glob("*.yaml"))
    assert (manifests.SCALES in text) == ("kubernetes" in engine.scalable_on)


def test_pods_get_their_settings_with_secrets_in_the_secret_only() -> None:
    settings = load()
    secret, inside, scripts = manifests.configuration(settings, "10.0.0.1:30000")
    password = settings.mysql_root_password.get_secret_value()
    assert (secret["kind"], secret["stringData"]["MYSQL_ROOT_PASSWORD"]) == ("Secret", password)
    assert password not in json.dumps([inside, scripts])
    assert secret["stringData"]["KAFKA_OUTSIDE"] == "10.0.0.1:30000"
    assert inside["data"]["PEER_MYSQL"] == "mysql"
    assert {"demo.py", "nexmark.q4.flink.sql"} <= scripts["data"].keys()


CA, FILE = "ssl.ca.location", "KAFKA_CLIENT_PROPERTIES"
PLACE = f"{own_files.FOLDER}/{CA}"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Return settings of a Kafka elsewhere, with a certificate in the file `ca.pem`."""
    (tmp_path / "ca.pem").write_text("of the CA\n")
    properties = {"security.protocol": "SSL", CA: "ca.pem"}
    kafka = {"KAFKA_BOOTSTRAP_SERVERS": "main.kafka:9093", "KAFKA_TOPIC_PREFIX": "racetrack-1."}
    file = {FILE: client_properties(tmp_path / "client.properties", properties)}
    return load({"RUNTIME": "kubernetes", **kafka, **file})


def test_pods_get_the_file_and_its_place(settings: Settings) -> None:
    given, files, *_ = manifests.configuration(settings, "")
    assert files["metadata"]["name"] == own_files.SECRET
    assert files["stringData"] == {
        CA: "of the CA\n",
        FILE: f"security.protocol=SSL\n{CA}={PLACE}\n",
    }
    assert given["stringData"][FILE] == f"{own_files.FOLDER}/{FILE}"
    librdkafka = json.loads(given["stringData"]["KAFKA_LIBRDKAFKA_CONFIG"])
    java = json.loads(given["stringData"]["KAFKA_JAVA_CONFIG"])
    assert librdkafka["ssl.ca.location"] == PLACE
    assert java["ssl.truststore.certificates"] == "of the CA\n"
