"""Tests of the tree of the machine's processes."""

from pathlib import Path

from racetrack.host import ProcessTree


def write(proc: Path, pid: int, parent: int, name: str = "sh") -> None:
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "stat").write_text(f"{pid} ({name}) S {parent} 1 1 0 -1\n")


def test_odd_names_are_read_and_one_that_ends_meanwhile_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, 7, 1)
    write(tmp_path, 8, 7, name="a) S 1 (b")  # looks like what follows a name
    (tmp_path / "9").mkdir()
    (tmp_path / "meminfo").write_text("")
    tree = ProcessTree.now(tmp_path)
    assert (tree.with_descendants(7), tree.with_descendants(9)) == ([7, 8], [])
