"""Tests of a stack whose agent is the real program, in a simulated cluster of one node."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from racetrack.stack.kubernetes.stack import KubernetesStack
from tests.kubernetes.agent_nodes import V1, agent, groups, proc, served, write
from tests.stack.kubernetes.cluster import Cluster, node, pod, stateful_set
from tests.stack.kubernetes.test_stack import stack

NAMES = ("mysql", "redpanda", "loadgen", "postgres")


@pytest.fixture
def started(cluster: Cluster, tmp_path: Path) -> Iterator[KubernetesStack]:
    """Start a stack of four pods, of which only MySQL's is on the agent's node."""
    write(tmp_path, {"pods/test-it_mysql-0_0b1c-77/mysql/0.log": ""})
    program, files = agent(), proc(tmp_path)
    parts = program.Groups(groups(tmp_path, V1), files), program.Noise(files, tmp_path)
    sampler = program.Sampler("test-it", "agent-x", *parts, tmp_path / "pods")
    with served(sampler) as port:
        roles = ("broker", "generator", "support", "engine")
        cluster.has("nodes", node("one", *roles, address="127.0.0.1"))
        cluster.says("create", {"kind": "List", "items": [stateful_set(name) for name in NAMES]})
        cluster.has("services")
        spec = {"ports": [{"port": 7070, "nodePort": port}]}
        cluster.has("services --selector=racetrack.dev/service=agent", {"spec": spec})
        for command in ("apply", "logs", "exec", "scale"):
            cluster.says(command, "")
        cluster.has("pods", *(pod(f"{name}-0") for name in NAMES), pod("agent-x"))
        begun = stack()
        begun.start(("mysql", "broker", "loadgen", "postgres"), None, print)
        yield begun
        begun.stop(print)


@pytest.mark.slow
def test_pods_are_measured_and_paused_and_clocks_compared_by_the_agent(
    started: KubernetesStack, cluster: Cluster
) -> None:
    assert started.pids(["mysql"]) == {}
    (found,) = started.agents
    assert [(each.service, each.cpu_s) for each in found.sample().pods] == [("mysql", 2.5)]
    assert started.versions()["node of mysql-0"] == "one"
    assert "node of agent-x" not in started.versions()
    assert set(started.clocks) == {"broker", "loadgen"}
    for clock in started.clocks.values():
        assert abs(clock.offset_ms) <= clock.uncertainty_ms + 1
    started.pause("mysql")
    started.resume("mysql")
    commands = [each for each in cluster.commands() if each.startswith("exec")]
    program = "exec agent-x -- python /agent/agent.py"
    assert commands == [f"{program} STOP 0b1c-77", f"{program} CONT 0b1c-77"]


@pytest.mark.slow
def test_a_container_without_processes_has_ended(started: KubernetesStack, tmp_path: Path) -> None:
    assert started.died() == {}
    (tmp_path / "cgroup/cpuacct/kubepods/burstable/pod0b1c-77/c0ffee/cgroup.procs").write_text("")
    started.agents[0].sample()
    assert "the process of mysql-0 ended" in started.died()["mysql"]
