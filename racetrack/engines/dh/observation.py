"""Follows views of a Deephaven by clients in processes of their own (`subscriber.py`)."""

import functools
import math
import os
import re
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO

from racetrack import environment
from racetrack.config import REPO, Settings, revealed
from racetrack.engines.dh.subscriber import Job, Update, from_line
from racetrack.errors import RacetrackError
from racetrack.stack.processes import mark_command

CLIENT = "client"
LOOK_EVERY_S = 0.2
END_WITHIN_S = 2.0
CHUNK_BYTES = 1 << 16
ERROR_CHARACTERS = 2_000


# A client gets only the id of an error in the server; the server's log has its stack trace.
_LOGGED = re.compile(r"Details Logged w/ID '([\w-]+)'")
_CAUSE = re.compile(r"^Caused by: (.+)$", re.MULTILINE)
_NEXT_LINE = re.compile(r"^\d{4}-\d\d-\d\dT", re.MULTILINE)


def with_cause(error: str, log: str) -> str:
    """Return the error of a client with its cause in the log of the server, if it is there."""
    if not (logged := _LOGGED.search(error)):
        return error
    _, _, trace = log.partition(f"Internal Error '{logged[1]}' ")
    trace = _NEXT_LINE.split(trace, maxsplit=1)[0]
    cause = (_CAUSE.findall(trace) or trace.splitlines() or [logged[0]])[-1]
    return f"{error[: logged.start()]}{cause}"


@functools.cache
def can_subscribe() -> bool:
    """Return whether the ticking client can be used. It is imported by another process, because
    this one does not need it."""
    program = "import pydeephaven_ticking.table_listener"
    command = [sys.executable, "-c", program]
    environ = environment.of_program({})
    return subprocess.run(command, env=environ, capture_output=True, check=False).returncode == 0


class Subscribers:
    """Starts the clients, and knows those that run."""

    def __init__(self, can_subscribe: Callable[[], bool] = can_subscribe) -> None:
        """Create it. If the clients can't subscribe, they read tables repeatedly."""
        self._can_subscribe = can_subscribe
        self._running: set[subprocess.Popen[bytes]] = set()

    @property
    def pids(self) -> list[int]:
        """Ids of the live processes."""
        return sorted(each.pid for each in self._running.copy() if each.poll() is None)

    def follow(
        self, settings: Settings, namespace: str, stop: threading.Event, traced: Sequence[str] = ()
    ) -> Iterator[Update]:
        """Yield the updates that a client receives until `stop` is set; see `Job`.

        Raises:
            RacetrackError: the client can't follow the views any more.
        """
        job = Job(revealed(settings), namespace, traced, is_polled=not self._can_subscribe())
        with (
            tempfile.TemporaryFile() as errors,
            self._started(job, settings.stack_name, errors) as process,
        ):
            for line in _lines(process, stop):
                yield from_line(line)
            if not stop.is_set():
                process.wait(END_WITHIN_S)
                errors.seek(0)
                why = errors.read().decode(errors="replace").strip()[-ERROR_CHARACTERS:]
                raise RacetrackError(why or f"its client ended with {process.returncode}")

    @contextmanager
    def _started(
        self, job: Job, stack_name: str, errors: IO[bytes]
    ) -> Iterator[subprocess.Popen[bytes]]:
        with subprocess.Popen(
            [sys.executable, "-m", "racetrack.engines.dh.subscriber"],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=REPO,
            env=environment.of_program(mark_command(stack_name, CLIENT)),
            start_new_session=True,  # Ctrl-C reaches only the harness, which ends the client
        ) as process:
            self._running.add(process)
            try:
                with suppress(BrokenPipeError):  # it has ended, and `errors` has the reason
                    _pipe(process.stdin).write(job.as_line())
                yield process
            finally:
                process.kill()
                self._running.discard(process)


def _lines(process: "subprocess.Popen[bytes]", stop: threading.Event) -> Iterator[bytes]:
    """Yield the lines that a client writes until it ends. Once `stop` is set, it has END_WITHIN_S
    to end."""
    rest, output, give_up_s = b"", _pipe(process.stdout).fileno(), math.inf
    while time.monotonic() < give_up_s:
        if stop.is_set() and give_up_s == math.inf:
            _pipe(process.stdin).close()
            give_up_s = time.monotonic() + END_WITHIN_S
        if not select.select([output], [], [], LOOK_EVERY_S)[0]:
            continue
        received = os.read(output, CHUNK_BYTES)
        if not received:
            return
        *lines, rest = (rest + received).split(b"\n")
        yield from lines


def _pipe(of: IO[bytes] | None) -> IO[bytes]:
    assert of  # noqa: S101  # the process was started with this pipe
    return of
