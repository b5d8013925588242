"""Native stack: installs services, starts them in parallel, monitors and stops them."""

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

from racetrack import environment, install
from racetrack.config import REPO, Settings
from racetrack.errors import RacetrackError
from racetrack.host import ProcessTree
from racetrack.stack import net, processes, provided, resources
from racetrack.stack.contract import (
    Cluster,
    DataFolder,
    Endpoints,
    InternalEndpoints,
    NodeAgent,
    OnReady,
    RunningStack,
    Say,
    ServiceClock,
    Unmeasurable,
    ignore,
)
from racetrack.stack.lifetime import UpFile, Watchdog, require_not_running
from racetrack.stack.native.startup import RunningService, wait_ready
from racetrack.stack.provided import Provided
from racetrack.stack.service import (
    CHECK_EVERY_S,
    Context,
    FasterStart,
    NativeService,
    find_service,
    spawn,
)
from racetrack.stack.services import debezium, registry

# Number of class archives that are made in parallel. Making one uses one core.
MADE_AT_A_TIME = 2

# Function of (parts, versions, say) that installs parts (components) in the background. It provides
# part → future of the folder in which the part is installed: see `install.fetching`.
Fetch = Callable[
    [Sequence[str], Mapping[str, str], Say], AbstractContextManager[Mapping[str, Future[Path]]]
]


class _Cancelled(Exception):
    """The start of a service is cancelled, because another service failed."""


class NativeStack:
    """Services as plain processes of this user; see `racetrack.stack.contract.Stack`."""

    runtime = "native"
    unmeasurable: Unmeasurable | None = None
    agents: Sequence[NodeAgent] = ()
    cluster: Cluster | None = None

    def __init__(
        self,
        settings: Settings,
        find: Callable[[str], NativeService] = find_service,
        fetch: Fetch = install.fetching,
    ) -> None:
        self.settings = settings
        self._find, self._fetch = find, fetch
        self._parts: dict[str, Path] = {}
        # Part → its folder, as soon as the part is installed.
        self._coming: Mapping[str, Future[Path]] = {}
        self._faster: dict[str, FasterStart] = {}  # started service → its class archive
        self._services: Sequence[str] = ()
        self._say: Say = lambda _line: None
        self._root = processes.work_root(settings.stack_name)
        self._note = UpFile(self._root)
        self._logs = self._root / "logs"  # used if no other folder is given
        self._running: dict[str, RunningService] = {}
        self._stopping = threading.Event()
        self._starting: set[threading.Thread] = set()
        self._dead: list[subprocess.Popen[bytes]] = []
        self._watchdog = Watchdog(self.runtime, settings.stack_name)
        self._provided = Provided(settings)

    @property
    def clocks(self) -> Mapping[str, ServiceClock]:
        """Clocks of services that the user provides, by service."""
        return self._provided.clocks

    @property
    def data_in_memory(self) -> bool:
        """True if the data folder is on tmpfs. It is there if a tmpfs is large enough."""
        return resources.is_on_tmpfs(self._root.parent)

    @property
    def endpoints(self) -> Endpoints:
        """Addresses of the services, as seen from this machine."""
        s = self.settings
        return Endpoints(
            kafka=net.kafka(s),
            registry=registry.url(s),
            connect=debezium.url(s),
            mysql=net.mysql(s),
            loadgen_host=net.host(s),
            loadgen_port=s.loadgen_port,
            redis=net.redis(s),
        )

    @property
    def internal_endpoints(self) -> InternalEndpoints:
        """Addresses as seen by engines. An engine that runs elsewhere reaches this machine at the
        address that the broker advertises."""
        s, kafka, host = self.settings, self.endpoints.kafka, self.settings.advertised_address
        if not kafka.is_elsewhere:
            kafka = replace(kafka, servers=net.endpoint(host, s.kafka_port))
        return InternalEndpoints(
            kafka=kafka,
            registry=f"http://{net.endpoint(host, s.schema_registry_port)}",
            redis=net.endpoint(host, s.redis_port),
            scripts=str(REPO / "scripts"),
        )

    def prepare(self, services: Sequence[str], say: Say) -> None:
        """Remove what a killed run left behind; check that the ports are free.

        Raises:
            BusyError: a stack of this name was left running by `./race up`, or a port is taken.
        """
        environment.require_open_files()
        if not self.data_in_memory:
            say(_on_disk(self._root.parent))
        self._watchdog.wait_for_last(say)
        require_not_running(self.running())
        if cleared := processes.clear(self.settings.stack_name):
            say(f"Cleared what a killed run left: {cleared}.")
        wanted = [self._find(name) for name in self._provided.check(services, say)]
        resources.require_free_ports(
            self.settings.bind_address, [w.ports(self.settings) for w in wanted]
        )

    def start(
        self, services: Sequence[str], logs: Path | None, say: Say, on_ready: OnReady = ignore
    ) -> None:
        """Install missing parts (components), start each service as soon as its parts are
        installed, and return when all services are healthy.

        Raises:
            SetupError: a part can't be installed.
            ServiceError: a service did not start; the message ends with the last lines of its log.
        """
        wanted = [self._find(name) for name in services]
        needed = {part for service in wanted for part in service.parts}
        self._services = services
        self._watchdog.begin(logs.parent if logs else None, say, self._provided.environment())
        # mysqld drops root privileges and must still reach its folder, so other users may enter the
        # parent folder (but not list it).
        self._root.mkdir()
        self._root.chmod(0o711)
        self._logs, self._say = logs or self._logs, say
        self._logs.mkdir(exist_ok=True)
        ready = {service.name: threading.Event() for service in wanted}
        with (
            self._fetch(sorted(needed), _versions_of(self.settings), say) as parts,
            ThreadPoolExecutor(max_workers=max(1, len(wanted))) as pool,
            self._ended_on_error(),
        ):
            self._coming = parts
            futures = [
                pool.submit(self._awaited, partial(self._bring_up, service, ready, say, on_ready))
                for service in wanted
            ]
            for future in as_completed(futures):
                future.result()

    def apart(self, services: Sequence[str]) -> list[str]:
        """Return all services: each has processes of its own."""
        return list(services)

    def pids(self, services: Sequence[str]) -> dict[str, list[int]]:
        """Return each service's main process and all descendants of that process.

        The list is empty for a killed service, whose main process stays a zombie until the stack
        stops.
        """
        tree = ProcessTree.now()
        running = {service: self._running[service] for service in services}
        return {
            service: [] if each.was_killed else tree.with_descendants(each.process.pid)
            for service, each in running.items()
        }

    def helpers(self) -> list[int]:
        """Return an empty list: native services need no helpers."""
        return []

    def accounting(self, service: str) -> None:
        """Return None: native services have no control groups of their own."""

    def folders_in_memory(self, service: str) -> list[Path]:
        """Return the service's folder if it is on tmpfs, otherwise an empty list."""
        folder = self._root / service
        return [folder] if folder.exists() and resources.is_on_tmpfs(folder) else []

    @cached_property
    def _mount(self) -> Path:
        return resources.mount_point(self._root.parent)

    def data_folders(self) -> list[DataFolder]:
        """Return the folder that contains the data of all services."""
        where = self._mount
        enlarge = f"Enlarge it (`mount -o remount,size=8g {where}`, as root)"
        remedy = enlarge if self.data_in_memory else "Free some, or set TMPDIR to another disk"
        exists = self._root.exists()
        return [DataFolder(self._root if exists else self._root.parent, str(where), remedy)]

    def log_of(self, service: str) -> Path:
        """Return the file that receives the service's output."""
        return self._logs / f"{service}.log"

    def where_logs(self) -> str:
        """Return the folder with a log file for each service."""
        return str(self._logs)

    def program(self, service: str, name: str) -> str:
        """Return the path of the program in one of the service's parts."""
        programs = [self._parts[part] / "bin" / name for part in self._find(service).parts]
        return str(next(path for path in programs if path.exists()))

    def component_folders(self) -> list[Path]:
        """Return the folders of the installed parts that the services use."""
        return list(self._parts.values())

    def died(self) -> Mapping[str, str]:
        """Return services that ended unexpectedly, with exit code and the end of the log."""
        return {
            name: running.ending()
            for name, running in list(self._running.items())
            if not running.was_killed and running.has_ended
        }

    def survives_kill(self, service: str) -> bool:  # noqa: ARG002
        """Return True: a killed service's folder stays until the stack stops."""
        return True

    def kill(self, services: Sequence[str]) -> None:
        """Send SIGKILL to all processes of these services; return when they are gone."""
        for service in services:
            self._running[service].was_killed = True
        for service in services:
            processes.kill(self.settings.stack_name, service)
            # Reap the main process only when the stack stops. Reaping adds its CPU time to that of
            # this process's children, which counts as CPU time of the harness.
            self._dead.append(self._running[service].process)

    def pause(self, service: str) -> None:
        """Stop all processes of a service (SIGSTOP); their connections stay open."""
        processes.signal_service(self.settings.stack_name, service, signal.SIGSTOP)

    def resume(self, service: str) -> None:
        """Continue a paused service (SIGCONT)."""
        processes.signal_service(self.settings.stack_name, service, signal.SIGCONT)

    def restart(self, service: str) -> None:
        """Start a killed service with the data that it left; return when it is ready.

        Raises:
            ServiceError: the service did not start; the message ends with the last lines of its
                log.
        """
        try:
            self._launch(self._running[service].service)
        except _Cancelled:
            return  # the stack is being stopped

    def versions(self) -> Mapping[str, str]:
        """Return component → version of all started services."""
        found: dict[str, str] = {}
        for running in self._running.values():
            found.update(running.service.versions(self._context(running.service)))
        return found

    def stop(self, say: Say) -> None:
        """End all processes that carry this stack's mark, and remove its data. Idempotent."""
        self._stopping.set()
        self._watchdog.wait_for_last(say)
        began, left_by = time.monotonic(), self._note.run_name()
        while self._starting:
            self._starting.pop().join()
        ended = [*self._dead, *(running.process for running in self._running.values())]
        self._dead.clear()
        self._running.clear()
        members = processes.end(self.settings.stack_name)
        for process in ended:
            if process.poll() is None:  # the search for marked processes once missed a JVM
                say(
                    f"  ended {process.args!s:.80} (pid {process.pid}), which was not found by its"
                    " mark"
                )
                process.kill()
            process.wait()  # otherwise it stays a zombie until this process ends
        cleared = processes.removed(self.settings.stack_name, members)
        self._provided.remove(say, left_by)
        self._watchdog.dismiss()
        if cleared:
            say(f"  ended {cleared} in {time.monotonic() - began:.1f} s")

    @property
    def unprepared(self) -> tuple[str, ...]:
        """Services without a class archive."""
        items = self._faster.items()
        return tuple(sorted(name for name, faster in items if not faster.exists(self._parts)))

    def speed_up_next_start(self, say: Say) -> None:
        """Make missing class archives (see prebuilt.py).

        Each service without an archive is started once more, with the peers that it needs, and is
        ended when its archive is written.
        """
        missing = {name: self._faster[name] for name in self.unprepared}
        peers = list(dict.fromkeys(peer for faster in missing.values() for peer in faster.peers))
        if not missing or provided.here(peers, self.settings) != peers:
            return
        say(
            f"Preparing faster starts, once ({', '.join(missing)})."
            " Ctrl-C leaves it for the next run."
        )
        began = time.monotonic()
        self._stopping.clear()
        try:
            self.start(peers, None, lambda _line: None)
            with ThreadPoolExecutor(max_workers=MADE_AT_A_TIME) as pool, self._ended_on_error():
                jobs = [
                    pool.submit(
                        self._awaited, partial(faster.make, self._context(self._find(name)))
                    )
                    for name, faster in missing.items()
                ]
                for job in as_completed(jobs):
                    job.result()
        except RacetrackError as error:
            say(f"  failed; the next run will try again: {error}")
        else:
            say(f"  done in {time.monotonic() - began:.0f} s")
        finally:
            self.stop(lambda _line: None)

    def leave_running(self, engine: str) -> None:
        """Leave the stack running when this command ends."""
        self._note.write(self.runtime, engine, self.settings.workload, list(self._running))
        self._watchdog.dismiss()

    def running(self) -> RunningStack | None:
        """Return the stack that `leave_running` left running, if any of it is alive."""
        services: dict[str, list[int]] = {}
        for member in processes.members(self.settings.stack_name):
            services.setdefault(member.service, []).append(member.process.pid)
        return self._note.read(services)

    @contextmanager
    def _ended_on_error(self) -> Iterator[None]:
        """End all services if the block fails, so that no thread waits forever for a service."""
        try:
            yield
        except BaseException:
            self._stopping.set()
            processes.end(self.settings.stack_name)
            raise

    def _awaited(self, work: Callable[[], None]) -> None:
        """Work in a thread of a pool, for which `stop` waits. The pool itself forgets a thread if a
        signal arrives while it starts it; such a thread would write data behind the clean-up."""
        self._starting.add(threading.current_thread())
        self._check_not_stopping()
        work()

    def _bring_up(
        self,
        service: NativeService,
        ready: Mapping[str, threading.Event],
        say: Say,
        on_ready: OnReady,
    ) -> None:
        try:
            for part in service.parts:
                self._parts[part] = self._wait_for_part(self._coming[part])
            began = time.monotonic()
            for name in ready.keys() & set(service.after):
                self._wait_for(ready[name])
            self._launch(service)
        except _Cancelled:
            return
        ready[service.name].set()
        say(f"  {service.name} ready after {time.monotonic() - began:.1f} s")
        on_ready(service.name)

    def _launch(self, service: NativeService) -> None:
        log = self.log_of(service.name)
        running = RunningService(service, self._spawn(service, log), log)
        self._running[service.name] = running
        wait_ready(
            running, self._context(service), self._check_not_stopping, self._all_parts_are_there
        )

    def _wait_for_part(self, part: Future[Path]) -> Path:
        while not part.done():
            wait([part], CHECK_EVERY_S)
            self._check_not_stopping()
        return part.result()

    def _all_parts_are_there(self) -> bool:
        return all(part.done() for part in self._coming.values())

    def _wait_for(self, event: threading.Event) -> None:
        while not event.wait(CHECK_EVERY_S):
            self._check_not_stopping()

    def _check_not_stopping(self) -> None:
        if self._stopping.is_set():
            raise _Cancelled

    def _spawn(self, service: NativeService, log: Path) -> subprocess.Popen[bytes]:
        self._check_not_stopping()
        launch = service.launch(self._context(service))
        if launch.faster:
            self._faster[service.name] = launch.faster
        self._check_not_stopping()
        with log.open("ab") as output:
            on_cores = replace(
                launch, argv=resources.pinned_command(self.settings, service.name, launch.argv)
            )
            return spawn(on_cores, output, processes.mark(self.settings.stack_name, service.name))

    def _context(self, service: NativeService) -> Context:
        work = self._root / service.name
        work.mkdir(mode=0o700, exist_ok=True)
        return Context(self.settings, work, self._parts, self._say, self._stopping, self._services)


def _on_disk(folder: Path) -> str:
    shm, needed = processes.SHM, processes.ROOM_BYTES
    return (
        f"Data is on disk, in {folder}: {shm} is too small or not writable ({needed / 2**30:g} GiB"
        f" must be free). Such runs are not compared with runs in memory. Enlarge {shm}:"
        f" `mount -o remount,size=8g {shm}`, as root; in a container, `docker run --shm-size=8g`."
    )


def _versions_of(settings: Settings) -> dict[str, str]:
    """Return the versions in the settings, by their names in `.env`."""
    return {
        name.upper(): str(value)
        for name, value in settings.model_dump().items()
        if name.endswith("_version")
    }
