"""A node for tests of the agent (the program that measures the pods on a node): files like those of
control groups and of `/proc`, and its samples, served by a thread of the test."""

import importlib.util
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from racetrack.config import REPO

UID = "0b1c-77"
# Files of the control groups of a pod and its container that the agent reads, copied from real
# nodes.
V1 = {
    "cpuacct/POD/cpuacct.usage": "2500000000\n",
    "cpuacct/POD/cpuacct.stat": "user 150\nsystem 50\n",
    "cpuacct/POD/cgroup.procs": "",
    "cpuacct/POD/c0ffee/cgroup.procs": "41\n42\n",
    "cpuacct/POD/pause/cgroup.procs": "40\n",
    "cpu/POD/cpu.stat": "nr_periods 90\nnr_throttled 2\nthrottled_time 250000000\n",
    "cpu/POD/c0ffee/cpu.stat": "nr_periods 88\nnr_throttled 5\nthrottled_time 500000000\n",
    "memory/POD/memory.usage_in_bytes": "7000000\n",
    "memory/POD/memory.stat": "cache 1\nshmem 0\ntotal_cache 9\ntotal_shmem 3000000\n",
}
V2 = {
    "cgroup.controllers": "cpuset cpu io memory pids\n",
    "POD/cpu.stat": "usage_usec 2500000\nuser_usec 1875000\nsystem_usec 625000\nnr_periods 90\n"
    "nr_throttled 2\nthrottled_usec 250000\n",
    "POD/memory.current": "7000000\n",
    "POD/memory.stat": "anon 1234\nshmem 3000000\n",
    "POD/cgroup.procs": "",
    "POD/c0ffee/cgroup.procs": "41\n42\n",
    "POD/c0ffee/cpu.stat": "usage_usec 9\nuser_usec 9\nnr_periods 88\nnr_throttled 5\n"
    "throttled_usec 500000\n",
    "POD/pause/cgroup.procs": "40\n",
}
# Path of a pod's control group with the kubelet's drivers `cgroupfs` and `systemd`.
CGROUPFS = f"kubepods/burstable/pod{UID}"
SYSTEMD = "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0b1c_77.slice"


def agent() -> Any:
    """Return the agent's program as a module."""
    spec = importlib.util.spec_from_file_location("agent", REPO / "kubernetes/base/agent.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(root: Path, files: dict[str, str]) -> Path:
    """Write files below a folder; return the folder."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def groups(root: Path, files: dict[str, str], pod: str = CGROUPFS) -> Path:
    """Write the control groups of a node with one pod."""
    return write(root / "cgroup", {name.replace("POD", pod): of for name, of in files.items()})


def process(pid: int, ppid: int = 1, name: str = "java", ticks: int = 100) -> dict[str, str]:
    """Return the files in `/proc` of a process that has used `ticks` of CPU time and 10 pages of
    memory."""
    before_ticks, between = "0 " * 9, "0 " * 6
    stat = f"{pid} ({name}) S {ppid} {before_ticks}{ticks} 0 0 0 {between}10 0\n"
    rollup = (
        "00-ff ---p 00000000 00:00 0    [rollup]\nRss:  300 kB\nPss:  200 kB\nPss_Shmem: 100 kB\n"
    )
    return {f"{pid}/stat": stat, f"{pid}/smaps_rollup": rollup}


def proc(root: Path) -> Path:
    """Write `/proc` of a node: two cores, a pod of three processes, kubelet, another program."""
    files = {
        "stat": "cpu 10 0 10 500 30 0 0 20 0 0\ncpu0 1 0\ncpu1 1 0\nctxt 1\n",
        "loadavg": "1.50 1 1 1/1 1\n",
        "pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\nfull total=1\n",
        "2/comm": "kthreadd\n",
    }
    for each in (
        *(process(pid) for pid in (40, 41, 42)),
        process(50, name="kubelet", ticks=70),
        process(60, name="a (b) c", ticks=30),
        process(70, ppid=2, name="kworker"),
    ):
        files |= each
    return write(root / "proc", files)


PROGRAM = agent()


@contextmanager
def served(sampler: Any, port: int = 0) -> Iterator[int]:
    """Serve the agent's samples at this port, or at a free one, on all addresses; yield the
    port."""
    with PROGRAM.serve(sampler, port) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
