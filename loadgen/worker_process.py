"""Handle of one worker process: start it, exchange messages without blocking, and collect its exit
code."""

from __future__ import annotations

import json
import os
import selectors
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable

# A worker that ran for this long is restarted without a delay. A worker that died earlier is
# restarted after a delay that doubles each time.
STEADY_S = 10.0
FIRST_BACKOFF_S, MAX_BACKOFF_S = 0.2, 5.0
# Modules that are run as a worker, with their first arguments.
WORKER = ("loadgen.worker",)
REMOTE_WORKER = ("loadgen.remote",)  # followed by the address of a host of workers


class WorkerProcess:
    """The process of worker `number`, which can be started again after its end.

    `on_message(worker, message)` is called with each report, from within the selector. `program` is
    the module to run, with its first arguments."""

    def __init__(
        self,
        number: int,
        selector: selectors.BaseSelector,
        on_message: Callable[[WorkerProcess, dict[str, Any]], None],
        program: Sequence[str] = WORKER,
    ) -> None:
        self.number = number
        self.ready = False
        self.stopping = False
        self.pid = 0
        self._selector, self._on_message, self._program = selector, on_message, program
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._outbox: deque[bytes] = deque()
        self._started_s = 0.0
        self.backoff_s = 0.0
        self._not_before_s = 0.0

    @property
    def empty(self) -> bool:
        """True if there is no process, not even an exited one."""
        return self._process is None

    @property
    def alive(self) -> bool:
        """True if the process is running."""
        return self._process is not None and self._process.poll() is None

    @property
    def working(self) -> bool:
        """True if the worker accepts orders and is not stopping."""
        return self.ready and not self.stopping

    @property
    def may_start(self) -> bool:
        """True if there is no process and the restart delay is over."""
        return self._process is None and time.monotonic() >= self._not_before_s

    def start(self, counters_fd: int, workers: int, offset_ns: int) -> None:
        """Start a worker; it reports when it is ready."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        arguments = (theirs.fileno(), counters_fd, self.number, workers, offset_ns)
        package_parent = str(Path(__file__).resolve().parent.parent)
        path = [package_parent, *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", *self._program, *map(str, arguments)],
            pass_fds=(theirs.fileno(), counters_fd),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        self._channel, self.pid, self._started_s = ours, self._process.pid, time.monotonic()
        self._selector.register(ours, selectors.EVENT_READ, lambda _mask: self._receive())

    def send(self, **order: Any) -> None:
        """Send an order immediately, or as soon as the socket accepts it."""
        self._outbox.append(json.dumps(order).encode())
        self.push()

    def push(self) -> None:
        """Send queued orders as far as possible."""
        try:
            while self._outbox and self._channel is not None:
                self._channel.send(self._outbox[0])
                self._outbox.popleft()
        except BlockingIOError:
            return  # the worker hangs; the next call tries again
        except ConnectionError:
            self._outbox.clear()  # the worker died; `clean_up` follows

    def stop(self, within_s: float) -> None:
        """Send the order to flush and exit."""
        self.stopping = True
        self.send(do="stop", within_s=within_s)

    def kill(self) -> None:
        """Kill the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def clean_up(self) -> int:
        """Clean up after a process that has ended; return its exit code, negative for a signal. A
        successor may start after `backoff_s`."""
        if self._process is None:
            raise ValueError(f"worker {self.number} has not been started")
        code = self._process.wait()
        self._receive()  # its last reports
        self._close_channel()
        self._outbox.clear()
        lived_s = time.monotonic() - self._started_s
        if lived_s > STEADY_S or self.stopping:
            self.backoff_s = 0.0
        else:
            self.backoff_s = min(max(self.backoff_s * 2, FIRST_BACKOFF_S), MAX_BACKOFF_S)
        self._not_before_s = time.monotonic() + self.backoff_s
        self._process, self.ready, self.stopping = None, False, False
        return code

    def _receive(self) -> None:
        while self._channel is not None:
            try:
                packet = self._channel.recv(1 << 16)
            except BlockingIOError:
                return
            except ConnectionError:
                packet = b""
            if packet:
                self._on_message(self, json.loads(packet))
            else:  # the worker has ended or is about to
                self._close_channel()

    def _close_channel(self) -> None:
        if self._channel is not None:
            self._selector.unregister(self._channel)
            self._channel.close()
            self._channel = None
