"""Lifetime of a stack: it ends together with the harness, unless `./race up` leaves it running."""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from racetrack.clock import attempts, utc_now
from racetrack.config import REPO
from racetrack.errors import BusyError
from racetrack.machine_lock import private_folder
from racetrack.results.json_file import write_json
from racetrack.stack.contract import RunningStack, Say
from racetrack.stack.elsewhere import RUN_NAME

CLEARS_WITHIN_S = 60.0  # usually 3 s; longer on a busy machine
LOOK_EVERY_S = 0.05


class Watchdog:
    """Handle of a process that removes a stack when its harness is killed, even by SIGKILL.

    The watchdog process (`racetrack.stack.watchdog_process`) runs in its own session. It reads from
    a pipe whose only writing end belongs to the harness, so the kernel closes the pipe however the
    harness ends. A run that ends normally, or leaves its stack running, ends the watchdog first.
    The watchdog holds a lock for the stack's name while it lives, so that it can't remove services
    of the next run.

    PR_SET_PDEATHSIG is not enough: it does not affect grandchildren, containers and data, and the
    kernel sends the signal as soon as the thread ends that started the child.
    """

    def __init__(
        self,
        runtime: str,
        stack_name: str,
        clears_within_s: float = CLEARS_WITHIN_S,
    ) -> None:
        """`clears_within_s` limits how long this waits for the watchdog of a killed run."""
        self._runtime, self._stack_name = runtime, stack_name
        self._clears_within_s = clears_within_s
        self._process: subprocess.Popen[bytes] | None = None

    def wait_for_last(self, say: Say) -> None:
        """Wait until no watchdog of a killed run is removing a stack of this name.

        Raises:
            BusyError: the watchdog does not end.
        """
        if self._process is None:
            os.close(self._lock(say))

    def begin(
        self, run_folder: Path | None, say: Say, environment: Mapping[str, str] | None = None
    ) -> None:
        """Start the watchdog process, which records its actions in `run_folder`. `environment` has
        the variables that it needs to remove what the run created in services that the user
        provides.

        Raises:
            BusyError: see `wait_for_last`.
        """
        lock = self._lock(say)
        try:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "racetrack.stack.watchdog_process",
                    self._runtime,
                    self._stack_name,
                    *([str(run_folder.absolute())] if run_folder else []),
                ],
                # No other child inherits the writing end of this pipe: Python closes it in them.
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                cwd=REPO,
                pass_fds=[lock],
                env={**os.environ, **(environment or {})},
                # The watchdog must survive Ctrl-C, and `kill -9` of the harness's process group.
                start_new_session=True,
            )
            os.truncate(lock, 0)
            os.pwrite(lock, str(self._process.pid).encode(), 0)
        finally:
            os.close(lock)

    def dismiss(self) -> None:
        """End the watchdog process, after the stack was stopped or left running. Idempotent."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        if self._process.stdin:
            self._process.stdin.close()
        self._process = None

    def _lock(self, say: Say) -> int:
        """Acquire the lock and return its file descriptor.

        The kernel releases the lock when the last process ends that has the file open.
        """
        lock = os.open(
            private_folder() / f"watchdog-{self._stack_name}", os.O_RDWR | os.O_CREAT, mode=0o600
        )
        was_reported = False
        for _ in attempts(self._clears_within_s, LOOK_EVERY_S):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pid = os.pread(lock, 32, 0).decode() or "unknown"
            else:
                return lock
            if not was_reported:
                say("Waiting for the watchdog of a run that was killed: it is still cleaning up.")
                was_reported = True
        os.close(lock)
        raise BusyError(
            f"The watchdog of a run that was killed (pid {pid}) has not cleaned up within"
            f" {self._clears_within_s:.0f} s. End it (`kill -9 {pid}`) and try again: the"
            " next run clears what is left."
        )


class UpFile:
    """File `up.json` in a stack's data folder, which records that the stack was left running."""

    def __init__(self, root: Path) -> None:
        self._file = root / "up.json"

    def write(self, runtime: str, engine: str, workload: str, services: Sequence[str]) -> None:
        """Record that the stack keeps running for this engine and workload with these services."""
        what = {"runtime": runtime, "engine": engine, "workload": workload}
        more = {"since": utc_now(), "expected": sorted(services), "run_name": RUN_NAME}
        write_json(self._file, {**what, **more})

    def runtime(self) -> str | None:
        """Return the runtime of the recorded stack; None if there is no record."""
        return self._recorded("runtime")

    def run_name(self) -> str:
        """Return the name (RUN_NAME, see elsewhere.py) with which the names of all objects begin
        that the recorded run created in services that the user provides. Empty if there is no
        record."""
        return self._recorded("run_name") or ""

    def _recorded(self, name: str) -> str | None:
        return str(json.loads(self._file.read_text())[name]) if self._file.exists() else None

    def read(self, services: Mapping[str, Sequence[int]]) -> RunningStack | None:
        """Return the recorded stack if any service is alive; `services` are the live ones."""
        if not services or not self._file.exists():
            return None
        recorded = json.loads(self._file.read_text())
        recorded.pop("run_name", None)
        return RunningStack(services=services, **recorded)


def require_not_running(up: RunningStack | None) -> None:
    """Check that no stack of this name is up.

    Raises:
        BusyError: such a stack is up; it keeps running.
    """
    if up:
        raise BusyError(
            f"A stack is up since {up.since} (`./race up {up.engine}`)."
            " Take it down with `./race down`, or set another STACK_NAME and other ports."
        )
