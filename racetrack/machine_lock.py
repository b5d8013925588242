"""A lock that allows one run at a time on a machine: two would disturb each other's measurements.

The lock is a file that every user of the machine can lock. Its path depends only on the environment
variable MACHINE_LOCK. Tests run two stacks side by side by giving each its own lock file.
"""

import fcntl
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from racetrack.clock import utc_now
from racetrack.errors import BusyError, UsageError

VARIABLE = "MACHINE_LOCK"
# A fixed path: tempfile.gettempdir() depends on TMPDIR.
DEFAULT = "/tmp/racetrack.lock"  # noqa: S108
HOLDER_MAX_BYTES = 4096


def private_folder() -> Path:
    """Return this user's private folder for temporary files; create it if it is missing.

    Raises:
        BusyError: the folder belongs to another user.
    """
    folder = Path(tempfile.gettempdir()) / f"racetrack-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise BusyError(f"{folder} belongs to another user. Remove it, or set TMPDIR.")
    return folder


@contextmanager
def machine_lock() -> Iterator[None]:
    """Hold the machine for one run; the kernel releases it however the run ends.

    Raises:
        BusyError: another run holds the lock; the message names that run.
        UsageError: the lock file can't be used.
    """
    path = os.environ.get(VARIABLE) or DEFAULT
    lock = _acquire(path)
    try:
        holder = {"pid": os.getpid(), "command": _command(), "since": utc_now()}
        _write_holder(lock, json.dumps(holder).encode())
        yield
    finally:
        _write_holder(lock, b"")
        os.close(lock)


def _acquire(path: str) -> int:
    """Open and lock the file; return its descriptor."""
    while True:
        lock = _open(path)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = _describe_holder(lock)
            os.close(lock)
            raise BusyError(message) from None
        if _is_still_at(path, lock):
            return lock
        os.close(lock)  # the file was removed between opening and locking


def _open(path: str) -> int:
    """Open the lock file, whoever owns it; create it if it is missing.

    Uses O_CREAT only if the file does not exist: with that flag Linux refuses to open another
    user's file in a folder such as /tmp (fs.protected_regular).
    """
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK
    while True:
        try:
            lock = os.open(path, flags)
        except FileNotFoundError:
            try:
                lock = os.open(path, flags | os.O_CREAT | os.O_EXCL, mode=0o666)
            except FileExistsError:
                continue  # another process has just created it
            except OSError as error:
                raise _unusable(path, error.strerror) from None
            os.fchmod(lock, 0o666)  # whatever the umask: other users lock it too
        except OSError as error:
            raise _unusable(path, error.strerror) from None
        if stat.S_ISREG(os.fstat(lock).st_mode):
            return lock
        os.close(lock)
        raise _unusable(path, "not a regular file")


def _unusable(path: str, why: str | None) -> UsageError:
    return UsageError(
        f"{path} can't be used as the lock that keeps two runs apart: {why}. Remove it, or name"
        f" another file in the environment variable {VARIABLE}."
    )


def _is_still_at(path: str, lock: int) -> bool:
    try:
        return os.path.samestat(Path(path).lstat(), os.fstat(lock))
    except FileNotFoundError:
        return False


def _write_holder(lock: int, holder: bytes) -> None:
    """Write the holder into the lock file. If the disk is full, only warn: the lock still works."""
    os.ftruncate(lock, 0)
    try:
        os.pwrite(lock, holder[:HOLDER_MAX_BYTES], 0)
    except OSError as error:
        print(f"warning: {VARIABLE}: {error.strerror}", file=sys.stderr)


def _describe_holder(lock: int) -> str:
    try:
        holder = json.loads(os.pread(lock, HOLDER_MAX_BYTES, 0))
        pid, command, since = int(holder["pid"]), str(holder["command"]), str(holder["since"])
    except (ValueError, KeyError, TypeError):  # not written yet, or erased already
        return "Another Racetrack run has just begun or is just ending on this machine. Try again."
    # Any user can write to the file, so control characters in it must not reach the terminal.
    command, since = _printable(command), _printable(since)
    return (
        f"Another run holds this machine: pid {pid} ({command}), since {since}. Two runs at once"
        " would disturb each other's measurements. Wait for that run, or stop it with"
        f" `kill {pid}`."
    )


def _command() -> str:
    return " ".join(["racetrack", *sys.argv[1:]])[:1000]


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in text)
