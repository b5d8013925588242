"""What services hold in memory, each page once: their processes' proportional share, and tmpfs."""

import contextlib
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from racetrack.clock import now_ms
from racetrack.probes.usage import BYTES_PER_GIB
from racetrack.results.folder import RunFolder

PROC = Path("/proc")
FILE, TITLES = "memory.csv", "at_ms,service,pss_gib,tmpfs_gib,took_ms\n"
BLOCK_BYTES = 512  # of st_blocks, whatever the file system
_MAPPING = re.compile(r"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ ([0-9a-f]+):([0-9a-f]+) (\d+)")

File = tuple[int, int]  # device and inode


@dataclass(frozen=True)
class Held:
    """Bytes; None where the kernel does not let us look.

    `pss`: resident memory of all processes; what several share is split among them, so it counts
    once if all of them are the service's. `tmpfs`: what its files there hold, but for the part that
    its processes have mapped, which is in `pss` already.
    """

    pss: int | None
    tmpfs: int | None


def held_by(pids: Sequence[int], folders: Sequence[Path], proc: Path = PROC) -> Held:
    """What a service with these processes, and these folders on tmpfs, holds. A process that has
    just ended holds nothing."""
    try:
        pss = sum(_pss(proc / str(pid)) for pid in pids)
    except PermissionError:
        return Held(None, None)
    try:
        files = _files(folders)
    except PermissionError:
        return Held(pss, None)
    mapped = sum(_mapped(proc / str(pid), files) for pid in pids) if files else 0
    return Held(pss, max(0, sum(files.values()) - mapped))


class MemoryFile:
    """`memory.csv`: `at_ms,service,pss_gib,tmpfs_gib,took_ms`, a row per service at each look;
    empty where it is not known. `took_ms` is how long it took to find out."""

    def __init__(self, folder: RunFolder, folders_of: Callable[[str], Sequence[Path]]) -> None:
        self._folders_of = folders_of
        self._csv = folder.open_for_lines(FILE)
        self._csv.write(TITLES)

    def __enter__(self) -> "MemoryFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._csv.close()

    def look(self, processes: Mapping[str, Sequence[int]]) -> None:
        """Write down what these services hold now. The kernel walks the page tables for it, 10 to
        45 ms for each GiB: so not while CPU is measured."""
        for name, pids in processes.items():
            at_ms, began = now_ms(), time.monotonic()
            held = held_by(pids, self._folders_of(name))
            took_ms = 1000 * (time.monotonic() - began)
            gib = [_gib(held.pss), _gib(held.tmpfs)]
            self._csv.write(f"{at_ms},{name},{','.join(gib)},{took_ms:.1f}\n")


def _gib(held: int | None) -> str:
    return "" if held is None else f"{held / BYTES_PER_GIB:.6f}"


def _pss(process: Path) -> int:
    return sum(
        1024 * int(line.split()[1])
        for line in _lines(process / "smaps_rollup")
        if line.startswith("Pss:")
    )


def _lines(file: Path) -> Iterator[str]:
    """None of a process that has ended."""
    try:
        yield from file.read_text(errors="replace").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return


def _files(folders: Sequence[Path]) -> dict[File, int]:
    """Bytes of memory of each file; one with several names counts once."""
    found: dict[File, int] = {}
    for folder in folders:
        for below, _, names in os.walk(folder, onerror=_raise_denied):
            for name in names:
                with contextlib.suppress(FileNotFoundError):  # removed in between
                    at = Path(below, name).lstat()
                    found[at.st_dev, at.st_ino] = at.st_blocks * BLOCK_BYTES
    return found


def _raise_denied(error: OSError) -> None:
    """A folder may go while one walks; one that may not be read is no empty one."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _mapped(process: Path, files: Collection[File]) -> int:
    """Of its PSS, what is of these files. Looking at each mapping is dear, so only if there is
    one of them."""
    if not any(_file_of(line) in files for line in _lines(process / "maps")):
        return 0
    counts, found = False, 0
    for line in _lines(process / "smaps"):
        if file := _file_of(line):
            counts = file in files
        elif counts and line.startswith("Pss:"):
            found += 1024 * int(line.split()[1])
    return found


def _file_of(line: str) -> File | None:
    """What the first line of a mapping is of."""
    if not (told := _MAPPING.match(line)):
        return None
    major, minor, inode = told.groups()
    return os.makedev(int(major, 16), int(minor, 16)), int(inode)
