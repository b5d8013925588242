"""Memory of services: proportional set size, and files on tmpfs."""

import contextlib
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from racetrack.clock import now_ms
from racetrack.results.folder import RunFolder
from racetrack.stack.contract import NodeAgent, sum_known
from racetrack.units import BYTES_PER_GIB

PROC = Path("/proc")
MEMORY_CSV, MEMORY_COLUMNS = "memory.csv", "at_ms,service,pss_gib,tmpfs_gib,took_ms\n"
BLOCK_BYTES = 512  # unit of st_blocks on every file system
_MAPPING = re.compile(r"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ ([0-9a-f]+):([0-9a-f]+) (\d+)")

File = tuple[int, int]  # device and inode


@dataclass(frozen=True)
class ServiceMemory:
    """Memory of a service in bytes; None where the kernel denies access.

    `pss`: proportional set size, summed over the processes; shared pages count once. `tmpfs`: files
    on tmpfs, except pages that the processes have mapped, since `pss` includes these.
    """

    pss: int | None
    tmpfs: int | None


def memory_of(pids: Sequence[int], folders: Sequence[Path], proc: Path = PROC) -> ServiceMemory:
    """Return the memory of a service, given its processes and its folders on tmpfs. A process that
    has just ended counts as zero."""
    try:
        pss = sum(_pss(proc / str(pid)) for pid in pids)
    except PermissionError:
        return ServiceMemory(None, None)
    try:
        files = _files(folders)
    except PermissionError:
        return ServiceMemory(pss, None)
    mapped = sum(_mapped(proc / str(pid), files) for pid in pids) if files else 0
    return ServiceMemory(pss, max(0, sum(files.values()) - mapped))


class MemoryFile:
    """`memory.csv`: `at_ms,service,pss_gib,tmpfs_gib,took_ms`, a row per service and sample.
    Unknown values are empty fields; `took_ms` is how long the measurement took."""

    def __init__(
        self,
        folder: RunFolder,
        folders_of: Callable[[str], Sequence[Path]],
        agents: Sequence[NodeAgent] = (),
    ) -> None:
        self._folders_of, self._agents = folders_of, agents
        self._csv = folder.open_for_lines(MEMORY_CSV)
        self._csv.write(MEMORY_COLUMNS)

    def __enter__(self) -> "MemoryFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._csv.close()

    def sample(self, processes: Mapping[str, Sequence[int]]) -> None:
        """Measure and write the memory of these services and of the services on nodes with agents.
        Don't call this while CPU is measured: the kernel walks the page tables, which takes 10 to
        45 ms of CPU per GiB."""
        for name, pids in processes.items():
            at_ms, began = now_ms(), time.monotonic()
            self._write(at_ms, name, memory_of(pids, self._folders_of(name)), began)
        at_ms, began = now_ms(), time.monotonic()
        for name, used in _memory_on_nodes(self._agents).items():
            self._write(at_ms, name, used, began)

    def _write(self, at_ms: int, service: str, used: ServiceMemory, began: float) -> None:
        took_ms = 1000 * (time.monotonic() - began)
        gib = [_gib(used.pss), _gib(used.tmpfs)]
        self._csv.write(f"{at_ms},{service},{','.join(gib)},{took_ms:.1f}\n")


def _memory_on_nodes(agents: Sequence[NodeAgent]) -> dict[str, ServiceMemory]:
    """Return the memory of each service, summed over the nodes; empty if a node can't be
    reached."""
    services: dict[str, ServiceMemory] = {}
    try:
        for agent in agents:
            for name, (pss, tmpfs) in agent.memory().items():
                so_far = services.get(name, ServiceMemory(0, 0))
                services[name] = ServiceMemory(
                    sum_known(so_far.pss, pss), sum_known(so_far.tmpfs, tmpfs)
                )
    except OSError:
        return {}
    return services


def _gib(used: int | None) -> str:
    return "" if used is None else f"{used / BYTES_PER_GIB:.6f}"


def _pss(process: Path) -> int:
    return sum(
        1024 * int(line.split()[1])
        for line in _lines(process / "smaps_rollup")
        if line.startswith("Pss:")
    )


def _lines(file: Path) -> Iterator[str]:
    """Yield the lines of a file of a process in `/proc`; nothing if the process has ended."""
    try:
        yield from file.read_text(errors="replace").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return


def _files(folders: Sequence[Path]) -> dict[File, int]:
    """Return the allocated bytes of each file in these folders; hard links count once."""
    sizes: dict[File, int] = {}
    for folder in folders:
        for below, _, names in os.walk(folder, onerror=_raise_denied):
            for name in names:
                with contextlib.suppress(FileNotFoundError):  # the file has just been removed
                    at = Path(below, name).lstat()
                    sizes[at.st_dev, at.st_ino] = at.st_blocks * BLOCK_BYTES
    return sizes


def _raise_denied(error: OSError) -> None:
    """Raise the error unless it reports that a folder has just been removed."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _mapped(process: Path, files: Collection[File]) -> int:
    """Return the part of a process's PSS that belongs to these files, in bytes. Reading `smaps` is
    expensive, so first check in `maps` whether any of the files is mapped at all."""
    if not any(_file_of(line) in files for line in _lines(process / "maps")):
        return 0
    counts, size = False, 0
    for line in _lines(process / "smaps"):
        if file := _file_of(line):
            counts = file in files
        elif counts and line.startswith("Pss:"):
            size += 1024 * int(line.split()[1])
    return size


def _file_of(line: str) -> File | None:
    """Return the file in the header line of a mapping in `maps` or `smaps`; None for other
    lines."""
    if not (mapping := _MAPPING.match(line)):
        return None
    major, minor, inode = mapping.groups()
    return os.makedev(int(major, 16), int(minor, 16)), int(inode)
