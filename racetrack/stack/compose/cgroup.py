"""The kernel's account of a container: its processes, CPU time and memory, by its control group."""

from dataclasses import dataclass
from pathlib import Path

from racetrack.errors import RacetrackError

PROC = Path("/proc")


class NotVisible(RacetrackError):
    """The processes of a container can't be seen from here."""


@dataclass(frozen=True)
class CGroup:
    """The control group of one container, of version 1 or 2."""

    processes: Path  # its folder, where cgroup.procs is
    cpu: Path  # the file that counts CPU time
    memory: Path  # the file that tells what is in memory now: caches and tmpfs included

    @classmethod
    def of(cls, pid: int, container_id: str, proc: Path = PROC) -> "CGroup":
        """The group that a container's main process is in.

        Raises:
            NotVisible: there is no such process here, or it is not in the container's group.
        """
        try:
            lines = (proc / str(pid) / "cgroup").read_text().splitlines()
            mounts = (proc / "self/mountinfo").read_text().splitlines()
        except OSError:
            lines, mounts = [], []
        paths = {name: path for line in lines for name, path in _controllers(line)}
        where = paths.get("cpuacct", paths.get("", ""))
        if container_id not in where:
            raise NotVisible(
                f"The processes of container {container_id[:12]} can't be seen on this machine, so"
                " that their CPU and memory can't be measured. Run Racetrack where the Docker"
                " engine runs, or set RUNTIME=native."
            )
        if "cpuacct" in paths:
            cpuacct = _folder(mounts, "cpuacct", paths["cpuacct"])
            memory = _folder(mounts, "memory", paths["memory"])
            return cls(cpuacct, cpuacct / "cpuacct.usage", memory / "memory.usage_in_bytes")
        folder = _folder(mounts, "", paths[""])
        return cls(folder, folder / "cpu.stat", folder / "memory.current")

    def pids(self) -> list[int]:
        """All live processes, those of groups within the group too."""
        return [
            int(line)
            for file in sorted(self.processes.rglob("cgroup.procs"))
            for line in file.read_text().split()
        ]

    def cpu_s(self) -> float:
        """CPU seconds since the container was started, of processes that have ended too."""
        text = self.cpu.read_text()
        if self.cpu.name == "cpuacct.usage":
            return int(text) / 1e9
        fields = dict(line.split() for line in text.splitlines())
        return int(fields["usage_usec"]) / 1e6

    def memory_bytes(self) -> int:
        """What the group has in memory now, with the files it caches and what it keeps on tmpfs."""
        return int(self.memory.read_text())


def _controllers(line: str) -> list[tuple[str, str]]:
    """A line of /proc/PID/cgroup: each controller with the path; `` stands for version 2."""
    _, names, path = line.split(":", 2)
    return [(name, path) for name in names.split(",")]


def _folder(mounts: list[str], controller: str, path: str) -> Path:
    """Where a group's folder is: a hierarchy may be mounted anywhere, and only in part."""
    for line in mounts:
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        root, mounted = before.split()[3:5]
        fits = controller in options.split(",") if controller else kind == "cgroup2"
        if fits and kind.startswith("cgroup"):
            within = path.removeprefix(root) if root != "/" else path
            return Path(mounted) / within.lstrip("/")
    raise NotVisible(
        f"No control group hierarchy{f' of {controller}' if controller else ''} is mounted here, so"
        " that what a container uses can't be measured. Set RUNTIME=native."
    )
