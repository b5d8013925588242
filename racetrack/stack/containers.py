"""Common to all container runtimes: names and addresses of services, and control groups of
containers."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from racetrack import cgroups
from racetrack.errors import RacetrackError
from racetrack.kafka_endpoint import KafkaEndpoint, elsewhere
from racetrack.stack.contract import InternalEndpoints
from racetrack.stack.stack import SupervisedStack

PROC = Path("/proc")
# In docker-compose.yml and in kubernetes/, Redpanda is both the broker and the schema registry.
CALLED = {"broker": "redpanda", "registry": "redpanda"}
SHOWN = {"redpanda": "broker"}
KAFKA, REDIS = "redpanda:9092", "redis:6379"  # addresses for other containers


def called(service: str) -> str:
    """Return a service's name in a container runtime."""
    return CALLED.get(service, service)


def shown(name: str) -> str:
    """Return the harness's name for a service in a container."""
    return SHOWN.get(name, name)


class ContainerStack(SupervisedStack):
    """Common part of stacks whose services run in containers; see `racetrack.stack.contract.Stack`.

    `helper_programs` are beginnings of process names: they identify the runtime's own programs.
    `lose_data` are units whose data is lost when they end.
    """

    helper_programs: tuple[str, ...]
    lose_data: tuple[str, ...]

    @property
    def data_in_memory(self) -> bool:
        """True: the compose files and manifests mount a tmpfs at each data folder."""
        return True

    @property
    def internal_endpoints(self) -> InternalEndpoints:
        """Addresses for use inside containers. The files in `scripts/` use them by default."""
        kafka = elsewhere(self.settings) or KafkaEndpoint(KAFKA)
        return InternalEndpoints(kafka, "http://redpanda:8081", REDIS, "/scripts")

    def unit(self, service: str) -> str:
        return called(service)

    def shown(self, unit: str) -> str:
        return shown(unit)

    def helpers(self) -> list[int]:
        return [
            process.pid
            for process in psutil.process_iter(["name"])
            if str(process.info["name"]).startswith(self.helper_programs)
        ]

    def survives_kill(self, service: str) -> bool:
        return called(service) not in self.lose_data


class NotVisible(RacetrackError):
    """The processes of a container can't be seen from here."""


@dataclass(frozen=True)
class CGroup:
    """Control group (version 1 or 2) of one container: its processes, CPU time and memory."""

    processes: Path  # the folder of cgroup.procs
    cpu: Path  # the file that counts CPU time
    memory: Path  # the file that contains its memory use, including page cache and tmpfs

    @classmethod
    def of(cls, pid: int, container_id: str, proc: Path = PROC) -> "CGroup":
        """Return the control group of the container whose main process is `pid`.

        Raises:
            NotVisible: there is no such process here, or it is not in the container's group.
        """
        try:
            lines = (proc / str(pid) / "cgroup").read_text().splitlines()
            mounts = (proc / "self/mountinfo").read_text().splitlines()
        except OSError:
            lines, mounts = [], []
        paths = cgroups.controller_paths(lines)
        where = paths.get("cpuacct", paths.get("", ""))
        if container_id not in where:
            raise NotVisible(
                f"The processes of container {container_id[:12]} can't be seen on this machine, so"
                " their CPU and memory can't be measured. Run Racetrack where the"
                " containers run, or set RUNTIME=native."
            )
        if "cpuacct" in paths:
            cpuacct = _folder(mounts, "cpuacct", paths["cpuacct"])
            memory = _folder(mounts, "memory", paths["memory"])
            return cls(cpuacct, cpuacct / "cpuacct.usage", memory / "memory.usage_in_bytes")
        folder = _folder(mounts, "", paths[""])
        return cls(folder, folder / "cpu.stat", folder / "memory.current")

    def pids(self) -> list[int]:
        """Return the process ids of all live processes, including those in nested groups."""
        return [
            int(line)
            for file in sorted(self.processes.rglob("cgroup.procs"))
            for line in file.read_text().split()
        ]

    def cpu_s(self) -> float:
        """Return the CPU seconds used since the container was started, also by ended processes."""
        text = self.cpu.read_text()
        if self.cpu.name == "cpuacct.usage":
            return int(text) / 1e9
        fields = dict(line.split() for line in text.splitlines())
        return int(fields["usage_usec"]) / 1e6

    def memory_bytes(self) -> int:
        """Return the group's memory now, including page cache and files on tmpfs."""
        return int(self.memory.read_text())


def _folder(mounts: list[str], controller: str, path: str) -> Path:
    """Return the folder of a control group."""
    if found := cgroups.levels(mounts, controller, path):
        return found[0]
    raise NotVisible(
        f"No control group hierarchy{f' of {controller}' if controller else ''} is mounted here, so"
        " the CPU and memory of a container can't be measured. Set RUNTIME=native."
    )


@dataclass(frozen=True)
class Live:
    """A running container: its main process, and the control group of all its processes."""

    container_id: str
    main: psutil.Process
    group: CGroup

    def runs(self) -> bool:
        """Return whether the main process is alive, according to the kernel, not the engine."""
        try:
            return self.main.is_running() and self.main.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    def pids(self) -> list[int]:
        """Return the ids of all live processes, the main process first."""
        if not self.runs():
            return []
        try:
            others = set(self.group.pids()) - {self.main.pid}
        except OSError:  # the container, and its control group, have just ended
            return []
        return [self.main.pid, *sorted(others)]


@dataclass(frozen=True)
class Unseen:
    """A running container whose processes are not visible on this machine.

    `runs` queries the Docker engine.
    """

    container_id: str
    runs: Callable[[], bool]
    group: None = None

    def pids(self) -> list[int]:
        """Return an empty list: its process ids are not valid on this machine."""
        return []
