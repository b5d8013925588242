"""Tests of facts about the machine, and of the tree of its processes."""

import os
import subprocess
import sys
from pathlib import Path

from racetrack.host import ProcessTree, describe

X86 = """processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: {family}
model\t\t: {model}
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


def described(tmp_path: Path, cpuinfo: str) -> str:
    file = tmp_path / "cpuinfo"
    file.write_text(cpuinfo)
    return str(describe(file))


def test_processors_of_one_name_are_distinguished(tmp_path: Path) -> None:
    older = described(tmp_path, X86.format(family=25, model=1))
    newer = described(tmp_path, X86.format(family=26, model=2))
    assert older.startswith("AMD EPYC (family 25, model 1), ")
    assert newer.startswith("AMD EPYC (family 26, model 2), ")


def test_arm_numbers_its_processors_in_another_way(tmp_path: Path) -> None:
    assert "(implementer 0x41, part 0xd40), " in described(tmp_path, ARM)


def test_a_machine_that_numbers_nothing_is_described_without(tmp_path: Path) -> None:
    assert "(" not in described(tmp_path, "processor\t: 0\nmodel name\t: X\n")


def write(proc: Path, pid: int, parent: int, name: str = "sh") -> None:
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "stat").write_text(f"{pid} ({name}) S {parent} 1 1 0 -1\n")


def test_descendants_come_after_the_process_itself() -> None:
    tree = ProcessTree({7: 1, 9: 7, 8: 7, 12: 9, 20: 1, 21: 20})
    assert tree.with_descendants(7) == [7, 8, 9, 12]
    assert list(tree.children(7)) == [8, 9]
    assert tree.with_descendants(21) == [21]


def test_a_name_may_look_like_what_follows_it(tmp_path: Path) -> None:
    write(tmp_path, 7, 1)
    write(tmp_path, 8, 7, name="a) S 1 (b")
    (tmp_path / "meminfo").write_text("")
    assert ProcessTree.now(tmp_path).with_descendants(7) == [7, 8]


def test_one_that_ends_while_it_is_looked_at_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, 7, 1)
    (tmp_path / "8").mkdir()
    assert ProcessTree.now(tmp_path).with_descendants(7) == [7]
    assert ProcessTree.now(tmp_path).with_descendants(8) == []


def test_real_children_and_theirs_are_found() -> None:
    argv = ["bash", "-c", f"{sys.executable} -c 'print(1, flush=True); input()'; true"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        assert shell.stdout
        assert shell.stdout.readline() == b"1\n"
        tree = ProcessTree.now()
        found = tree.with_descendants(shell.pid)
        assert found[0] == shell.pid
        assert len(found) == 2
        assert shell.pid in tree.children(os.getpid())
        shell.kill()
