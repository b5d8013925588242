"""A tree of control groups of either version, and a `/proc` with processes in it, as the kernel
shows them."""

import os
from collections.abc import Mapping
from pathlib import Path

MOUNT = "30 23 0:26 / {} rw,nosuid - {} {} {}\n"
NO_LIMIT_V1 = "9223372036854771712\n"


class Tree:
    """Control groups below `folder`. Groups are given by their paths, such as `/outer/inner`."""

    def __init__(self, folder: Path, version: int) -> None:
        self.version, self.proc, self._root = version, folder / "proc", folder / "cgroup"
        (self.proc / "self").mkdir(parents=True)
        kinds = {"cpu": "cgroup", "memory": "cgroup"} if version == 1 else {"": "cgroup2"}
        mounts = [
            MOUNT.format(self._root / name, kind, kind, f"rw,{name}")
            for name, kind in kinds.items()
        ]
        (self.proc / "self/mountinfo").write_text("".join(mounts))
        (self.proc / "vmstat").write_text("nr_free_pages 17\noom_kill 0\n")

    def folder(self, controller: str, group: str) -> Path:
        """Return the folder of a group, which is created if it is missing."""
        found = self._root / (controller if self.version == 1 else "") / group.lstrip("/")
        found.mkdir(parents=True, exist_ok=True)
        return found

    def put(self, group: str, pid: int | None = None) -> None:
        """Put a process into a group; this process by default."""
        process = self.proc / str(os.getpid() if pid is None else pid)
        process.mkdir(exist_ok=True)
        v1 = f"5:memory:{group}\n4:cpu,cpuacct:{group}\n1:name=systemd:/\n0::/\n"
        (process / "cgroup").write_text(v1 if self.version == 1 else f"0::{group}\n")

    def limit_cpu(self, group: str, quota_us: int | None) -> None:
        """Set a quota for each 100 ms; None: no quota."""
        folder = self.folder("cpu", group)
        if self.version == 1:
            (folder / "cpu.cfs_quota_us").write_text(f"{quota_us or -1}\n")
            (folder / "cpu.cfs_period_us").write_text("100000\n")
        else:
            (folder / "cpu.max").write_text(f"{quota_us or 'max'} 100000\n")
        self.throttle(group, 0.0)

    def throttle(self, group: str, total_s: float) -> None:
        """Set how long the quota of a group has stopped it in total."""
        name, unit = ("throttled_time", 1e9) if self.version == 1 else ("throttled_usec", 1e6)
        text = f"nr_periods 556\nnr_throttled 550\n{name} {total_s * unit:.0f}\n"
        (self.folder("cpu", group) / "cpu.stat").write_text(text)

    def limit_memory(self, group: str, limit: int | None, used: int = 0, cached: int = 0) -> None:
        """Set a memory limit, and what is used of it: `cached` of it is inactive page cache."""
        folder = self.folder("memory", group)
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        none = NO_LIMIT_V1
        if self.version == 2:
            names, none = ("memory.max", "memory.current", "inactive_file"), "max\n"
        (folder / names[0]).write_text(none if limit is None else f"{limit}\n")
        (folder / names[1]).write_text(f"{used}\n")
        (folder / "memory.stat").write_text(f"cache 17\n{names[2]} {cached}\n")
        self.count_memory(group, hits=0, kills=0)

    def count_memory(self, group: str, hits: int, kills: int) -> None:
        """Set how often a group has reached its limit, and how many of its processes were killed
        because memory ran out."""
        folder = self.folder("memory", group)
        if self.version == 1:
            (folder / "memory.failcnt").write_text(f"{hits}\n")
            oom = f"oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n"
            (folder / "memory.oom_control").write_text(oom)
        else:
            events: Mapping[str, int] = {"low": 0, "max": 9, "oom": hits, "oom_kill": kills}
            text = "".join(f"{name} {count}\n" for name, count in events.items())
            (folder / "memory.events").write_text(text)
