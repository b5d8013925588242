"""Tests of limits of control groups on CPU time and memory, of both versions."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from racetrack import cgroups, host
from racetrack.cgroups import MemoryKills, how_killed
from racetrack.probes.noise import ThrottledMeter
from racetrack.results.run import CpuQuota
from tests.cgroup_tree import Tree

GIB = 1 << 30
ENGINE, BROKER = 4_000_001, 4_000_002  # process ids beyond those of the kernel


@pytest.fixture(params=[1, 2], ids=["version 1", "version 2"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Tree:
    """A group in a group, both without limits, with this process in the inner one."""
    found = Tree(tmp_path, request.param)
    for group in ("/outer", "/outer/inner"):
        found.limit_cpu(group, None)
        found.limit_memory(group, None)
    found.put("/outer/inner")
    return found


def quotas(tree: Tree, **services: list[int]) -> tuple[CpuQuota, ...]:
    return host.cpu_quotas(services, tree.proc)


def test_without_limits_there_is_no_quota_and_the_memory_is_that_of_the_machine(tree: Tree) -> None:
    assert quotas(tree) == ()
    assert host.memory(tree.proc)[1] == psutil.virtual_memory().total
    assert cgroups.cpu_quotas({"harness": [ENGINE]}, tree.proc) == {}  # it has ended


def test_the_smallest_quota_of_any_level_counts_and_one_of_all_cores_is_none(tree: Tree) -> None:
    tree.limit_cpu("/outer", 100_000 * len(host.usable_cores()))
    assert quotas(tree) == ()
    for level, quota_us in (("/outer/inner", 70_000), ("/outer", 30_000)):
        tree.limit_cpu(level, quota_us)
        (quota,) = quotas(tree)
        assert (quota.cores, quota.services) == (quota_us / 100_000, ())
        assert quota.group == str(tree.folder("cpu", level))


def test_a_quota_of_some_services_names_them(tree: Tree) -> None:
    tree.limit_cpu("/container", 50_000)
    tree.put("/container", ENGINE)
    tree.put("/outer", BROKER)
    found = quotas(tree, engine=[ENGINE], broker=[BROKER], elsewhere=[])
    assert [(quota.cores, quota.services) for quota in found] == [(0.5, ("engine",))]


def test_time_at_a_quota_is_counted_from_the_first_call(tree: Tree) -> None:
    tree.limit_cpu("/outer", 70_000)
    tree.limit_cpu("/container", 50_000)
    tree.put("/container", ENGINE)
    tree.throttle("/outer", 100.0)
    meter = ThrottledMeter(lambda: {"engine": [ENGINE]}, tree.proc)
    assert meter.throttled_s() == 0.0
    tree.throttle("/outer", 102.0)
    tree.throttle("/container", 0.5)
    assert meter.throttled_s() == pytest.approx(2.5)
    (tree.folder("cpu", "/container") / "cpu.stat").unlink()  # its container has ended
    tree.throttle("/outer", 103.0)
    assert meter.throttled_s() == pytest.approx(3.5)


def test_a_memory_limit_of_any_level_counts_instead_of_the_machine_s_memory(tree: Tree) -> None:
    tree.limit_memory("/outer", GIB, used=GIB // 2, cached=GIB // 8)
    assert host.memory(tree.proc) == (GIB * 3 // 8, GIB)
    tree.limit_memory("/outer/inner", 1 << 50)  # more than any machine has
    assert host.memory(tree.proc)[1] == GIB


@pytest.mark.parametrize("level", ["/outer", "/outer/inner"])
@pytest.mark.parametrize("code", [-9, 137])
def test_a_kill_at_a_memory_limit_names_the_limit_and_its_group(
    tree: Tree, level: str, code: int
) -> None:
    tree.limit_memory("/outer", 4 * GIB)
    tree.limit_memory("/outer/inner", 2 * GIB)
    tree.count_memory(level, hits=3, kills=1)
    memory = MemoryKills(os.getpid(), tree.proc)
    assert memory.describe() == ""  # a process was killed before
    tree.count_memory(level, hits=4, kills=2)
    tree.count_memory("/outer/inner", hits=4 if level != "/outer" else 0, kills=2)
    text = how_killed(code, memory.describe())
    assert "signal 9" in text
    assert f"{tree.folder('memory', level)} may use {2 if level != '/outer' else 4}.0 GiB" in text
    assert "exit code 1;" in how_killed(1, memory.describe())


@pytest.fixture
def real_group() -> Iterator[Path]:
    """A control group of this machine with a quota of 0.02 cores, which a process reaches on a busy
    machine, too."""
    groups = cgroups.groups_of([os.getpid()], "cpu")
    if not groups or not (groups[0][0] / "cpu.cfs_quota_us").exists():
        pytest.skip("there is no control group of version 1 here")
    folder = groups[0][0] / f"racetrack-test-{os.getpid()}"
    try:
        folder.mkdir()
        (folder / "cpu.cfs_quota_us").write_text("2000")
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    yield folder
    folder.rmdir()


@pytest.mark.slow
def test_a_real_quota_is_found_and_its_time_counted(real_group: Path) -> None:
    burn = "while time.process_time() - start_s < 0.06: pass"
    code = f"import time; print(flush=True); input(); start_s = time.process_time()\n{burn}\n"
    argv = [sys.executable, "-c", code + "print(flush=True); input()"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as burner:
        assert burner.stdin and burner.stdout
        burner.stdout.readline()
        (real_group / "cgroup.procs").write_text(str(burner.pid))
        (quota,) = host.cpu_quotas({"engine": [burner.pid]})
        assert (quota.cores, quota.group, quota.services) == (0.02, str(real_group), ("engine",))
        meter = ThrottledMeter(lambda: {"engine": [burner.pid]})
        meter.throttled_s()
        burner.stdin.write(b"\n")
        burner.stdin.flush()
        burner.stdout.readline()
        # 0.06 s of CPU time at 0.02 cores take 3 s, for most of which it is stopped.
        assert meter.throttled_s() > 0.5
        burner.communicate(b"\n")
