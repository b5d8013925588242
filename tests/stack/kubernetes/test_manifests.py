"""Tests of the values that the harness reads from the manifests, and of what it adds to them, also
for services that run elsewhere."""

import json
from pathlib import Path
from typing import Any

import pytest

from racetrack.config import Settings, load
from racetrack.engines import all_engines
from racetrack.engines.contract import Engine
from racetrack.errors import UsageError
from racetrack.run.checks import services_of
from racetrack.stack.kubernetes import manifests, own_files
from tests.secured_kafka import client_properties
from tests.stack.kubernetes.cluster import Cluster, stateful_set

ENGINES = [engine for engine in all_engines() if "kubernetes" in engine.runtimes]


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_each_service_has_a_manifest_and_pods_scale_if_the_engine_does(engine: Engine) -> None:
    assert manifests.missing([*services_of(engine, load()), "swiftd"]) == ["swiftd"]
    folder = manifests.ENGINES / engine.name / "kubernetes" / "full"
    text = "".join(file.read_text() for file in folder.glob("*.yaml"))
    assert (manifests.SCALES in text) == ("kubernetes" in engine.scalable_on)


def test_node_ports_go_by_annotation_and_in_the_order_of_the_brokers() -> None:
    service = {
        "metadata": {"annotations": {"racetrack.dev/port-19092": "KAFKA_PORT"}},
        "spec": {"ports": [{"port": 9092, "nodePort": 1}, {"port": 19092, "nodePort": 2}]},
    }
    without: dict[str, Any] = {"metadata": {}, "spec": {"ports": []}}
    assert manifests.node_ports([service, without]) == {"kafka_port": 2}
    brokers = {
        f"redpanda-{number}": {"name": "outside", "nodePort": number} for number in (10, 0, 2)
    }
    services = [
        {"metadata": {"name": name}, "spec": {"ports": [outside, {"port": 1}]}}
        for name, outside in brokers.items()
    ]
    assert manifests.outside_ports(services) == [0, 2, 10]


def test_pods_get_their_settings_with_secrets_in_the_secret_only() -> None:
    settings = load()
    secret, inside, scripts = manifests.configuration(settings, "10.0.0.1:30000")
    password = settings.mysql_root_password.get_secret_value()
    assert (secret["kind"], secret["stringData"]["MYSQL_ROOT_PASSWORD"]) == ("Secret", password)
    assert password not in json.dumps([inside, scripts])
    assert secret["stringData"]["KAFKA_OUTSIDE"] == "10.0.0.1:30000"
    assert inside["data"]["PEER_MYSQL"] == "mysql"
    assert {"demo.py", "nexmark.q4.flink.sql"} <= scripts["data"].keys()


def test_pods_that_scale_get_the_replicas_of_the_settings(cluster: Cluster) -> None:
    kubectl = cluster.renders(
        stateful_set("flink"),
        stateful_set("flink-workers", "flink", **{"racetrack.dev/scales": "ENGINE_REPLICAS"}),
    )
    objects = manifests.of_services(kubectl, load({"ENGINE_REPLICAS": "3"}), ["flink"])
    first, second = manifests.workloads(objects)
    assert first.pods == ["flink-0"]
    assert second.pods == ["flink-workers-0", "flink-workers-1", "flink-workers-2"]


@pytest.mark.parametrize(
    ("services", "waits_for"),
    [
        (["mysql", "redpanda", "loadgen"], ["mysql:3306", "redpanda:9092"]),
        (["redpanda", "loadgen"], ["redpanda:9092"]),
    ],
)
def test_pods_wait_only_for_services_that_are_started(
    cluster: Cluster, services: list[str], waits_for: list[str]
) -> None:
    loadgen = stateful_set("loadgen")
    script = ["bash", "-c", "for at; do until reached $at; do sleep 1; done; done", "wait"]
    loadgen["spec"]["template"]["spec"]["initContainers"] = [
        {"image": "any", "command": [*script, "mysql:3306", "redpanda:9092"]}
    ]
    kubectl = cluster.renders(stateful_set("mysql"), stateful_set("redpanda"), loadgen)
    *_, found = manifests.of_services(kubectl, load(), services)
    (container,) = found["spec"]["template"]["spec"]["initContainers"]
    assert container["command"] == [*script, *waits_for]


def test_each_broker_has_a_service_of_its_own(cluster: Cluster) -> None:
    pods = stateful_set("redpanda", **{"racetrack.dev/scales": "BROKER_REPLICAS"})
    annotations = {"racetrack.dev/port-19092": "KAFKA_PORT"}
    name, outside = "redpanda-0", {"name": "outside", "port": 19092}
    service = {
        "kind": "Service",
        "metadata": {**pods["metadata"], "name": name, "annotations": annotations},
        "spec": {"selector": {manifests.POD: name}, "ports": [outside]},
    }
    kubectl = cluster.renders(pods, service, stateful_set("pg"))
    settings = load({"BROKER_REPLICAS": "2", "ENGINE_REPLICAS": "4"})
    brokers, first, second = manifests.of_services(kubectl, settings, ["redpanda", "postgres"])
    assert brokers["spec"]["replicas"] == 2
    names = [each["metadata"]["name"] for each in (first, second)]
    assert names == ["redpanda-0", "redpanda-1"]
    assert [each["spec"]["selector"][manifests.POD] for each in (first, second)] == names
    assert first["spec"]["ports"] == second["spec"]["ports"]
    assert first["spec"]["type"] == second["spec"]["type"] == "NodePort"
    # The harness connects to the first broker, which reports the others.
    assert ["annotations" in each["metadata"] for each in (first, second)] == [True, False]


def test_volumes_in_memory_have_the_size_of_their_limit() -> None:
    broker, names = stateful_set("redpanda"), ("data", "rest", "disk")
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in names]
    broker["spec"]["template"]["spec"] = {
        "containers": [{"volumeMounts": mounts}],
        "volumes": [
            {"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": "4Gi"}},
            {"name": "rest", "emptyDir": {"medium": "Memory"}},
            {"name": "disk", "emptyDir": {"sizeLimit": "4Gi"}},
        ],
    }
    assert manifests.volumes_in_memory(broker) == {"/data": 4 << 30}
    assert manifests.volumes_in_memory({"kind": "Service", "spec": {}}) == {}


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


def test_all_containers_see_the_files(cluster: Cluster, settings: Settings) -> None:
    program = stateful_set("pgfeed")
    program["spec"]["template"]["spec"] = {
        "initContainers": [{"image": "i", "command": ["wait"]}],
        "containers": [{"image": "i", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
    }
    (made,) = manifests.of_services(cluster.renders(program), settings, ["pgfeed"])
    pod = made["spec"]["template"]["spec"]
    assert pod["volumes"] == [{"name": "own-files", "secret": {"secretName": own_files.SECRET}}]
    for container in (*pod["initContainers"], *pod["containers"]):
        assert container["volumeMounts"][-1]["mountPath"] == own_files.FOLDER


def test_a_file_that_cannot_be_read_is_named(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").unlink()
    with pytest.raises(UsageError, match=f"{FILE}: {CA}: .*ca.pem can't be read"):
        own_files.contents(settings)
    without = settings.model_copy(update={"kafka_client_properties": ""})
    assert own_files.secrets(without) == []
