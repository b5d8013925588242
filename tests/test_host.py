"""Tests of facts about the machine, and of the tree of its processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from racetrack.host import ProcessTree, describe

X86 = """processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 1
model name\t: AMD EPYC
stepping\t: 1

processor\t: 1
cpu family\t: 1
"""
ARM = """processor\t: 0
BogoMIPS\t: 243.75
CPU implementer\t: 0x41
CPU part\t: 0xd40
"""


@pytest.mark.parametrize(
    ("cpuinfo", "found"),
    [
        (X86, "AMD EPYC (family 25, model 1), "),
        (ARM, " (implementer 0x41, part 0xd40), "),
        ("processor\t: 0\nmodel name\t: X\n", "X, "),
    ],
)
def test_processors_of_one_name_are_distinguished_by_their_numbers(
    tmp_path: Path, cpuinfo: str, found: str
) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(cpuinfo)
    assert found in str(describe(file))


def write(proc: Path, pid: int, parent: int, name: str = "sh") -> None:
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "stat").write_text(f"{pid} ({name}) S {parent} 1 1 0 -1\n")


def test_descendants_come_after_the_process_itself() -> None:
    tree = ProcessTree({7: 1, 9: 7, 8: 7, 12: 9, 20: 1, 21: 20})
    assert tree.with_descendants(7) == [7, 8, 9, 12]
    assert list(tree.children(7)) == [8, 9]
    assert tree.with_descendants(21) == [21]


def test_odd_names_are_read_and_one_that_ends_meanwhile_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, 7, 1)
    write(tmp_path, 8, 7, name="a) S 1 (b")  # looks like what follows a name
    (tmp_path / "9").mkdir()
    (tmp_path / "meminfo").write_text("")
    tree = ProcessTree.now(tmp_path)
    assert (tree.with_descendants(7), tree.with_descendants(9)) == ([7, 8], [])


def test_real_children_and_theirs_are_found() -> None:
    argv = ["bash", "-c", f"{sys.executable} -c 'print(1, flush=True); input()'; true"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        assert shell.stdout
        assert shell.stdout.readline() == b"1\n"
        tree = ProcessTree.now()
        shell_pid, _ = tree.with_descendants(shell.pid)
        assert shell_pid == shell.pid
        assert shell.pid in tree.children(os.getpid())
        shell.kill()
