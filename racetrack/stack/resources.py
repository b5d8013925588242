"""Resources of the machine that a stack uses: cores, folders in memory (tmpfs), and TCP ports."""

import errno
import os
import socket
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from racetrack import cgroups
from racetrack.config import Settings, cores_of, for_record, size_bytes
from racetrack.errors import BusyError, UsageError
from racetrack.host import usable_cores
from racetrack.stack import jvm
from racetrack.units import parse_cores, parse_size_bytes

# Settings that assign cores. HARNESS_CPUS also applies to services without a setting of their own.
SETTINGS = ("engine_cpus", "broker_cpus", "loadgen_cpus", "harness_cpus")
PROC = Path("/proc")
# Mounts of every container that contain no data of its service.
SYSTEM_FOLDERS = ("/proc", "/sys", "/dev")
# Errors when reading the files of a process that has ended; EINVAL while it is a zombie.
ENDED = (errno.ENOENT, errno.ESRCH, errno.EINVAL)
SHARED_MEMORY = "/dev/shm"  # noqa: S108


def apart(cores: Sequence[int]) -> dict[str, str]:
    """Return the settings that give half of these cores, rounded down, to the engine and the others
    to everything else; none for a single core."""
    rest = len(cores) - len(cores) // 2
    if rest == len(cores):
        return {}
    return {"ENGINE_CPUS": _listed(cores[rest:], ","), "HARNESS_CPUS": _listed(cores[:rest], ",")}


def require_cores(settings: Settings) -> None:
    """Check that this process may use all cores that the settings name.

    Raises:
        UsageError: a setting names a core that this process may not use.
    """
    for name in SETTINGS:
        value = str(getattr(settings, name))
        if value and (missing := parse_cores(value) - usable_cores()):
            raise UsageError(
                f"{name.upper()}={value} is not possible: this machine has the cores"
                f" {_listed(usable_cores())}, not {_listed(missing)}."
            )


def pin_harness(settings: Settings) -> None:
    """Restrict this process, with the threads that libraries have started, to HARNESS_CPUS."""
    if wanted := parse_cores(settings.harness_cpus):
        # Fill this function's cache now: after the restriction, it would return the restricted set.
        usable_cores()
        os.sched_setaffinity(0, wanted)
        for thread in (PROC / "self/task").iterdir():
            with suppress(ProcessLookupError):  # it has ended
                os.sched_setaffinity(int(thread.name), wanted)


def pinned_command(settings: Settings, service: str, argv: Sequence[str]) -> Sequence[str]:
    """Wrap a service's command so that its processes use only the service's cores.

    An engine without cores of its own gets all cores of the machine. Without wrapping, it would
    inherit the restriction to the harness's cores.
    """
    own = cores_of(for_record(settings), service)
    if not own and not settings.harness_cpus:
        return argv
    return ["taskset", "--cpu-list", own or _listed(usable_cores(), ","), *argv]


def _listed(cores: Collection[int], between: str = ", ") -> str:
    return between.join(map(str, sorted(cores)))


def memory_warnings(settings: Settings, heaps: Iterable[str], proc: Path = PROC) -> Iterator[str]:
    """Yield a warning for each control group of this process whose memory limit is smaller than
    all heaps together: these, given as names of settings, and those of registry and Connect."""
    sizes = {name: str(getattr(settings, name)) for name in heaps}
    total = sum(size_bytes(settings, name) for name in sizes)
    total += sum(map(parse_size_bytes, (jvm.REGISTRY_HEAP, jvm.CONNECT_HEAP)))
    for group, limit in cgroups.memory_limits(os.getpid(), proc).items():
        if limit < total:
            listed = ", ".join(f"{name.upper()}={size}" for name, size in sizes.items())
            yield (
                f"The control group {group} may use {limit / 2**30:.1f} GiB of memory, and the"
                f" heaps up to {total / 2**30:.1f} GiB ({listed}), so the kernel may kill a"
                " service. Raise this limit, or lower the heaps."
            )


def is_on_tmpfs(folder: Path, proc: Path = PROC) -> bool:
    """Return whether a folder of this machine is on tmpfs."""
    return folder.stat().st_dev in _mounts(proc / "self").values()


def mount_point(folder: Path) -> Path:
    """Return the mount point of a folder's file system."""
    found = folder.resolve()
    while not found.is_mount():
        found = found.parent
    return found


def tmpfs_of(pid: int, proc: Path = PROC) -> list[Path]:
    """Return the tmpfs mounts of the container in which process `pid` runs.

    The paths are valid on this machine. The list is empty if the process has just ended.
    """
    process = proc / str(pid)
    try:
        mounts = _mounts(process)
    except OSError as error:
        if error.errno not in ENDED:
            raise
        return []
    return [process / "root" / point.lstrip("/") for point in mounts if _is_own(point)]


def _mounts(process: Path) -> dict[str, int]:
    """Return tmpfs mount point → device number, as seen by a process."""
    found = {}
    for line in (process / "mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        device, _, point = before.split()[2:5]
        if after.startswith("tmpfs "):
            major, minor = map(int, device.split(":"))
            found[point] = os.makedev(major, minor)
    return found


def _is_own(point: str) -> bool:
    is_system = any(point == each or point.startswith(f"{each}/") for each in SYSTEM_FOLDERS)
    return point == SHARED_MEMORY or not is_system


def require_free_ports(address: str, wanted: Iterable[Mapping[str, int]]) -> None:
    """Check that TCP ports, given as setting name → port, are free.

    Raises:
        BusyError: a port is taken or wanted twice; the message names the setting to change.
    """
    settings: dict[int, str] = {}
    for setting, port in ((s, p) for group in wanted for s, p in group.items()):
        if port in settings:
            raise BusyError(f"{setting} and {settings[port]} are both {port}. Change one of them.")
        settings[port] = setting
        if _is_taken(address, port):
            raise BusyError(
                f"Port {port} is taken by {port_holder(port)}. Stop it, or set {setting} to a free"
                " port."
            )


def port_holder(port: int) -> str:
    """Return a description of the process that listens on a TCP port, if this user may see it."""
    try:
        for connection in psutil.net_connections(kind="tcp"):
            local = connection.laddr
            if connection.status == psutil.CONN_LISTEN and local and local.port == port:
                if connection.pid is None:
                    break
                return f"pid {connection.pid} ({psutil.Process(connection.pid).name()})"
    except (psutil.AccessDenied, psutil.NoSuchProcess):
        pass
    return "a process of another user"


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
