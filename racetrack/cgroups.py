"""Control groups (versions 1 and 2): the limits of the kernel on CPU time and memory of processes.

A process is limited by its own group and by all groups around it. A group is given as its folder.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

import psutil

from racetrack.units import BYTES_PER_GIB

PROC = Path("/proc")
# Version 1 shows unlimited memory as a number just below 2**63.
UNLIMITED_BYTES = 1 << 60
ENDED_BY_SIGKILL = (-9, 137)  # as Python and as shells report it


def controller_paths(lines: Iterable[str]) -> dict[str, str]:
    """Return controller → path from the lines of `/proc/<pid>/cgroup`. Version 2 has one path, with
    an empty controller."""
    split = (line.split(":", 2) for line in lines)
    return {name: path for _, names, path in split for name in names.split(",")}


def levels(mounts: Iterable[str], controller: str, path: str) -> list[Path]:
    """Return the folder of a group, then those of the groups around it, as far as they are visible.

    `mounts` are the lines of `/proc/self/mountinfo`. The hierarchy of groups may be mounted
    anywhere, and perhaps only a part of it. Return an empty list if it is not mounted.
    """
    for line in mounts:
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        root, mounted = before.split()[3:5]
        fits = controller in options.split(",") if controller else kind == "cgroup2"
        within = PurePosixPath((path.removeprefix(root) if root != "/" else path).lstrip("/"))
        if fits and kind.startswith("cgroup") and ".." not in within.parts:
            return [Path(mounted) / part for part in (within, *within.parents)]
    return []


def groups_of(pids: Iterable[int], controller: str, proc: Path = PROC) -> list[list[Path]]:
    """Return the levels of each group that contains one of these processes, innermost first.
    Processes that have ended are left out."""
    with suppress(OSError):
        mounts = (proc / "self/mountinfo").read_text().splitlines()
        texts = dict.fromkeys(_text(proc / str(pid) / "cgroup") for pid in pids)
        paths = [controller_paths(text.splitlines()) for text in texts if text]
        # Version 1 names all its controllers; the others belong to version 2.
        named = [
            (controller if controller in paths_of_one else "", paths_of_one)
            for paths_of_one in paths
        ]
        return [levels(mounts, name, own[name]) for name, own in named if name in own]
    return []


def cpu_quotas(
    processes: Mapping[str, Sequence[int]], proc: Path = PROC
) -> dict[Path, tuple[float, list[str]]]:
    """Return each group that has a CPU quota: its quota in cores, and which of the named processes
    it contains."""
    quotas: dict[Path, tuple[float, list[str]]] = {}
    for name, pids in processes.items():
        groups = [
            group for groups_of_one in groups_of(pids, "cpu", proc) for group in groups_of_one
        ]
        for group in dict.fromkeys(groups):
            if (cores := _quota_cores(group)) is not None:
                quotas.setdefault(group, (cores, []))[1].append(name)
    return quotas


def _quota_cores(group: Path) -> float | None:
    """Return the CPU seconds per second that a group may use; None if they are not limited."""
    older = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
    words = _text(group / "cpu.max").split() or [_text(group / name).strip() for name in older]
    quota, period = words
    return None if quota in ("", "-1", "max") else int(quota) / int(period)


def throttled_s(group: Path) -> float:
    """Return the seconds for which the CPU quota of a group has stopped it, summed over cores.

    Raises:
        OSError: the group no longer exists.
    """
    counts = _counts((group / "cpu.stat").read_text())
    return counts.get("throttled_usec", 0) / 1e6 + counts.get("throttled_time", 0) / 1e9


def memory_limits(pid: int, proc: Path = PROC) -> dict[Path, int]:
    """Return the memory limit in bytes of each group that contains a process and has one, innermost
    first."""
    groups = [
        group for groups_of_one in groups_of([pid], "memory", proc) for group in groups_of_one
    ]
    limits = {group: _memory_limit(group) for group in groups}
    return {group: limit for group, limit in limits.items() if limit is not None}


def _memory_limit(group: Path) -> int | None:
    text = (_text(group / "memory.max") or _text(group / "memory.limit_in_bytes")).strip()
    return int(text) if text.isdigit() and int(text) < UNLIMITED_BYTES else None


def memory_used(group: Path) -> int:
    """Return the bytes that a group uses, without the part of the page cache that the kernel drops
    first when memory gets short.

    Raises:
        OSError: the group no longer exists.
    """
    cached = _counts((group / "memory.stat").read_text())
    droppable = cached.get("total_inactive_file", cached.get("inactive_file", 0))
    used = _text(group / "memory.current") or _text(group / "memory.usage_in_bytes") or "0"
    return int(used) - droppable


class MemoryKills:
    """Recognizes that the kernel has killed a process of a group because memory ran out.

    Created while the process lives: once it has ended, its group is unknown.
    """

    def __init__(self, pid: int, proc: Path = PROC) -> None:
        groups = groups_of([pid], "memory", proc)
        self._proc, self._groups = proc, groups[0] if groups else []
        self._limits = memory_limits(pid, proc)
        self._before, self._hits = self._kills(), {group: _hits(group) for group in self._limits}

    def describe(self) -> str:
        """Return whose memory ran out, if a process was killed since this object was created;
        otherwise an empty text."""
        if self._kills() <= self._before:
            return ""
        group = next((path for path, hits in self._hits.items() if _hits(path) > hits), None)
        if group:
            limit = f"{self._limits[group] / BYTES_PER_GIB:.1f} GiB"
            return (
                f"memory ran out: the control group {group} may use {limit}. Raise this limit, or"
                " lower heaps and rates"
            )
        total = f"{psutil.virtual_memory().total / BYTES_PER_GIB:.1f} GiB"
        return (
            f"memory ran out: that of the whole machine, {total}. Stop other programs, or lower"
            " heaps and rates"
        )

    def _kills(self) -> int:
        """Return how many processes of the group were killed; of the whole machine if the group
        does not count them."""
        files = (
            path / n for path in self._groups[:1] for n in ("memory.events", "memory.oom_control")
        )
        for file in (*files, self._proc / "vmstat"):
            if (kills := _counts(_text(file)).get("oom_kill")) is not None:
                return kills
        return 0


def how_killed(code: int, memory: str) -> str:
    """Return how a process ended, from its exit code and the text of `MemoryKills`."""
    if memory and code in ENDED_BY_SIGKILL:
        return f"killed by the kernel (signal 9), because {memory}"
    how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
    return f"{how}; the kernel has killed a process, because {memory}" if memory else how


def _hits(group: Path) -> int:
    """Return how often a group has reached its memory limit. Version 2 counts only when nothing
    could be freed, and also in the groups around it."""
    if events := _counts(_text(group / "memory.events")):
        return events.get("oom", 0)
    return int(_text(group / "memory.failcnt") or 0)


def _text(file: Path) -> str:
    """Return the content of a file; empty if there is no such file, or if it can't be read."""
    try:
        return file.read_text()
    except OSError:
        return ""


def _counts(text: str) -> dict[str, int]:
    """Return the counts in a text with a name and a number per line."""
    return {name: int(count) for name, count in map(str.split, text.splitlines())}
