"""Compose stack: services of docker-compose.yml, started and removed as one project."""

import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from racetrack.config import Settings
from racetrack.errors import BusyError, RacetrackError, SetupError
from racetrack.stack import resources
from racetrack.stack.compose import engine, orphans, preparation
from racetrack.stack.compose.containers import Containers
from racetrack.stack.compose.project import Project, Service, end
from racetrack.stack.compose.startup import READY_WITHIN_S, Followers, Startup
from racetrack.stack.containers import (
    CGroup,
    ContainerStack,
    Live,
    Unseen,
    called,
    each_once,
    shown,
)
from racetrack.stack.contract import (
    Cluster,
    DataFolder,
    NodeAgent,
    OnReady,
    RunningStack,
    Say,
    ignore,
)
from racetrack.stack.lifetime import UpFile, Watchdog, require_not_running
from racetrack.stack.provided import Provided

ROUNDS = 3
# Services whose data is lost when their container ends, because it is on tmpfs or in memory.
LOSE_DATA = ("mysql", "redpanda", "redis")
# Further such services if the images are built here: their containers always start empty
# (racetrack/stack/native/serve.py).
LOSE_DATA_AIRGAP = ("debezium",)


REMEDY = "Enlarge it (the settings that end in _TMPFS, such as REDPANDA_TMPFS)"


class ComposeStack(ContainerStack):
    """Services as containers of one compose project; see `racetrack.stack.contract.Stack`."""

    runtime = "compose"
    helper_programs = ("dockerd", "containerd", "docker-proxy")
    agents: Sequence[NodeAgent] = ()
    cluster: Cluster | None = None

    def __init__(self, settings: Settings, docker: engine.Docker) -> None:
        self.settings = settings
        self._docker = docker
        self.unmeasurable = docker.unmeasurable
        self._project = Project(settings)
        self._containers = Containers(
            docker.client, self._project.name, visible=docker.unmeasurable is None
        )
        self._root = orphans.work_root(self._project.name)
        self._note = UpFile(self._root)
        self._watchdog = Watchdog(self.runtime, self._project.name)
        self._provided = Provided(settings)
        self._started: _Started | None = None

    def missing(self, services: Sequence[str]) -> list[str]:
        """Return the services that docker-compose.yml lacks."""
        described = self._project.services()
        return [name for name in services if called(name) not in described]

    def prepare(self, services: Sequence[str], say: Say) -> None:
        """Remove what a killed run left behind, check memory and ports, and get missing images.

        Raises:
            SetupError: an image can't be obtained, or memory is short.
            BusyError: a stack of this name was left running, or a port is taken.
        """
        self._watchdog.wait_for_last(say)
        self._clear_orphans(say)
        started = self._provided.check(services, say)
        described = self._project.services()
        wanted = {name: described[name] for name in each_once(started)}
        needed = {name: service.memory for name, service in wanted.items()}
        if self.unmeasurable:
            preparation.require_memory(needed, self._docker.memory_bytes, virtual=True)
        else:
            preparation.require_memory(needed, psutil.virtual_memory().available)
        resources.require_free_ports(self.settings.bind_address, [self._ports(wanted.values())])
        self._get_images(wanted, say)

    def start(
        self, services: Sequence[str], logs: Path | None, say: Say, on_ready: OnReady = ignore
    ) -> None:
        """Start the services; return when all are healthy.

        The output of each service goes to a file of its own in `logs`. `docker-compose.log`, next
        to that folder, gets the output of all services.

        Raises:
            ServiceError: a service did not start; the message ends with the last lines of its log.
            NotVisible: the containers' processes can't be seen here, although `docker info` looked
                as if they could.
        """
        wanted = each_once(services)
        self._watchdog.begin(logs.parent if logs else None, say, self._provided.environment())
        self._root.mkdir(mode=0o700, exist_ok=True)
        logs = logs or self._root / "logs"
        logs.mkdir(exist_ok=True)
        followers = Followers(self._docker.client, logs.parent / "docker-compose.log")
        self._started = _Started(Startup(self._containers, followers, logs), followers)
        up = self._project.up(wanted, READY_WITHIN_S)
        try:
            self._started.coming.wait(up, wanted, say)
        finally:
            end(up)
        for name, container_id in self._started.coming.ids.items():
            self._started.live[name] = self._containers.live(container_id)
        for service in services:
            on_ready(service)

    def pids(self, services: Sequence[str]) -> dict[str, list[int]]:
        """Return the live processes of each service's container.

        The list is empty for a killed service, and if processes can't be seen here.
        """
        live = {service: self._up.live[called(service)] for service in services}
        return {
            service: [] if each in self._up.killed else each.pids()
            for service, each in live.items()
        }

    def accounting(self, service: str) -> CGroup | None:
        """Return the control group of the service's container, if it has one."""
        live = self._up.live.get(called(service))
        return live.group if live else None

    def folders_in_memory(self, service: str) -> list[Path]:
        """Return the tmpfs mounts of the service's container."""
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

    def log_of(self, service: str) -> Path:
        """Return the file that receives the output of the service's container."""
        return self._up.coming.log(called(service))

    def program(self, service: str, name: str) -> str:
        """Return a `docker compose exec` command that runs the program in the container."""
        return f"docker compose -p {self._project.name} exec {called(service)} {name}"

    def where_logs(self) -> str:
        """Return a `docker compose logs` command: a stack left running writes no log files."""
        return f"docker compose -p {self._project.name} logs"

    def died(self) -> Mapping[str, str]:
        """Return the services whose container ended unexpectedly, with the end of its log."""
        return {
            shown(name): f"{self._containers.ending(live.container_id)}; the end of its log:\n"
            f"{self._up.coming.log_tail(name)}"
            for name, live in list(self._up.live.items())
            if live not in self._up.killed and not live.runs()
        }

    def survives_kill(self, service: str) -> bool:
        """Return False if the service's data is on tmpfs or its container always starts empty."""
        lost = (*LOSE_DATA, *(LOSE_DATA_AIRGAP if self.settings.airgap else ()))
        return called(service) not in lost

    def kill(self, services: Sequence[str]) -> None:
        """Send SIGKILL to all processes of the services' containers.

        Raises:
            RacetrackError: a service would lose its data.
        """
        for service in services:
            if not self.survives_kill(service):
                raise RacetrackError(
                    f"{service} can't be killed in a container: its data would be lost."
                    " Pause it instead, or set RUNTIME=native."
                )
        doomed = [self._up.live[name] for name in each_once(services)]
        self._up.killed.update(doomed)
        for live in doomed:
            self._containers.kill(live.container_id)

    def pause(self, service: str) -> None:
        """Freeze all processes of the container; their connections stay open."""
        self._containers.pause(self._up.live[called(service)].container_id)

    def resume(self, service: str) -> None:
        """Continue a paused container."""
        self._containers.resume(self._up.live[called(service)].container_id)

    def restart(self, service: str) -> None:
        """Start a killed container, and return when it is healthy.

        Raises:
            ServiceError: the container did not become healthy; the message ends with the last lines
                of its log.
        """
        name = called(service)
        container_id, since_s = self._up.live[name].container_id, time.time()
        self._containers.start(container_id)
        self._up.coming.wait_again(name, since_s)
        self._up.live[name] = self._containers.live(container_id)

    def versions(self) -> Mapping[str, str]:
        """Return the versions of Docker and its compose plugin, and each container's image."""
        return {
            "docker": self._docker.version,
            "docker-compose": self._docker.compose_version,
            **{name: self._containers.image(id_) for name, id_ in self._up.coming.ids.items()},
        }

    def stop(self, say: Say) -> None:
        """Remove the project's containers, networks and data, whatever started them. Idempotent."""
        self._watchdog.wait_for_last(say)
        began, left_by = time.monotonic(), self._note.run_name()
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
        if self._root.exists():
            shutil.rmtree(self._root)
        self._provided.remove(say, left_by)
        self._watchdog.dismiss()
        if names:
            took_s = time.monotonic() - began
            what = f"{len(names)} container{'s' if len(names) > 1 else ''} ({', '.join(names)})"
            say(f"  removed {what} in {took_s:.1f} s")

    def leave_running(self, engine: str) -> None:
        """Leave the stack running when this command ends."""
        services = list(map(shown, self._up.live))
        self._note.write(self.runtime, engine, self.settings.workload, services)
        self._watchdog.dismiss()

    def running(self) -> RunningStack | None:
        """Return the stack that `leave_running` left running, if any of it is alive."""
        running = [each for each in self._containers.all() if each.state in ("running", "paused")]
        services = {shown(each.service): self._containers.live(each.id).pids() for each in running}
        return self._note.read(services)

    @property
    def _up(self) -> "_Started":
        if self._started is None:
            raise RacetrackError("This stack has not been started.")
        return self._started

    def _clear_orphans(self, say: Say) -> None:
        require_not_running(self.running())
        if not all(each.started_by_harness for each in self._containers.all()):
            raise BusyError(
                f"The compose project {self._project.name} was not started by Racetrack. Take it"
                " down (`./race down`), or set another STACK_NAME and other ports."
            )
        orphans.end_commands(self._project.name)
        if self._containers.anything_left():
            lines: list[str] = []
            self.stop(lines.append)
            say("\n".join(["Cleared what a killed run left.", *lines]))

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
    killed: set[Live | Unseen] = field(default_factory=set)  # by `ComposeStack.kill`
