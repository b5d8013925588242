"""Tests of the commands by which pods and nodes of a fake cluster are disrupted."""

import shlex
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from racetrack.config import load
from racetrack.errors import RacetrackError, UsageError
from racetrack.stack.kubernetes import orphans
from racetrack.stack.kubernetes.disruptions import Disruptions
from racetrack.stack.kubernetes.kubectl import ClusterFailed, Kubectl
from racetrack.stack.kubernetes.manifests import Object, Workload

NODES = [
    {"metadata": {"name": name, "labels": {f"role.racetrack.dev/{role}": "" for role in roles}}}
    for name, roles in {"far": ["engine"], "near": ["engine", "broker"], "none": []}.items()
]
POD = {
    "metadata": {"name": "flink-0", "labels": {"racetrack.dev/service": "flink"}},
    "spec": {"nodeName": "far"},
    "status": {"phase": "Running"},
}


class FakeKubectl(Kubectl):
    """A fake `kubectl` that records its commands; `fails` are the first words of commands that
    fail."""

    def __init__(self, *fails: str) -> None:
        super().__init__("test")
        self.commands: list[str] = []
        self.applied: list[Object] = []
        self._fails = fails

    def run(self, *arguments: str, stdin: str | None = None, within_s: float = 0.0) -> str:
        self.commands.append(" ".join(arguments))
        if arguments[0] in self._fails:
            raise ClusterFailed("no")
        return ""

    def get(self, *what: str) -> list[dict[str, Any]]:
        return [POD] if what[0] == "pods" else [{"metadata": {"name": "far"}}]

    def apply(self, objects: Sequence[Any]) -> None:
        self.applied += objects

    def render(self, folder: Path) -> list[Object]:
        labels = {"racetrack.dev/service": "flink", "racetrack.dev/scales": "ENGINE_REPLICAS"}
        spec: Object = {"template": {"spec": {"containers": []}}}
        metadata = {"name": "flink-taskmanager", "labels": labels}
        return [{"kind": "StatefulSet", "metadata": metadata, "spec": spec}]


class Bench:
    def __init__(self, *fails: str, **settings: str) -> None:
        self.kubectl = FakeKubectl(*fails)
        self.ready: list[str] = []
        self.forgotten: list[str] = []
        self.cluster = Disruptions(
            load({"ENGINE_REPLICAS": "2", **settings}), self.kubectl, NODES, self._ready, self._gone
        )

    def _ready(self, workloads: Sequence[Workload]) -> None:
        self.ready += [pod for each in workloads for pod in each.pods]

    def _gone(self, pods: Collection[str]) -> None:
        self.forgotten += pods


def test_a_node_with_other_roles_is_not_hit() -> None:
    cluster = Bench().cluster
    cluster.require_node("far")
    for name in ("near", "none", "nowhere"):
        with pytest.raises(UsageError, match=f"'{name}' is not .* Such nodes: far"):
            cluster.require_node(name)


def test_pods_are_those_of_all_replicas() -> None:
    bench = Bench()
    cluster = bench.cluster
    cluster.wait_until_ready(["flink"])
    assert bench.ready == ["flink-taskmanager-0", "flink-taskmanager-1"]
    cluster.require_pod("flink-taskmanager-1", ["flink"])
    with pytest.raises(UsageError, match=r"'flink-taskmanager-2'.*: flink-taskmanager-0, flink-"):
        cluster.require_pod("flink-taskmanager-2", ["flink"])


def test_a_deleted_pod_is_forgotten_before_it_ends() -> None:
    bench = Bench("delete")
    with pytest.raises(ClusterFailed):
        bench.cluster.delete_pod("flink-taskmanager-1")
    assert bench.forgotten == ["flink-taskmanager-1"]


def test_a_drained_node_is_marked_first_so_that_a_killed_run_gives_it_back() -> None:
    bench = Bench("drain")
    with pytest.raises(ClusterFailed):
        bench.cluster.drain("far")
    label, drain = bench.kubectl.commands
    assert label == "label node far racetrack.dev/drained-for=test --overwrite"
    assert drain.startswith("drain far ") and "part-of=racetrack" in drain
    assert bench.forgotten == ["flink-0"]
    orphans.uncordon(bench.kubectl)
    assert bench.kubectl.commands[-2:] == [
        "uncordon far",
        "label node far racetrack.dev/drained-for-",
    ]


@pytest.mark.parametrize("cuts", [True, False])
def test_a_network_is_cut_by_a_policy_where_there_is_one_that_cuts(cuts: bool) -> None:
    bench = Bench(*(["exec"] if cuts else []))  # so the broker can't be reached
    unenforced = pytest.raises(RacetrackError, match=r"set KUBERNETES_CUT_COMMAND")
    with nullcontext() if cuts else unenforced:
        bench.cluster.cut("far", 0.0 if cuts else 60.0)
    assert "label pods flink-0 racetrack.dev/cut=yes --overwrite" in bench.kubectl.commands
    assert [each["kind"] for each in bench.kubectl.applied] == ["NetworkPolicy"]
    assert bench.kubectl.commands[-1].startswith("delete networkpolicy cut")


def test_a_command_may_cut_instead(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = f"sh -c 'echo \"$@\" >{log}' cut"
    Bench(KUBERNETES_CUT_COMMAND=command).cluster.cut("far", 2.5)
    assert log.read_text() == "far 2.5\n"
    failing = shlex.join(["sh", "-c", "echo broken >&2; exit 1"])
    with pytest.raises(RacetrackError, match="broken"):
        Bench(KUBERNETES_CUT_COMMAND=failing).cluster.cut("far", 2.5)
