"""One run at a time on a machine: two would measure each other."""

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from racetrack.clock import utc_now
from racetrack.errors import BusyError


def lock_folder() -> Path:
    """A private folder of this user that outlives no reboot."""
    folder = Path(tempfile.gettempdir()) / f"racetrack-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise BusyError(f"{folder} belongs to another user. Remove it, or set TMPDIR.")
    return folder


@contextmanager
def machine_lock() -> Iterator[None]:
    """Hold the machine for one run; the kernel lets go of it however the run ends.

    Raises:
        BusyError: another run holds it; the message says which.
    """
    lock = FileLock(lock_folder() / "lock")
    holder = lock_folder() / "holder.json"
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise BusyError(_who_holds(holder)) from None
    try:
        holder.write_text(
            json.dumps({"pid": os.getpid(), "command": _command(), "since": utc_now()})
        )
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def _who_holds(holder: Path) -> str:
    try:
        who = json.loads(holder.read_text())
    except (FileNotFoundError, json.JSONDecodeError):  # it is just starting, or just ending
        return "Another Racetrack run has just begun or is just ending on this machine. Try again."
    return (
        f"Another run holds this machine: pid {who['pid']} ({who['command']}), since"
        f" {who['since']}. Two at once would measure each other. Wait for it, or stop it with"
        f" `kill {who['pid']}`."
    )


def _command() -> str:
    return " ".join(["racetrack", *sys.argv[1:]])
