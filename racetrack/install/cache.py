"""Cache folder for downloads and installed parts, and the lock for changing it."""

import fcntl
import os
import pwd
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from racetrack.errors import SetupError, UsageError
from racetrack.install.commands import Say

UNFINISHED = ".tmp-"
SCRATCH = "-scratch"
# Other characters are wrong in a class path, a URL (Deephaven's = and é) or a configuration file.
# The same as in bootstrap.sh.
REFUSED = re.compile("[^A-Za-z0-9 /._@+~()-]")


def root() -> Path:
    """Return the cache folder: `$RACETRACK_CACHE`, or `racetrack` in the user's XDG cache."""
    chosen = os.environ.get("RACETRACK_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    home = os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir
    base = Path(xdg) if xdg.startswith("/") else Path(home) / ".cache"
    return base / "racetrack"


def require_usable(folder: Path) -> None:
    """Check that parts can be used in a folder with this path.

    Raises:
        UsageError: the path contains a character that services can't use.
    """
    if refused := REFUSED.search(str(folder)):
        raise UsageError(
            f"{str(folder)!r} contains {refused[0]!r}. Services can't use such a path. Name another"
            " folder, or move this checkout."
        )


def packages() -> Path:
    """Return the folder in which uv keeps unpacked packages during a set-up.

    Environments contain hard links to its files, so a package in several environments is on disk
    only once, even after this folder is removed.
    """
    return root() / "packages"


@contextmanager
def locked(folder: Path, say: Say) -> Iterator[int]:
    """Hold the set-up lock of `folder`, waiting for it if needed; yield the lock's file descriptor.

    The kernel releases the lock when the last process ends that has the file open.

    Raises:
        SetupError: the folder is not writable.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / "install.lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise SetupError(
            f"The cache folder {folder} is not writable ({error.strerror}). Make it writable, "
            "or point RACETRACK_CACHE at a folder that is."
        ) from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(lock, 32, 0).decode() or "unknown"
            say(f"another set-up is running in {folder} (started by pid {holder}): waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield lock
    finally:
        os.close(lock)


def clear_unfinished(parts: Path) -> list[str]:
    """Remove the unfinished parts of an interrupted set-up; return their names. Requires the lock.

    Raises:
        SetupError: an unfinished part can't be removed: a process may still be writing to it.
    """
    left = sorted(parts.glob(UNFINISHED + "*"))
    for path in left:
        if path.is_symlink():
            path.unlink()
        else:
            shutil.rmtree(path, ignore_errors=True)
        if path.exists():
            raise SetupError(
                f"{path}, left by an interrupted set-up, can't be removed: a process is still "
                "writing there, or the folder belongs to another user. Try again in a "
                "moment, or remove it yourself."
            )
    return sorted({path.name.removeprefix(UNFINISHED).removesuffix(SCRATCH) for path in left})


def size_mb(folder: Path) -> int:
    """Return the disk usage of the files under `folder`, in MB; files that vanish are ignored."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(where, name)).st_blocks * 512  # noqa: PTH118 (speed)
            except FileNotFoundError:
                continue
    return round(total / 1e6)
