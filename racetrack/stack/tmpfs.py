"""Which folders lie in memory (tmpfs): on this machine, or in a container."""

import errno
import os
from pathlib import Path

PROC = Path("/proc")
# What every container has there, with nothing of its own in it.
OF_THE_SYSTEM = ("/proc", "/sys", "/dev")
# What the kernel says of a process that has ended; the last one, until somebody has waited for it.
ENDED = (errno.ENOENT, errno.ESRCH, errno.EINVAL)
SHARED_MEMORY = "/dev/shm"  # noqa: S108


def is_on_tmpfs(folder: Path) -> bool:
    """Whether a folder of this machine is."""
    return folder.stat().st_dev in _mounts(PROC / "self").values()


def mount_point(folder: Path) -> Path:
    """The folder at which the file system of a folder is mounted."""
    found = folder.resolve()
    while not found.is_mount():
        found = found.parent
    return found


def seen_by(pid: int) -> list[Path]:
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
