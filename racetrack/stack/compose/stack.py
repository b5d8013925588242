"""Compose stack: services of docker-compose.yml, started and removed as one project."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGSTOP, Signals

import psutil

from racetrack.config import Settings
from racetrack.errors import BusyError, RacetrackError, SetupError
from racetrack.stack import resources
from racetrack.stack.compose import engine, orphans, preparation
from racetrack.stack.compose.containers import Containers
from racetrack.stack.compose.project import Project, Service, end
from racetrack.stack.compose.startup import READY_WITHIN_S, Followers, Startup
from racetrack.stack.containers import CGroup, ContainerStack, Live, Unseen, called, shown
from racetrack.stack.contract import DataFolder, OnReady, Say, Unmeasurable

ROUNDS = 3
# Units whose data is lost when their container ends, because it is on tmpfs or in memory.
LOSE_DATA = ("mysql", "redpanda", "redis")
# Further such units if the images are built here: their containers always start empty
# (racetrack/stack/native/serve.py).
LOSE_DATA_AIRGAP = ("debezium",)
REMEDY = "Enlarge it (the settings that end in _TMPFS, such as REDPANDA_TMPFS)"


class ComposeStack(ContainerStack):
    """Services as containers of one compose project; see `racetrack.stack.contract.Stack`."""

    runtime = "compose"
    helper_programs = ("dockerd", "containerd", "docker-proxy")
    unmeasurable: Unmeasurable | None = None

    def __init__(self, settings: Settings, docker: engine.Docker) -> None:
        super().__init__(settings, orphans.work_root(settings.stack_name))
        self.unmeasurable = docker.unmeasurable
        self.lose_data = (*LOSE_DATA, *(LOSE_DATA_AIRGAP if settings.airgap else ()))
        self._docker = docker
        self._project = Project(settings)
        self._containers = Containers(
            docker.client, self._project.name, visible=docker.unmeasurable is None
        )
        self._started: _Started | None = None

    def missing(self, services: Sequence[str]) -> list[str]:
        """Return the services that docker-compose.yml lacks."""
        described = self._project.services()
        return [name for name in services if called(name) not in described]

    def clear(self) -> str | None:
        if not all(each.started_by_harness for each in self._containers.all()):
            raise BusyError(
                f"The compose project {self._project.name} was not started by Racetrack. Take it"
                " down (`./race down`), or set another STACK_NAME and other ports."
            )
        return orphans.clear_at_once(self._project.name)

    def obtain(self, units: Sequence[str], say: Say) -> None:
        described = self._project.services()
        wanted = {name: described[name] for name in units}
        needed = {name: service.memory for name, service in wanted.items()}
        if self.unmeasurable:
            preparation.require_memory(needed, self._docker.memory_bytes, virtual=True)
        else:
            preparation.require_memory(needed, psutil.virtual_memory().available)
        resources.require_free_ports(self.settings.bind_address, [self._ports(wanted.values())])
        self._get_images(wanted, say)

    def spawn(self, units: Sequence[str], say: Say, on_ready: OnReady) -> None:
        """Start the containers; `on_ready` is called when all are healthy.

        The output of all containers also goes to `docker-compose.log`, next to the folder of logs.

        Raises:
            NotVisible: the containers' processes can't be seen here, although `docker info` looked
                as if they could.
        """
        followers = Followers(self._docker.client, self._logs.parent / "docker-compose.log")
        self._started = _Started(Startup(self._containers, followers, self._logs), followers)
        up = self._project.up(units, READY_WITHIN_S)
        try:
            self._started.coming.wait(up, units, say)
        finally:
            end(up)
        for name, container_id in self._started.coming.ids.items():
            self._started.live[name] = self._containers.live(container_id)
        for name in units:
            on_ready(name)

    def pids(self, services: Sequence[str]) -> dict[str, list[int]]:
        live = {service: self._up.live[called(service)] for service in services}
        return {
            service: [] if each in self._up.killed else each.pids()
            for service, each in live.items()
        }

    def accounting(self, service: str) -> CGroup | None:
        live = self._up.live.get(called(service))
        return live.group if live else None

    def folders_in_memory(self, service: str) -> list[Path]:
        live = self._up.live.get(called(service))
        pids = live.pids() if live else []
        return resources.tmpfs_of(pids[0]) if pids else []

    def data_folders(self) -> list[DataFolder]:
        """Return the tmpfs mounts of all live containers."""
        live = self._started.live if self._started else {}
        return [
            DataFolder(folder, f"{_inside(folder)} of {name}", REMEDY)
            for name in live
            for folder in self.folders_in_memory(name)
        ]

    def program(self, service: str, name: str) -> str:
        return f"docker compose -p {self._project.name} exec {called(service)} {name}"

    def where_logs(self) -> str:
        """Return a `docker compose logs` command: a stack left running writes no log files."""
        return f"docker compose -p {self._project.name} logs"

    def died(self) -> Mapping[str, str]:
        return {
            shown(name): self._up.coming.with_log(name, self._containers.ending(live.container_id))
            for name, live in list(self._up.live.items())
            if live not in self._up.killed and not live.runs()
        }

    def kill_units(self, units: Sequence[str]) -> None:
        doomed = [self._up.live[name] for name in units]
        self._up.killed.update(doomed)
        for live in doomed:
            self._containers.kill(live.container_id)

    def signal(self, unit: str, number: Signals) -> None:
        """Freeze a container, or continue it."""
        freeze_or_go_on = self._containers.pause if number == SIGSTOP else self._containers.resume
        freeze_or_go_on(self._up.live[unit].container_id)

    def respawn(self, unit: str) -> None:
        container_id, since_s = self._up.live[unit].container_id, time.time()
        self._containers.start(container_id)
        self._up.coming.wait_again(unit, since_s)
        self._up.live[unit] = self._containers.live(container_id)

    def versions(self) -> Mapping[str, str]:
        """Return the versions of Docker and its compose plugin, and each container's image."""
        return {
            "docker": self._docker.version,
            "docker-compose": self._docker.compose_version,
            **{name: self._containers.image(id_) for name, id_ in self._up.coming.ids.items()},
        }

    def alive(self) -> Mapping[str, Sequence[int]]:
        running = [each for each in self._containers.all() if each.state in ("running", "paused")]
        return {each.service: self._containers.live(each.id).pids() for each in running}

    def end(self) -> str | None:
        names = sorted({container.service for container in self._containers.all()})
        if self._started:
            self._started.live.clear()
        for _ in range(ROUNDS):
            if not self._containers.anything_left():
                break
            self._project.down()
        else:
            raise RacetrackError(
                f"Some containers of {self._project.name} can't be removed. See what is left:"
                f" docker ps --all --filter label=com.docker.compose.project={self._project.name}"
            )
        if self._started:
            self._started.followers.close()
        count = f"{len(names)} container{'s' if len(names) > 1 else ''}"
        return f"removed {count} ({', '.join(names)})" if names else None

    @property
    def _up(self) -> "_Started":
        if self._started is None:
            raise RacetrackError("This stack has not been started.")
        return self._started

    def _ports(self, services: Iterable[Service]) -> dict[str, int]:
        """Return the published ports of services: the setting that changes a port → the port."""
        settings = self.settings.model_dump()
        moved_by = {port: name.upper() for name, port in settings.items() if name.endswith("_port")}
        return {moved_by[port]: port for service in services for port in service.ports}

    def _get_images(self, wanted: Mapping[str, Service], say: Say) -> None:
        client = self._docker.client
        missing = [s.image for s in wanted.values() if not preparation.is_present(client, s.image)]
        if self.settings.airgap:
            if missing:
                raise SetupError(
                    f"These images have not been built yet: {', '.join(missing)}. Build them with"
                    " `./race images`."
                )
            return
        built_here = [name for name, service in wanted.items() if service.is_built_here]
        self._project.build(built_here, say)
        for service in wanted.values():
            if service.image in missing and not service.is_built_here:
                preparation.pull(client, service.image, say)


def _inside(folder: Path) -> str:
    """Return a folder's path in the container: `/proc/1/root/data` → `/data`."""
    return "/" + "/".join(folder.parts[4:])


@dataclass
class _Started:
    """State of a started stack. Its services are called as in docker-compose.yml."""

    coming: Startup
    followers: Followers
    live: dict[str, Live | Unseen] = field(default_factory=dict)
    killed: set[Live | Unseen] = field(default_factory=set)  # by `kill_units`
