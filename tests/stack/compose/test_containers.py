"""Tests of facts about containers: from an engine's answers, and from control groups of both
versions."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import NotFound

from racetrack.stack.compose.containers import Containers
from racetrack.stack.containers import CGroup, NotVisible, Unseen


class Answers:
    """A fake engine with one container."""

    def __init__(self) -> None:
        self._described = {
            # The id of another process on this machine, which must not be looked at.
            "State": {"Pid": 1, "Running": True, "Status": "running"},
        }
        self.removed = False
        self.api = SimpleNamespace(inspect_container=self._inspect)

    def _inspect(self, _: str) -> dict[str, Any]:
        if self.removed:
            raise NotFound("No such container")
        return self._described


def test_processes_that_can_not_be_seen_are_not_looked_for() -> None:
    """The engine runs on another machine, so its process ids belong to other processes here."""
    answers = Answers()
    live = Containers(answers, "racetrack", visible=False).live("c")  # type: ignore[arg-type]
    assert isinstance(live, Unseen)
    assert (live.runs(), live.pids(), live.group) == (True, [], None)
    answers.removed = True
    assert not live.runs()


CONTAINER = "0123456789abcdef" * 4
V1 = f"""\
12:memory:/docker/{CONTAINER}
5:cpuacct:/docker/{CONTAINER}
1:name=systemd:/docker/{CONTAINER}
0::/
"""
V2 = f"0::/system.slice/docker-{CONTAINER}.scope\n"


def mounted(tmp_path: Path, pid: int, groups: str, mounts: list[str]) -> Path:
    """Return a `/proc` with one process and these mounts."""
    proc = tmp_path / "proc"
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "cgroup").write_text(groups)
    (proc / "self").mkdir()
    (proc / "self/mountinfo").write_text("".join(f"{line}\n" for line in mounts))
    return proc


def mount(root: str, folder: Path, kind: str, options: str) -> str:
    """Return a line of /proc/self/mountinfo."""
    return f"30 23 0:26 {root} {folder} rw,nosuid - {kind} {kind} {options}"


def test_version_1(tmp_path: Path) -> None:
    cpuacct, memory = tmp_path / "cpuacct", tmp_path / "memory"
    mounts = [
        mount("/", tmp_path / "unified", "cgroup2", "rw"),
        mount("/", cpuacct, "cgroup", "rw,cpu,cpuacct"),
        mount("/", memory, "cgroup", "rw,memory"),
    ]
    within = cpuacct / "docker" / CONTAINER / "a-group-in-it"
    within.mkdir(parents=True)
    (memory / "docker" / CONTAINER).mkdir(parents=True)
    (within.parent / "cgroup.procs").write_text("70\n71\n")
    (within / "cgroup.procs").write_text("72\n")
    (within.parent / "cpuacct.usage").write_text("1500000000\n")
    (memory / "docker" / CONTAINER / "memory.usage_in_bytes").write_text("4096\n")

    group = CGroup.of(70, CONTAINER, mounted(tmp_path, 70, V1, mounts))

    assert (sorted(group.pids()), group.cpu_s(), group.memory_bytes()) == ([70, 71, 72], 1.5, 4096)


@pytest.mark.parametrize("root", ["/", "/system.slice"], ids=["all of it", "mounted in part"])
def test_version_2(tmp_path: Path, root: str) -> None:
    unified = tmp_path / "unified"
    folder = unified / V2.strip().removeprefix("0::").removeprefix(root).lstrip("/")
    folder.mkdir(parents=True)
    (folder / "cgroup.procs").write_text("70\n")
    (folder / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 2000000\n")
    (folder / "memory.current").write_text("8192\n")
    mounts = [mount(root, unified, "cgroup2", "rw")]

    group = CGroup.of(70, CONTAINER, mounted(tmp_path, 70, V2, mounts))

    assert (group.pids(), group.cpu_s(), group.memory_bytes()) == ([70], 2.5, 8192)


def test_a_process_of_another_machine(tmp_path: Path) -> None:
    proc = mounted(tmp_path, 70, V2.replace(CONTAINER, "f" * 64), [])
    for pid in (70, 71):  # another process has the first number here
        with pytest.raises(NotVisible, match="can't be seen on this machine"):
            CGroup.of(pid, CONTAINER, proc)


def test_the_group_of_this_very_process() -> None:
    group = CGroup.of(os.getpid(), "")
    before = group.cpu_s()
    sum(number * number for number in range(2_000_000))
    assert os.getpid() in group.pids()
    assert group.cpu_s() > before > 0
    assert group.memory_bytes() > 0
