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
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from racetrack import environment
from racetrack.config import REPO, Settings, revealed
from racetrack.engines.dh.subscriber import Failed, Job, Update, from_line
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


@dataclass(frozen=True)
class _Client:
    """A process of a client, and the file with its error output."""

    process: "subprocess.Popen[bytes]"
    errors: IO[bytes]

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def send(self, job: Job) -> None:
        """Give the client its job."""
        with suppress(BrokenPipeError):  # it has ended, and `errors` has the reason
            _pipe(self.process.stdin).write(job.as_line())

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        with self.process:
            self.errors.close()

    def why_ended(self) -> str:
        """Return the end of the error output."""
        status = self.process.wait()
        self.errors.seek(0)
        text = self.errors.read().decode(errors="replace").strip()[-ERROR_CHARACTERS:]
        return text or f"its client ended with exit code {status}"


class Subscribers:
    """The clients of one engine. A client whose connection is lost waits for its next job, so that
    it connects again without delay when the engine is back."""

    def __init__(self, can_subscribe: Callable[[], bool] = can_subscribe) -> None:
        """Create it. If the clients can't subscribe, they read tables repeatedly."""
        self._can_subscribe = can_subscribe
        self._clients: list[_Client] = []
        # Clients without a job, by whether they followed traced views.
        self._waiting: dict[bool, _Client] = {}

    @property
    def pids(self) -> list[int]:
        """Ids of the live processes."""
        return [client.process.pid for client in (*self._clients,) if client.is_alive]

    def follow(
        self, settings: Settings, namespace: str, stop: threading.Event, traced: Sequence[str] = ()
    ) -> Iterator[Update]:
        """Yield the updates that a client receives until `stop` is set; see `Job`.

        Raises:
            RacetrackError: the client can't follow the views any more.
        """
        job = Job(revealed(settings), namespace, traced, is_polled=not self._can_subscribe())
        client = self._client(settings.stack_name, is_traced=bool(traced))
        is_kept = False
        try:
            client.send(job)
            for line in _lines(client.process, stop):
                update = from_line(line)
                if isinstance(update, Failed):
                    is_kept = True
                    raise RacetrackError(update.why)
                yield update
            if not stop.is_set():
                raise RacetrackError(client.why_ended())
        finally:
            if not is_kept or self._waiting.setdefault(bool(traced), client) is not client:
                client.end()

    def _client(self, stack_name: str, *, is_traced: bool) -> _Client:
        """Return the client that waits for a job, or a new one."""
        waiting = self._waiting.pop(is_traced, None)
        if waiting and waiting.is_alive:
            return waiting
        errors = tempfile.TemporaryFile()  # noqa: SIM115  # `_Client.end` closes it
        process = subprocess.Popen(
            [sys.executable, "-m", "racetrack.engines.dh.subscriber"],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=REPO,
            env=environment.of_program(mark_command(stack_name, CLIENT)),
            start_new_session=True,  # Ctrl-C reaches only the harness, which ends the client
        )
        client = _Client(process, errors)
        self._clients = [*(other for other in self._clients if other.is_alive), client]
        return client


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


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe  # noqa: S101  # the process was started with this pipe
    return pipe
