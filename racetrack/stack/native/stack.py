"""Native stack: installs services, starts them in parallel, monitors and stops them."""

import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from signal import Signals

from racetrack import environment, install
from racetrack.config import REPO, Settings
from racetrack.errors import RacetrackError
from racetrack.host import ProcessTree
from racetrack.stack import net, processes, provided, resources
from racetrack.stack.contract import DataFolder, InternalEndpoints, OnReady, Say
from racetrack.stack.native.startup import RunningService, wait_ready
from racetrack.stack.service import (
    CHECK_EVERY_S,
    Context,
    FasterStart,
    NativeService,
    find_service,
    spawn,
)
from racetrack.stack.stack import SupervisedStack

# Number of class archives that are made in parallel. Making one uses one core.
MADE_AT_A_TIME = 2

# Function of (parts, versions, say) that installs parts (components) in the background. It provides
# part → future of the folder in which the part is installed: see `install.fetching`.
Fetch = Callable[
    [Sequence[str], Mapping[str, str], Say], AbstractContextManager[Mapping[str, Future[Path]]]
]


class _Cancelled(Exception):
    """The start of a service is cancelled, because another service failed."""


class NativeStack(SupervisedStack):
    """Services as plain processes of this user; see `racetrack.stack.contract.Stack`."""

    runtime = "native"

    def __init__(
        self,
        settings: Settings,
        find: Callable[[str], NativeService] = find_service,
        fetch: Fetch = install.fetching,
    ) -> None:
        super().__init__(settings, processes.work_root(settings.stack_name))
        self._find, self._fetch = find, fetch
        self._parts: dict[str, Path] = {}
        # Part → its folder, as soon as the part is installed.
        self._coming: Mapping[str, Future[Path]] = {}
        self._faster: dict[str, FasterStart] = {}  # started service → its class archive
        self._say: Say = lambda _line: None
        self._running: dict[str, RunningService] = {}
        self._stopping = threading.Event()
        self._starting: set[threading.Thread] = set()
        self._dead: list[subprocess.Popen[bytes]] = []

    @property
    def data_in_memory(self) -> bool:
        """True if the data folder is on tmpfs. It is there if a tmpfs is large enough."""
        return resources.is_on_tmpfs(self.root.parent)

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

    def clear(self) -> str | None:
        return processes.clear(self.settings.stack_name)

    def obtain(self, units: Sequence[str], say: Say) -> None:
        environment.require_open_files()
        if not self.data_in_memory:
            say(_on_disk(self.root.parent))
        ports = [self._find(name).ports(self.settings) for name in units]
        resources.require_free_ports(self.settings.bind_address, ports)

    def spawn(self, units: Sequence[str], say: Say, on_ready: OnReady) -> None:
        """Start each service as soon as its parts (components) are installed."""
        wanted = [self._find(name) for name in units]
        needed = {part for service in wanted for part in service.parts}
        # mysqld drops root privileges and must still reach its folder, so other users may enter the
        # parent folder (but not list it).
        self.root.chmod(0o711)
        self._say = say
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

    def accounting(self, service: str) -> None:
        """Return None: native services have no control groups of their own."""

    def folders_in_memory(self, service: str) -> list[Path]:
        folder = self.root / service
        return [folder] if folder.exists() and resources.is_on_tmpfs(folder) else []

    @cached_property
    def _mount(self) -> Path:
        return resources.mount_point(self.root.parent)

    def data_folders(self) -> list[DataFolder]:
        """Return the folder that contains the data of all services."""
        where = self._mount
        enlarge = f"Enlarge it (`mount -o remount,size=8g {where}`, as root)"
        remedy = enlarge if self.data_in_memory else "Free some, or set TMPDIR to another disk"
        folder = self.root if self.root.exists() else self.root.parent
        return [DataFolder(folder, str(where), remedy)]

    def where_logs(self) -> str:
        return str(self._logs)

    def program(self, service: str, name: str) -> str:
        programs = [self._parts[part] / "bin" / name for part in self._find(service).parts]
        return str(next(path for path in programs if path.exists()))

    def component_folders(self) -> list[Path]:
        return list(self._parts.values())

    def died(self) -> Mapping[str, str]:
        return {
            name: running.ending()
            for name, running in list(self._running.items())
            if not running.was_killed and running.has_ended
        }

    def survives_kill(self, service: str) -> bool:  # noqa: ARG002
        """Return True: a killed service's folder stays until the stack stops."""
        return True

    def kill_units(self, units: Sequence[str]) -> None:
        for name in units:
            self._running[name].was_killed = True
        for name in units:
            processes.kill(self.settings.stack_name, name)
            # Reap the main process only when the stack stops. Reaping adds its CPU time to that of
            # this process's children, which counts as CPU time of the harness.
            self._dead.append(self._running[name].process)

    def signal(self, unit: str, number: Signals) -> None:
        processes.signal_service(self.settings.stack_name, unit, number)

    def respawn(self, unit: str) -> None:
        with suppress(_Cancelled):  # the stack is being stopped
            self._launch(self._running[unit].service)

    def versions(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for running in self._running.values():
            found.update(running.service.versions(self._context(running.service)))
        return found

    def alive(self) -> Mapping[str, Sequence[int]]:
        found: dict[str, list[int]] = {}
        for member in processes.members(self.settings.stack_name):
            found.setdefault(member.service, []).append(member.process.pid)
        return found

    def end(self) -> str | None:
        self._stopping.set()
        while self._starting:
            self._starting.pop().join()
        ended = [*self._dead, *(running.process for running in self._running.values())]
        self._dead.clear()
        self._running.clear()
        members = processes.end(self.settings.stack_name)
        for process in ended:
            process.kill()  # if it hid its mark
            process.wait()  # otherwise it stays a zombie until this process ends
        cleared = processes.removed(self.settings.stack_name, members)
        return cleared and f"ended {cleared}"

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
        work = self.root / service.name
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
