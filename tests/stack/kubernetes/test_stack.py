"""Tests of a start on a simulated cluster, and of the namespace's removal."""

import sys
from pathlib import Path

import pytest

from racetrack.config import load
from racetrack.errors import BusyError, SetupError, UsageError
from racetrack.stack.kubernetes import orphans
from racetrack.stack.kubernetes.kubectl import Kubectl
from racetrack.stack.kubernetes.stack import KubernetesStack
from tests.stack.kubernetes.cluster import Cluster, node, stateful_set

SERVICES = ("mysql", "broker", "loadgen", "registry", "debezium", "postgres", "pgfeed")


def stack(**settings: str) -> KubernetesStack:
    return KubernetesStack(load({"RUNTIME": "kubernetes", "STACK_NAME": "test_it", **settings}))


@pytest.mark.slow
def test_each_role_needs_a_node_and_cores_are_not_assigned_by_settings(cluster: Cluster) -> None:
    with pytest.raises(UsageError, match=r"ENGINE_CPUS has no effect .* on Kubernetes"):
        stack(ENGINE_CPUS="0").prepare(SERVICES, print)
    stack().prepare(SERVICES, print)
    assert not any(each.startswith("delete") for each in cluster.commands())
    cluster.has("nodes", node("one", "broker"), node("two", "generator"))
    with pytest.raises(SetupError, match=r"`kubectl label node NAME role.*/support=`.*one, two"):
        stack().prepare(SERVICES, print)


def test_the_brokers_volume_is_known_before_the_start(cluster: Cluster) -> None:
    broker = stateful_set("redpanda", role="broker")
    mount = {"name": "data", "mountPath": "/data"}
    broker["spec"]["template"]["spec"] |= {
        "containers": [{"image": "kafka", "volumeMounts": [mount]}],
        "volumes": [{"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}],
    }
    cluster.says("create", broker)
    prepared = stack()
    prepared.prepare(SERVICES, print)
    (folder,) = prepared.data_folders()
    assert folder.name == "/data of the pod redpanda-0"
    assert folder.space == (1 << 30, 1 << 30)


def test_a_namespace_of_a_killed_run_is_removed(cluster: Cluster) -> None:
    cluster.has("namespaces", {})
    cluster.says("delete namespace test-it", "")
    assert orphans.clear_at_once("test_it") == "the namespace test-it"
    assert any(each.startswith("delete namespace test-it") for each in cluster.commands())


def test_one_of_somebody_else_is_left_alone(cluster: Cluster) -> None:
    cluster.has("namespaces --field-selector", {})
    cluster.has("namespaces --selector")
    with pytest.raises(BusyError, match="namespace test-it was not created by Racetrack"):
        stack().prepare(SERVICES, print)
    assert not any(each.startswith("delete") for each in cluster.commands())


def test_ctrl_c_does_not_reach_a_command(cluster: Cluster, tmp_path: Path) -> None:
    """Otherwise, Ctrl-C could interrupt the removal of a namespace."""
    program = f"#!{sys.executable}\nimport os\nprint(os.getpgid(0) == os.getpid())\n"
    (tmp_path / "kubectl").write_text(program)
    assert Kubectl("test_it").run("delete", "namespace") == "True\n"
