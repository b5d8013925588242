"""Tests of the commands by which pods and nodes of a simulated cluster are disrupted."""

import shlex
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest

from racetrack.config import load
from racetrack.errors import RacetrackError, UsageError
from racetrack.stack.kubernetes import orphans
from racetrack.stack.kubernetes.disruptions import Disruptions
from racetrack.stack.kubernetes.kubectl import ClusterFailed, Kubectl
from racetrack.stack.kubernetes.manifests import Workload
from tests.stack.kubernetes.cluster import Cluster, node, pod, stateful_set

NODES = [node("far", "engine"), node("near", "engine", "broker"), node("none")]


class Bench:
    """Disruptions of a cluster in which commands with these first words fail."""

    def __init__(self, cluster: Cluster, *fails: str, **settings: str) -> None:
        scales = {"racetrack.dev/scales": "ENGINE_REPLICAS"}
        kubectl = cluster.renders(stateful_set("flink-taskmanager", "flink", **scales))
        cluster.has("pods", pod("flink-0", at="far"))
        cluster.has("nodes --selector", node("far"))  # the drained nodes
        for command in ("label", "drain", "delete", "uncordon", "apply", "exec"):
            cluster.says(command, "", code=int(command in fails))
        self.ready: list[str] = []
        self.forgotten: list[str] = []
        loaded = load({"ENGINE_REPLICAS": "2", **settings})
        self.cluster = Disruptions(loaded, kubectl, NODES, self._ready, self.forgotten.extend)

    def _ready(self, workloads: Sequence[Workload]) -> None:
        self.ready += [pod for each in workloads for pod in each.pods]


def test_a_node_with_other_roles_is_not_hit(cluster: Cluster) -> None:
    disruptions = Bench(cluster).cluster
    disruptions.require_node("far")
    for name in ("near", "none", "nowhere"):
        with pytest.raises(UsageError, match=f"'{name}' is not .* Such nodes: far"):
            disruptions.require_node(name)


def test_a_deleted_pod_is_forgotten_before_it_ends(cluster: Cluster) -> None:
    bench = Bench(cluster, "delete")
    with pytest.raises(ClusterFailed):
        bench.cluster.delete_pod("flink-taskmanager-1")
    assert bench.forgotten == ["flink-taskmanager-1"]


def test_a_drained_node_is_marked_first_so_that_a_killed_run_gives_it_back(
    cluster: Cluster,
) -> None:
    bench = Bench(cluster, "drain")
    with pytest.raises(ClusterFailed):
        bench.cluster.drain("far")
    label, drain = cluster.changes()
    assert label == "label node far racetrack.dev/drained-for=test-it --overwrite"
    assert drain.startswith("drain far ") and "part-of=racetrack" in drain
    assert bench.forgotten == ["flink-0"]
    orphans.uncordon(Kubectl("test_it"))
    *_, uncordon, label = cluster.changes()
    assert (uncordon, label) == ("uncordon far", "label node far racetrack.dev/drained-for-")


@pytest.mark.parametrize("cuts", [True, False])
def test_a_network_is_cut_by_a_policy_where_there_is_one_that_cuts(
    cluster: Cluster, cuts: bool
) -> None:
    bench = Bench(cluster, *(["exec"] if cuts else []))  # so the broker can't be reached
    unenforced = pytest.raises(RacetrackError, match=r"set KUBERNETES_CUT_COMMAND")
    with nullcontext() if cuts else unenforced:
        bench.cluster.cut("far", 0.0 if cuts else 60.0)
    assert "label pods flink-0 racetrack.dev/cut=yes --overwrite" in cluster.changes()
    assert [each["kind"] for each in cluster.applied()] == ["NetworkPolicy"]
    assert cluster.changes()[-1].startswith("delete networkpolicy cut")


def test_a_command_may_cut_instead(cluster: Cluster, tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = f"sh -c 'echo \"$@\" >{log}' cut"
    Bench(cluster, KUBERNETES_CUT_COMMAND=command).cluster.cut("far", 2.5)
    assert log.read_text() == "far 2.5\n"
    failing = shlex.join(["sh", "-c", "echo broken >&2; exit 1"])
    with pytest.raises(RacetrackError, match="broken"):
        Bench(cluster, KUBERNETES_CUT_COMMAND=failing).cluster.cut("far", 2.5)
