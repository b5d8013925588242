"""Tests of a stack whose agent is the real program, in a simulated cluster of one node."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from racetrack.stack.kubernetes import agents
from racetrack.stack.kubernetes.kubectl import ClusterFailed, Kubectl
from racetrack.stack.kubernetes.stack import KubernetesStack
from tests.kubernetes.agent_nodes import V1, agent, groups, proc, write
from tests.kubernetes.agent_serving import served
from tests.stack.kubernetes.test_stack import Cluster, cluster, node, stack, stateful_set

__all__ = ["cluster"]
NAMES = ("mysql", "redpanda", "loadgen", "postgres")


def pod(name: str, service: str, container_id: str = "c0ffee") -> dict[str, Any]:
    running = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    return {
        "metadata": {"name": name, "labels": {"racetrack.dev/service": service}},
        "spec": {"nodeName": "one"},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [
                {"state": running, "containerID": f"containerd://{container_id}"}
            ],
        },
    }


@pytest.fixture
def started(cluster: Cluster, tmp_path: Path) -> Iterator[KubernetesStack]:
    """Start a stack of four pods, of which only MySQL's is on the agent's node."""
    write(tmp_path, {"pods/test-it_mysql-0_0b1c-77/mysql/0.log": ""})
    program, files = agent(), proc(tmp_path)
    parts = program.Groups(groups(tmp_path, V1), files), program.Noise(files, tmp_path)
    sampler = program.Sampler("test-it", "agent-x", *parts, tmp_path / "pods")
    with served(sampler) as port:
        here = node("one", "broker", "generator", "support", "engine")
        here["status"]["addresses"][0]["address"] = "127.0.0.1"
        cluster.has("nodes", here)
        sets = [stateful_set(name, "support") for name in NAMES]
        cluster.says("create", {"kind": "List", "items": sets})
        cluster.has("services")
        spec = {"ports": [{"port": 7070, "nodePort": port}]}
        cluster.has("services --selector=racetrack.dev/service=agent", {"spec": spec})
        for command in ("apply", "logs", "exec", "scale"):
            cluster.says(command, "")
        cluster.has("pods", *(pod(f"{name}-0", name) for name in NAMES), pod("agent-x", "agent"))
        begun = stack()
        begun.start(("mysql", "broker", "loadgen", "postgres"), None, print)
        yield begun
        begun.stop(print)


def test_pods_are_measured_by_the_agent_only(started: KubernetesStack) -> None:
    assert started.pids(["mysql"]) == {}
    (found,) = started.agents
    assert [(each.service, each.cpu_s) for each in found.sample().pods] == [("mysql", 2.5)]
    assert started.versions()["node of mysql-0"] == "one"
    assert "node of agent-x" not in started.versions()


def test_clocks_are_compared_at_the_start(started: KubernetesStack) -> None:
    assert set(started.clocks) == {"broker", "loadgen"}
    for clock in started.clocks.values():
        assert abs(clock.offset_ms) <= clock.uncertainty_ms + 1


def test_a_container_without_processes_has_ended(
    started: KubernetesStack, cluster: Cluster, tmp_path: Path
) -> None:
    assert started.died() == {}
    (tmp_path / "cgroup/cpuacct/kubepods/burstable/pod0b1c-77/c0ffee/cgroup.procs").write_text("")
    started.agents[0].sample()
    assert "the process of mysql-0 ended" in started.died()["mysql"]


def test_a_service_is_paused_by_the_agent(started: KubernetesStack, cluster: Cluster) -> None:
    started.pause("mysql")
    started.resume("mysql")
    commands = [each for each in cluster.commands() if each.startswith("exec")]
    program = "exec agent-x -- python /agent/agent.py"
    assert commands == [f"{program} STOP 0b1c-77", f"{program} CONT 0b1c-77"]


def test_an_agent_that_does_not_start_is_named(cluster: Cluster) -> None:
    unready = pod("agent-x", "agent")
    unready["status"]["conditions"] = []
    cluster.says("get pods", json.dumps({"items": [unready]}))
    with pytest.raises(ClusterFailed, match="agent on one was not ready within 0 s"):
        agents.wait_until_there(Kubectl("test_it"), ["one"], within_s=0.0)
