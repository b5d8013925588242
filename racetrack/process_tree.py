"""Which processes of this machine come from which.

psutil reads all of `/proc` for every process whose children it is asked for, and the harness asks
for those of each service again and again. So it looks once for as many as it asks about.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

PROCESSES = Path("/proc")


class ProcessTree:
    """All processes of one moment, by the parent of each."""

    def __init__(self, parents: Mapping[int, int]) -> None:
        self._parents = parents
        self._children: dict[int, list[int]] = {}
        for pid, parent in sorted(parents.items()):
            self._children.setdefault(parent, []).append(pid)

    @classmethod
    def now(cls, processes: Path = PROCESSES) -> "ProcessTree":
        """As `/proc` has it. One that ends meanwhile is left out."""
        names = os.listdir(processes)  # noqa: PTH208  # a Path for each is half of the time
        found = {int(n): stat_fields(f"{processes}/{n}/stat") for n in names if n.isdigit()}
        return cls({pid: int(fields[1]) for pid, fields in found.items() if fields})

    def children(self, pid: int) -> Sequence[int]:
        """Of this process alone, not theirs."""
        return self._children.get(pid, [])

    def with_descendants(self, pid: int) -> list[int]:
        """The process, then its children and theirs; nothing if it has ended."""
        found = [pid] if pid in self._parents else []
        for each in found:
            found += self.children(each)
        return found


def stat_fields(stat: str) -> list[bytes]:
    """What `/proc/<pid>/stat` says from the state on, which comes first; nothing if the process has
    ended. It is asked of every process every second: a Path, and text, take half as long again."""
    try:
        with open(stat, "rb") as file:  # noqa: PTH123
            return file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
