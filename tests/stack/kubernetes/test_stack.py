"""Tests of a start on a simulated cluster: refusals, and the namespace's removal."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from racetrack.config import load
from racetrack.errors import BusyError, SetupError, UsageError
from racetrack.stack import runtime
from racetrack.stack.kubernetes import orphans
from racetrack.stack.kubernetes.kubectl import Kubectl, NoCluster
from racetrack.stack.kubernetes.stack import KubernetesStack

SERVICES = ("mysql", "broker", "loadgen", "registry", "debezium", "postgres", "pgfeed")
# A simulated `kubectl`: it answers by its first arguments, from the file `answers` beside it, and
# records its commands.
KUBECTL = f"""#!{sys.executable}
import json, pathlib, sys
here = pathlib.Path(__file__).parent
command = " ".join(sys.argv[3:])
with (here / "commands").open("a") as file:
    file.write(command + "\\n")
answers = json.loads((here / "answers").read_text())
for begin, (code, answer) in sorted(answers.items(), key=lambda each: -len(each[0])):
    if command.startswith(begin):
        print(answer, file=sys.stderr if code else sys.stdout)
        sys.exit(code)
sys.exit(f"no answer to {{command}}")
"""


def node(name: str, *roles: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "labels": {f"role.racetrack.dev/{role}": "" for role in roles},
        },
        "spec": {},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        },
    }


def stateful_set(service: str, role: str) -> dict[str, Any]:
    selector = {f"role.racetrack.dev/{role}": ""}
    return {
        "kind": "StatefulSet",
        "metadata": {"name": service, "labels": {"racetrack.dev/service": service}},
        "spec": {"template": {"spec": {"nodeSelector": selector, "containers": []}}},
    }


class Cluster:
    """A simulated cluster, with the answers of its `kubectl`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._answers: dict[str, tuple[int, str]] = {}
        self.says("version", {"serverVersion": {"gitVersion": "v1.34.4"}})
        self.has("nodes", node("one", "broker", "generator", "support", "engine"))
        self.has("nodes --selector")  # the drained nodes
        self.has("namespaces")
        self.says("create", stateful_set("mysql", "support"))
        (folder / "kubectl").write_text(KUBECTL)
        (folder / "kubectl").chmod(0o755)

    def says(self, begin: str, answer: object, code: int = 0) -> None:
        text = answer if isinstance(answer, str) else json.dumps(answer)
        self._answers[begin] = code, text
        (self._folder / "answers").write_text(json.dumps(self._answers))

    def has(self, kind: str, *items: dict[str, Any]) -> None:
        self.says(f"get {kind}", {"items": items})

    def commands(self) -> list[str]:
        return (self._folder / "commands").read_text().splitlines()


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    yield Cluster(tmp_path)


def stack(**settings: str) -> KubernetesStack:
    return KubernetesStack(load({"RUNTIME": "kubernetes", "STACK_NAME": "test_it", **settings}))


def test_without_kubectl_or_an_answer_there_is_no_cluster(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cluster.says("version", "connection refused", code=1)
    with pytest.raises(NoCluster, match=r"connection refused.* `kubectl config use-context`"):
        stack()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(NoCluster, match="There is no `kubectl` on PATH"):
        stack()


def test_each_role_needs_a_node_and_cores_are_not_assigned_by_settings(cluster: Cluster) -> None:
    with pytest.raises(UsageError, match=r"ENGINE_CPUS has no effect .* on Kubernetes"):
        stack(ENGINE_CPUS="0").prepare(SERVICES, print)
    stack().prepare(SERVICES, print)
    assert not any(each.startswith("delete") for each in cluster.commands())
    cluster.has("nodes", node("one", "broker"), node("two", "generator"))
    with pytest.raises(SetupError, match=r"`kubectl label node NAME role.*/support=`.*one, two"):
        stack().prepare(SERVICES, print)


def test_the_brokers_volume_is_known_before_the_start(cluster: Cluster) -> None:
    broker = stateful_set("redpanda", "broker")
    broker["spec"]["template"]["spec"] |= {
        "containers": [
            {"image": "kafka", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
        ],
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


def test_a_service_without_a_manifest(cluster: Cluster) -> None:
    settings = load({"RUNTIME": "kubernetes"})
    with pytest.raises(UsageError, match="no Kubernetes manifest of swiftd"):
        runtime.open_stack(settings, ["mysql", "swiftd"], print)


def test_several_objects_are_read_one_after_the_other(cluster: Cluster, tmp_path: Path) -> None:
    objects = [stateful_set("mysql", "support"), stateful_set("pgfeed", "engine")]
    cluster.says("create", "\n".join(json.dumps(each, indent=4) for each in objects))
    assert Kubectl("test_it").render(tmp_path) == objects
    cluster.says("create", {"kind": "List", "items": objects})
    assert Kubectl("test_it").render(tmp_path) == objects


def test_ctrl_c_does_not_reach_a_command(cluster: Cluster, tmp_path: Path) -> None:
    """Otherwise, Ctrl-C could interrupt the removal of a namespace."""
    program = f"#!{sys.executable}\nimport os\nprint(os.getpgid(0) == os.getpid())\n"
    (tmp_path / "kubectl").write_text(program)
    assert Kubectl("test_it").run("delete", "namespace") == "True\n"
