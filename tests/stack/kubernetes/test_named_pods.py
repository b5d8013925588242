"""Tests of a Kafka or an engine that is already in the cluster: found by label, used by other
pods."""

import json
from pathlib import Path
from typing import Any

import pytest

from racetrack.config import Settings, load
from racetrack.engines import find_engine
from racetrack.errors import SetupError, UsageError
from racetrack.run import checks
from racetrack.stack import provided, runtime
from racetrack.stack.kubernetes import manifests, named_pods
from racetrack.stack.kubernetes.kubectl import Kubectl
from racetrack.stack.kubernetes.startup import Logs
from tests.stack.kubernetes.test_manifests import Rendered, pods_of
from tests.stack.kubernetes.test_stack import Cluster, cluster, node

__all__ = ["cluster"]
OWN = {
    "RUNTIME": "kubernetes",
    "KAFKA_BOOTSTRAP_SERVERS": "main.kafka:9092,other.kafka:9092",
    "KAFKA_TOPIC_PREFIX": "racetrack-1.",
    "KAFKA_PODS": "kafka/strimzi.io/cluster=main",
}
MATERIALIZE = {
    "RUNTIME": "kubernetes",
    "MZ_URL": "postgres://materialize@balancer.mz:6875/materialize",
    "MZ_PODS": "mz/app=environmentd",
}
FLINK = {
    "RUNTIME": "kubernetes",
    "FLINK_GATEWAY_URL": "http://gateway.flink:8083",
    "FLINK_PODS": "flink/app=race",
}
ROLE = "role.racetrack.dev/"


class Pods(Kubectl):
    """A fake `kubectl` of a cluster with these pods."""

    def __init__(self, *pods: dict[str, Any]) -> None:
        super().__init__("test")
        self.asked: tuple[str, ...] = ()
        self._pods = list(pods)

    def get(self, *what: str) -> list[dict[str, Any]]:
        self.asked = what
        return self._pods


def pod(ready: str = "True") -> dict[str, Any]:
    return {
        "metadata": {"name": "main-0"},
        "spec": {"nodeName": "one", "containers": [{"image": "kafka:4"}, {"image": "side:1"}]},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def found_pods(
    kubectl: Kubectl, settings: Settings, nodes: dict[str, list[str]]
) -> list[named_pods.NamedPod]:
    return named_pods.find(kubectl, settings, provided.configured(settings), nodes)


def settings(**changed: str) -> Settings:
    return load({**OWN, **changed})


def test_pods_are_found_by_their_label() -> None:
    kubectl = Pods(pod(), pod(ready="False"))
    (found,) = found_pods(kubectl, settings(), {"one": [f"{ROLE}broker"]})
    assert kubectl.asked == ("pods", "--namespace=kafka", "--selector=strimzi.io/cluster=main")
    assert (found.service, found.name, found.node) == ("broker", "kafka/main-0", "one")
    assert found.image == "kafka:4, side:1"


def test_a_label_without_pods_is_an_error() -> None:
    with pytest.raises(
        SetupError, match=r"KAFKA_PODS=kafka/.* --namespace kafka get pods --selector strimzi"
    ):
        found_pods(Pods(pod(ready="False")), settings(), {"one": [f"{ROLE}broker"]})


def test_they_have_to_be_on_a_node_of_their_role_alone() -> None:
    with pytest.raises(SetupError, match=r"kubectl label node one role\.racetrack\.dev/broker="):
        found_pods(Pods(pod()), settings(), {"one": []})
    shared = {"one": [f"{ROLE}broker", f"{ROLE}engine"]}
    with pytest.raises(SetupError, match=r"also has the role role\.racetrack\.dev/engine\."):
        found_pods(Pods(pod()), settings(), shared)
    assert found_pods(Pods(pod()), settings(KUBERNETES_SMALL="true"), shared)


def test_without_a_label_nothing_is_looked_for() -> None:
    assert found_pods(Pods(pod()), settings(KAFKA_PODS=""), {}) == []


@pytest.mark.parametrize(
    "missing", [{"RUNTIME": "native"}, {"KAFKA_BOOTSTRAP_SERVERS": "", "KAFKA_TOPIC_PREFIX": ""}]
)
def test_a_label_needs_a_service_elsewhere_and_kubernetes(missing: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="KAFKA_PODS needs RUNTIME=kubernetes, and an address in"):
        provided.require_pods_possible(settings(**missing))


def test_pods_get_its_address_and_passwords_by_the_secret(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("for-kafka\n")
    own = settings(
        KAFKA_SECURITY_PROTOCOL="SASL_PLAINTEXT",
        KAFKA_SASL_MECHANISM="PLAIN",
        KAFKA_SASL_USERNAME="me",
        KAFKA_SASL_PASSWORD_FILE=str(tmp_path / "password"),
    )
    secret, *others = manifests.configuration(own, "")
    given = secret["stringData"]
    assert given["KAFKA_BOOTSTRAP"] == OWN["KAFKA_BOOTSTRAP_SERVERS"]
    assert (given["KAFKA_SASL_PASSWORD"], given["KAFKA_SASL_PASSWORD_FILE"]) == ("for-kafka", "")
    assert given["RUNTIME"] == "native"
    assert "for-kafka" not in json.dumps(others)


def test_the_broker_s_pod_has_the_registry_only() -> None:
    broker = pods_of("redpanda", "redpanda")
    broker["spec"]["template"] = {
        "metadata": {"labels": {"racetrack.dev/role": "broker"}},
        "spec": {
            "nodeSelector": {f"{ROLE}broker": ""},
            "containers": [{"image": "i", "resources": {"requests": {}, "limits": {}}}],
        },
    }
    (made,) = manifests.of_services(Rendered(broker), settings(), ["redpanda", "postgres"])
    assert manifests.roles(made) == [f"{ROLE}support"]
    (container,) = made["spec"]["template"]["spec"]["containers"]
    assert container["command"][-2:] == ["racetrack.stack.native.serve", "registry"]
    assert container["resources"]["requests"]["cpu"] == "1"


def test_a_program_connects_to_it_and_waits_for_it() -> None:
    program = pods_of("pgfeed", "pgfeed")
    program["spec"]["template"]["spec"] = {
        "initContainers": [{"image": "i", "command": ["wait", "mysql:3306", "redpanda:9092"]}],
        "containers": [
            {
                "image": "i",
                "env": [
                    {"name": "KAFKA_BOOTSTRAP", "value": "redpanda:9092"},
                    {"name": "MYSQL_HOST", "value": "mysql"},
                ],
            }
        ],
    }
    (made,) = manifests.of_services(Rendered(program), settings(), ["pgfeed"])
    pod_spec = made["spec"]["template"]["spec"]
    assert pod_spec["initContainers"][0]["command"] == ["wait", "mysql:3306", "main.kafka:9092"]
    assert pod_spec["containers"][0]["env"] == [{"name": "MYSQL_HOST", "value": "mysql"}]


def test_agents_learn_of_the_pods() -> None:
    agents = [{"kind": "DaemonSet", "spec": {"template": {"spec": {"containers": [{"env": []}]}}}}]
    manifests.add_to_agents(agents, ["kafka/main-0", "kafka/main-1"])
    (container,) = agents[0]["spec"]["template"]["spec"]["containers"]  # type: ignore[index]
    assert container["env"] == [{"name": "OTHER_PODS", "value": "kafka/main-0 kafka/main-1"}]


def test_a_stack_uses_it_inside_and_outside(cluster: Cluster) -> None:
    cluster.has("nodes", node("one", "support"))
    stack = runtime.open_stack(settings(), ["mysql"], print)
    assert stack.runtime == "kubernetes"
    for kafka in (stack.endpoints.kafka, stack.internal_endpoints.kafka):
        assert (str(kafka), kafka.topic("x")) == (OWN["KAFKA_BOOTSTRAP_SERVERS"], "racetrack-1.x")
    assert runtime.possible_stacks(settings())[0].runtime == "kubernetes"


@pytest.mark.parametrize(
    ("own", "service", "name"),
    [(FLINK, "flink", "flink/main-0"), (MATERIALIZE, "materialized", "mz/main-0")],
)
def test_pods_of_an_engine_are_on_the_engine_s_node(
    own: dict[str, str], service: str, name: str
) -> None:
    (found,) = found_pods(Pods(pod()), load(own), {"one": [f"{ROLE}engine"]})
    assert (found.service, found.name) == (service, name)


@pytest.mark.parametrize(
    ("own", "engine", "pods"), [(FLINK, "flink", "FLINK_PODS"), (MATERIALIZE, "mz", "MZ_PODS")]
)
def test_the_cost_of_an_engine_elsewhere_is_known_by_its_pods(
    own: dict[str, str], engine: str, pods: str
) -> None:
    found = find_engine(engine)
    assert found.measured_services(load(own)) == found.services
    assert found.measured_services(load({**own, pods: ""})) == ()


def test_either_agents_or_prometheus_measure_an_engine() -> None:
    queries = {"FLINK_CPU_QUERY": "a", "FLINK_MEMORY_QUERY": "b", "PROMETHEUS_URL": "http://p:9090"}
    with pytest.raises(UsageError, match="FLINK_PODS and FLINK_CPU_QUERY exclude each other"):
        provided.require_pods_possible(load({**FLINK, **queries}))


def test_pods_of_an_engine_that_does_not_run_are_not_looked_for() -> None:
    assert named_pods.find(Pods(), load(FLINK), [], {}) == []


def test_an_engine_elsewhere_reaches_the_services_at_a_node(cluster: Cluster) -> None:
    cluster.has("nodes", node("one", "support"))
    stack = runtime.open_stack(load(FLINK), ["mysql"], print)
    inside, outside = stack.internal_endpoints, stack.endpoints
    assert (inside.kafka, inside.registry) == (outside.kafka, outside.registry)


def test_without_an_engine_here_the_shared_services_start() -> None:
    (made,) = manifests.of_services(Rendered(pods_of("mysql", "mysql")), load(FLINK), ["mysql"])
    assert made["metadata"]["name"] == "mysql"


def test_the_registry_s_pod_is_not_called_broker(tmp_path: Path) -> None:
    logs = Logs(Kubectl("test"), tmp_path, {"redpanda": "registry"}.__getitem__)
    assert logs.file("redpanda").name == "registry.log"


def test_a_run_says_that_its_pods_were_measured(cluster: Cluster) -> None:
    stack = runtime.open_stack(settings(), ["mysql"], print)
    (caveat,) = checks.caveats_of_elsewhere(find_engine("kstreams"), stack)
    assert caveat.endswith(checks.SAMPLED)
