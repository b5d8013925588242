"""Tests of the agent, which measures the pods on a node: it reads both versions of control groups,
and keeps samples until they are fetched."""

import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from racetrack.stack.kubernetes.agents import Agent, by_prefix
from tests.kubernetes.agent_nodes import (
    CGROUPFS,
    SYSTEMD,
    UID,
    V1,
    V2,
    groups,
    proc,
    served,
    write,
)
from tests.kubernetes.agent_nodes import agent as load_agent
from tests.waiting import wait_until

SERVICES = {"kstreams": "kstreams", "redpanda": "broker"}
# Mapped files, which all processes share, count once.
PSS, TMPFS = 3 * 200 * 1024, 3_000_000 - 3 * 100 * 1024
BOTH = pytest.mark.parametrize("files", [V1, V2], ids=["v1", "v2"])
agent = load_agent()


@BOTH
@pytest.mark.parametrize("pod", [CGROUPFS, SYSTEMD], ids=["cgroupfs", "systemd"])
def test_the_usage_of_a_pod_until_it_is_gone(
    tmp_path: Path, files: dict[str, str], pod: str
) -> None:
    root = groups(tmp_path, files, pod)
    found = agent.Groups(root, proc(tmp_path))
    assert found.usage(UID) == {
        "cpu_s": 2.5,
        "cpu_user_s": 1.875,
        "rss_bytes": 3 * 10 * agent.PAGE_BYTES,
        "memory_bytes": 7_000_000,
        "periods": 90,
        "throttled": 7,
        "throttled_s": 0.75,
        "groups": ["c0ffee", "pause"],
        "folders": {},
    }
    assert found.memory(UID) == {"pss": PSS, "tmpfs": TMPFS}
    for folder in list(root.rglob(f"*{pod.rpartition('/')[2]}")):
        shutil.rmtree(folder)
    assert found.usage(UID) is found.memory(UID) is None


def test_the_noise_of_a_node(tmp_path: Path) -> None:
    noise = agent.Noise(proc(tmp_path), tmp_path).read()
    per_s = agent.TICKS_PER_S
    assert noise["machine_s"] - noise["busy_s"] == pytest.approx((500 + 30 + 20) / per_s)
    assert noise["steal_s"] == 20 / per_s
    assert noise["programs_s"] == 400 / per_s  # without the kernel's thread
    assert noise["helpers_s"] == 70 / per_s
    assert (noise["load_1_min"], noise["mhz"]) == (1.5, None)
    assert (noise["waited_for_cpu_s"], noise["waited_for_io_s"]) == (2.5, None)
    assert noise["core_mib_per_s"] > 0
    (tmp_path / "proc/2/comm").unlink()  # so not all programs can be seen
    assert agent.Noise(tmp_path / "proc", tmp_path).read()["programs_s"] is None


def sampler(tmp_path: Path) -> Any:
    for name in (
        f"race_kstreams-0_{UID}/kstreams",
        "race_agent-x7x2p_1-2/agent",
        "other_kstreams-0_3-4/kstreams",
        "race_kstreams-1_5-6/wait",  # it has no control group yet
    ):
        write(tmp_path / "pods", {f"{name}/0.log": ""})
    node = proc(tmp_path)
    parts = agent.Groups(groups(tmp_path, V1), node), agent.Noise(node, tmp_path)
    return agent.Sampler("race", "agent-x7x2p", *parts, tmp_path / "pods")


def test_a_sample_has_the_pods_of_the_namespace_and_the_time_of_those_that_are_gone(
    tmp_path: Path,
) -> None:
    samples = sampler(tmp_path)
    sample = samples.sample()
    assert [(pod["pod"], pod["uid"]) for pod in sample["pods"]] == [("kstreams-0", UID)]
    assert sample["noise"]["services_s"] == 2.5
    (tmp_path / f"pods/race_kstreams-0_{UID}").rename(tmp_path / "pods/race_kstreams-0_8-9")
    later = samples.sample()
    assert later["pods"] == []
    assert later["noise"]["services_s"] == 2.5


def client(port: int) -> Agent:
    return Agent("node1", ("127.0.0.1", port), by_prefix(SERVICES))


@pytest.mark.slow
def test_a_lost_connection_costs_no_sample(tmp_path: Path) -> None:
    samples = sampler(tmp_path)
    turns = threading.Semaphore(2)
    wait = [lambda _seconds: turns.acquire()]
    threading.Thread(target=samples.keep_sampling, args=wait, daemon=True).start()
    with served(samples) as port:
        reader = client(port)
        wait_until(lambda: len(reader.after(0)) == 3, "samples")
        first = reader.after(0)
        assert not reader.after(first[-1].number)
        reader.close()  # as if the network failed
    with pytest.raises(OSError, match="refused"):
        reader.after(first[-1].number)
    turns.release(2)
    with served(samples, port):
        wait_until(lambda: len(samples.after(first[-1].number)) == 2, "samples")
        wait_until(lambda: len(again(reader, first[-1].number)) == 2, "the connection")
        assert [each.number for each in reader.after(0)[:3]] == [each.number for each in first]


def again(reader: Agent, number: int) -> list[Any]:
    try:
        return reader.after(number)
    except OSError:
        return []


def test_samples_in_the_harness(tmp_path: Path) -> None:
    with served(sampler(tmp_path)) as port:
        reader = client(port)
        sample = reader.sample()
        assert sample.machine == ""  # empty for the machine of this test
        (pod,) = sample.pods
        assert (pod.service, pod.pod) == ("kstreams", "kstreams-0")
        assert (pod.cpu_s, pod.throttled) == (2.5, 7)
        assert reader.uids("kstreams") == [UID]
        assert not reader.has_ended("c0ffee")
        assert reader.has_ended("decaf")
        assert reader.memory() == {"kstreams": (PSS, TMPFS)}


def test_signals_reach_all_processes_of_a_pod(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        files = {**V1, "cpuacct/POD/c0ffee/cgroup.procs": f"{child.pid}\n"}
        files["cpuacct/POD/pause/cgroup.procs"] = ""
        found = agent.Groups(groups(tmp_path, files))
        agent.send("STOP", [UID], found)
        _, status = os.waitpid(child.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        agent.send("KILL", [UID], found)
        assert child.wait() == -signal.SIGKILL
