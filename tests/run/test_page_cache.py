"""The page cache, filled with memory that a virtual machine gave to its hypervisor."""

import subprocess
from pathlib import Path

import psutil
import pytest

from racetrack.run.page_cache import STEP_BYTES, PageCache, gives_memory_back

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("device", "features", "gives"),
    [
        ("0x0005", "011001" + "0" * 58, True),
        ("0x0005", "011000" + "0" * 58, False),  # a balloon that only the hypervisor inflates
        ("0x0002", "001001" + "0" * 58, False),  # a disk: its feature 5 is something else
    ],
)
def test_a_balloon_that_reports_free_pages(
    tmp_path: Path, device: str, features: str, gives: bool
) -> None:
    found = tmp_path / "virtio0"
    found.mkdir()
    (found / "device").write_text(f"{device}\n")
    (found / "features").write_text(f"{features}\n")
    assert gives_memory_back(tmp_path) is gives


def test_a_machine_without_virtual_devices(tmp_path: Path) -> None:
    assert not gives_memory_back(tmp_path / "virtio")


def test_pages_are_read_until_free_memory_does_not_decrease(tmp_path: Path) -> None:
    # Before it begins; before and after two steps, of which the second lowers nothing; at the end.
    free = iter([10, 10, 9, 9, 9, 9])
    said: list[str] = []
    PageCache(tmp_path, said.append, lambda: next(free) * STEP_BYTES).fill()
    assert said[-1].startswith("  took 1.0 GiB in ")
    assert next(free, None) is None


def test_holes_of_a_file_on_a_disk_fill_the_page_cache() -> None:
    if _file_system(ROOT) == "tmpfs":
        pytest.skip("a tmpfs has no page cache")
    free = iter([2 * STEP_BYTES] * 4)
    before = psutil.virtual_memory().cached
    cache = PageCache(ROOT, print, lambda: next(free))
    cache.fill()
    assert psutil.virtual_memory().cached - before > STEP_BYTES / 2


def _file_system(path: Path) -> str:
    command = ["stat", "--file-system", "--format=%T", str(path)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
