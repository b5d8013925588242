"""Resources of the machine that a stack uses: cores, folders in memory (tmpfs), and TCP ports."""

import errno
import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import psutil

from racetrack import plugins
from racetrack.config import Settings
from racetrack.errors import BusyError, UsageError
from racetrack.host import usable_cores

# Nothing else of a stack is measured, so nothing else has cores of its own.
SETTINGS = ("engine_cpus", "broker_cpus", "loadgen_cpus", "harness_cpus")
PROC = Path("/proc")
# What every container has there, with nothing of its own in it.
OF_THE_SYSTEM = ("/proc", "/sys", "/dev")
# What the kernel says of a process that has ended; the last one, until somebody has waited for it.
ENDED = (errno.ENOENT, errno.ESRCH, errno.EINVAL)
SHARED_MEMORY = "/dev/shm"  # noqa: S108


def service_cores(settings: Settings, service: str) -> str:
    """The cores of a service, as ENGINE_CPUS and its like say it; empty: all."""
    if plugins.service_module(service):
        return settings.engine_cpus
    return {"broker": settings.broker_cpus, "loadgen": settings.loadgen_cpus}.get(service, "")


def parse_cores(cpus: str) -> set[int]:
    """`0,2-3` → {0, 2, 3}."""
    found: set[int] = set()
    for part in filter(None, cpus.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def require_cores(settings: Settings) -> None:
    """
    Raises:
        UsageError: a setting names a core that this program may not use.
    """
    for name in SETTINGS:
        asked = str(getattr(settings, name))
        if asked and (missing := parse_cores(asked) - usable_cores()):
            raise UsageError(
                f"{name.upper()}={asked} can't be had: this machine has the cores"
                f" {_listed(usable_cores())}, not {_listed(missing)}."
            )


def pin_harness(settings: Settings) -> None:
    """From now on this process, with all its threads to come, uses HARNESS_CPUS only."""
    if wanted := parse_cores(settings.harness_cpus):
        usable_cores()  # while they can still be seen
        os.sched_setaffinity(0, wanted)


def pinned_command(settings: Settings, service: str, argv: Sequence[str]) -> Sequence[str]:
    """The command of a service that runs on its own cores only, with all that it starts.

    A service inherits what the harness may use: so one without cores of its own is given all.
    """
    own = service_cores(settings, service)
    if not own and not settings.harness_cpus:
        return argv
    return ["taskset", "--cpu-list", own or _listed(usable_cores(), ","), *argv]


def _listed(cores: frozenset[int] | set[int], between: str = ", ") -> str:
    return between.join(map(str, sorted(cores)))


def is_on_tmpfs(folder: Path) -> bool:
    """Whether a folder of this machine is."""
    return folder.stat().st_dev in _mounts(PROC / "self").values()


def mount_point(folder: Path) -> Path:
    """The folder at which the file system of a folder is mounted."""
    found = folder.resolve()
    while not found.is_mount():
        found = found.parent
    return found


def tmpfs_of(pid: int) -> list[Path]:
    """Those of a container's own, by one of its processes: as this machine can read them. None, if
    it has just ended."""
    process = PROC / str(pid)
    try:
        mounts = _mounts(process)
    except OSError as error:
        if error.errno not in ENDED:
            raise
        return []
    return [process / "root" / point.lstrip("/") for point in mounts if _is_own(point)]


def _mounts(process: Path) -> dict[str, int]:
    """Where each tmpfs is mounted, with its device."""
    found = {}
    for line in (process / "mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        device, _, point = before.split()[2:5]
        if after.startswith("tmpfs "):
            major, minor = map(int, device.split(":"))
            found[point] = os.makedev(major, minor)
    return found


def _is_own(point: str) -> bool:
    above = any(point == of or point.startswith(f"{of}/") for of in OF_THE_SYSTEM)
    return point == SHARED_MEMORY or not above


def require_free_ports(address: str, wanted: Iterable[Mapping[str, int]]) -> None:
    """Check ports given as setting name → TCP port.

    Raises:
        BusyError: one is taken, or two settings ask for the same; names the setting that moves it.
    """
    seen: dict[int, str] = {}
    for setting, port in ((s, p) for group in wanted for s, p in group.items()):
        if port in seen:
            raise BusyError(f"{setting} and {seen[port]} are both {port}. Change one of them.")
        seen[port] = setting
        if _is_taken(address, port):
            raise BusyError(
                f"Port {port} is taken by {port_holder(port)}. Stop it, or set {setting} to a free"
                " port."
            )


def port_holder(port: int) -> str:
    """Who listens on a TCP port of this machine, as far as this user may know."""
    try:
        for connection in psutil.net_connections(kind="tcp"):
            local = connection.laddr
            if connection.status == psutil.CONN_LISTEN and local and local.port == port:
                if connection.pid is None:
                    break
                return f"pid {connection.pid} ({psutil.Process(connection.pid).name()})"
    except (psutil.AccessDenied, psutil.NoSuchProcess):
        pass  # the answer below says that it could not be seen
    return "a process that this user can't see"


def _is_taken(address: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return True
            raise BusyError(
                f"Can't listen on {address}:{port}: {error.strerror}. Check BIND_ADDRESS."
            ) from None
    return False
