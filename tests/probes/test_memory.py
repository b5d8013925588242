"""Tests of memory against known use: shared pages, and files on tmpfs, count once."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from racetrack.analysis import raw
from racetrack.probes.memory import MemoryFile, memory_of
from racetrack.probes.usage import usage_of
from racetrack.results.folder import RunFolder
from racetrack.stack import resources

MIB = 1 << 20
BIG_MIB = 64
# Allocates memory, forks, and prints the child's number; both wait.
SHARING = f"""
import os, sys
kept = b"x" * ({BIG_MIB} << 20)
child = os.fork()
if child:
    print(child, flush=True)
sys.stdin.read()
"""
# Maps a file and touches its first half.
MAPPING = """
import mmap, sys
with open(sys.argv[1], "r+b") as file:
    mapped = mmap.mmap(file.fileno(), 0)
for at in range(0, len(mapped) // 2, 4096):
    mapped[at]
print("mapped", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def in_memory() -> Iterator[Path]:
    """Return a folder on tmpfs."""
    if not resources.is_on_tmpfs(Path("/dev/shm")):
        pytest.skip("/dev/shm is no tmpfs here")
    with TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


def running(script: str, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_what_two_processes_share_counts_once() -> None:
    with running(SHARING) as parent:
        assert parent.stdout
        pids = [parent.pid, int(parent.stdout.readline())]
        rows, resident = memory_of(pids, []), usage_of(pids)
        parent.communicate()
    assert rows.pss is not None
    assert BIG_MIB <= rows.pss / MIB < BIG_MIB + 30
    assert resident.rss_gib * 1024 >= 2 * BIG_MIB


def test_files_on_tmpfs_count_as_far_as_they_hold_pages(in_memory: Path) -> None:
    (in_memory / "below").mkdir()
    (in_memory / "below" / "whole").write_bytes(b"x" * (10 * MIB))
    (in_memory / "same").hardlink_to(in_memory / "below" / "whole")
    with (in_memory / "sparse").open("wb") as file:
        file.truncate(100 * MIB)
        file.write(b"x" * MIB)
    assert memory_of([], [in_memory]).tmpfs == 11 * MIB


def test_what_is_mapped_of_them_is_in_the_pss_alone(in_memory: Path) -> None:
    file = in_memory / "mapped"
    file.write_bytes(b"x" * (32 * MIB))
    with running(MAPPING, str(file)) as process:
        assert process.stdout
        process.stdout.readline()
        with_it, without = memory_of([process.pid], [in_memory]), memory_of([process.pid], [])
        process.communicate()
    # The kernel also maps some pages around each one that is touched.
    assert with_it.tmpfs == pytest.approx(16 * MIB, abs=MIB / 4)
    assert with_it.pss == pytest.approx(without.pss, rel=0.05)
    assert with_it.pss is not None
    assert with_it.pss > 16 * MIB  # the process's own memory has it


def test_each_look_leaves_a_row_for_each_service(in_memory: Path, tmp_path: Path) -> None:
    (in_memory / "file").write_bytes(b"x" * MIB)
    folder = RunFolder.create(tmp_path, "steady", "1")
    with MemoryFile(folder, lambda name: [in_memory] * (name == "one")) as file:
        file.sample({"one": [os.getpid()], "none": []})
        file.sample({"one": [os.getpid()], "none": []})
    found = raw.memory(folder.path)
    assert [len(of) for of in found.values()] == [2, 2]
    assert found["one"][0].tmpfs_gib == pytest.approx(1 / 1024, abs=1e-6)
    assert found["one"][0].pss_gib
    assert (found["none"][1].pss_gib, found["none"][1].tmpfs_gib) == (0, 0)
