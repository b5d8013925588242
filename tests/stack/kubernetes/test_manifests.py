"""Tests of the values that the harness reads from the manifests, and of what it adds to them."""

import json
from copy import deepcopy
from pathlib import Path

import pytest

from racetrack.config import load
from racetrack.engines import all_engines
from racetrack.engines.contract import Engine
from racetrack.run.checks import services_of
from racetrack.stack.kubernetes import manifests
from racetrack.stack.kubernetes.kubectl import Kubectl

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
    without: manifests.Object = {"metadata": {}, "spec": {"ports": []}}
    assert manifests.node_ports([service, without]) == {"kafka_port": 2}
    brokers = [
        {
            "metadata": {"name": f"redpanda-{number}"},
            "spec": {"ports": [{"name": "outside", "nodePort": port}, {"port": 1}]},
        }
        for number, port in ((10, 3), (0, 1), (2, 2))
    ]
    assert manifests.outside_ports(brokers) == [1, 2, 3]


def test_pods_get_their_settings_with_secrets_in_the_secret_only() -> None:
    settings = load()
    secret, inside, scripts = manifests.configuration(settings, "10.0.0.1:30000")
    password = settings.mysql_root_password.get_secret_value()
    assert (secret["kind"], secret["stringData"]["MYSQL_ROOT_PASSWORD"]) == ("Secret", password)
    assert password not in json.dumps([inside, scripts])
    assert secret["stringData"]["KAFKA_OUTSIDE"] == "10.0.0.1:30000"
    assert inside["data"]["PEER_MYSQL"] == "mysql"
    assert {"demo.py", "nexmark.q4.flink.sql"} <= scripts["data"].keys()


class Rendered(Kubectl):
    """A fake `kubectl` that renders these objects for every folder."""

    def __init__(self, *objects: manifests.Object) -> None:
        super().__init__("test")
        self._objects = objects

    def render(self, folder: Path) -> list[manifests.Object]:
        return deepcopy([*self._objects])


def pods_of(name: str, service: str, **labels: str) -> manifests.Object:
    return {
        "kind": "StatefulSet",
        "metadata": {"name": name, "labels": {"racetrack.dev/service": service, **labels}},
        "spec": {"replicas": 1, "template": {"spec": {"containers": []}}},
    }


def test_pods_that_scale_get_the_replicas_of_the_settings() -> None:
    kubectl = Rendered(
        pods_of("flink", "flink"),
        pods_of("flink-workers", "flink", **{"racetrack.dev/scales": "ENGINE_REPLICAS"}),
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
    services: list[str], waits_for: list[str]
) -> None:
    loadgen = pods_of("loadgen", "loadgen")
    script = ["bash", "-c", "for at; do until reached $at; do sleep 1; done; done", "wait"]
    loadgen["spec"]["template"]["spec"]["initContainers"] = [
        {"image": "any", "command": [*script, "mysql:3306", "redpanda:9092"]}
    ]
    kubectl = Rendered(pods_of("mysql", "mysql"), pods_of("redpanda", "redpanda"), loadgen)
    *_, found = manifests.of_services(kubectl, load(), services)
    (container,) = found["spec"]["template"]["spec"]["initContainers"]
    assert container["command"] == [*script, *waits_for]


def service_of(name: str, service: str) -> manifests.Object:
    labels = {"racetrack.dev/service": service, "racetrack.dev/scales": "BROKER_REPLICAS"}
    annotations = {"racetrack.dev/port-19092": "KAFKA_PORT"}
    return {
        "kind": "Service",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {"selector": {manifests.POD: name}, "ports": [{"name": "outside", "port": 19092}]},
    }


def test_each_broker_has_a_service_of_its_own() -> None:
    kubectl = Rendered(
        pods_of("redpanda", "redpanda", **{"racetrack.dev/scales": "BROKER_REPLICAS"}),
        service_of("redpanda-0", "redpanda"),
        pods_of("pg", "pg"),
    )
    settings = load({"BROKER_REPLICAS": "2", "ENGINE_REPLICAS": "4"})
    brokers, first, second = manifests.of_services(kubectl, settings, ["redpanda", "postgres"])
    assert brokers["spec"]["replicas"] == 2
    names = [each["metadata"]["name"] for each in (first, second)]
    assert names == ["redpanda-0", "redpanda-1"]
    assert [each["spec"]["selector"][manifests.POD] for each in (first, second)] == names
    assert first["spec"]["ports"] == second["spec"]["ports"]
    assert {first["spec"]["type"], second["spec"]["type"]} == {"NodePort"}
    # The harness connects to the first broker, which reports the others.
    assert "annotations" in first["metadata"]
    assert "annotations" not in second["metadata"]


def test_volumes_in_memory_have_the_size_of_their_limit() -> None:
    broker, names = pods_of("redpanda", "redpanda"), ("data", "rest", "disk")
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
