"""Tests that pods get the certificates and keys of services that run elsewhere, and find them."""

import json
from pathlib import Path

import pytest

from racetrack.config import Settings, load
from racetrack.errors import UsageError
from racetrack.stack.kubernetes import manifests, own_files
from tests.secured_kafka import client_properties
from tests.stack.kubernetes.test_manifests import Rendered, pods_of

CA, FILE = "ssl.ca.location", "KAFKA_CLIENT_PROPERTIES"
PLACE = f"{own_files.FOLDER}/{CA}"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "ca.pem").write_text("of the CA\n")
    return with_kafka(**{FILE: properties(tmp_path)})


def properties(folder: Path) -> str:
    return client_properties(
        folder / "client.properties", {"security.protocol": "SSL", CA: "ca.pem"}
    )


def with_kafka(**others: str) -> Settings:
    kafka = {"KAFKA_BOOTSTRAP_SERVERS": "main.kafka:9093", "KAFKA_TOPIC_PREFIX": "racetrack-1."}
    return load({"RUNTIME": "kubernetes", **kafka, **others})


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


def test_all_containers_see_the_files(settings: Settings) -> None:
    program = pods_of("pgfeed", "pgfeed")
    program["spec"]["template"]["spec"] = {
        "initContainers": [{"image": "i", "command": ["wait"]}],
        "containers": [{"image": "i", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
    }
    (made,) = manifests.of_services(Rendered(program), settings, ["pgfeed"])
    pod = made["spec"]["template"]["spec"]
    assert pod["volumes"] == [{"name": "own-files", "secret": {"secretName": own_files.SECRET}}]
    for container in (*pod["initContainers"], *pod["containers"]):
        assert container["volumeMounts"][-1]["mountPath"] == own_files.FOLDER


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"{FILE}: {CA}: .*ca.pem can't be read"):
        own_files.contents(with_kafka(**{FILE: properties(tmp_path)}))
    assert own_files.secrets(with_kafka()) == []
