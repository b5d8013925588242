"""Host of workers: a pod of the generator that runs workers for the pool in the first pod.

It listens at the address of the control port, and greets clients as the control port does. Each
connection (remote.py) runs one worker: the host forwards the pool's orders to it, and sends its
reports, and its counters whenever they have changed. When the connection ends, so does the worker.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import threading
from collections.abc import Sequence
from typing import Any, Callable, NoReturn

from loadgen import counters as c
from loadgen.clock import Clock
from loadgen.config import Config
from loadgen.control import GREETING, listen
from loadgen.remote import Wire
from loadgen.worker_process import WORKER, WorkerProcess

SEND_EVERY_S = 0.02
NO_COMMANDS = "Error: this pod only runs workers. Send commands to the first pod of the generator."


class _Refused(Exception):
    """The client is no pool."""


class _Relay:
    """One connection of a pool, and its worker."""

    def __init__(self, config: Config, wire: Wire, program: Sequence[str]) -> None:
        self._wire = wire
        start = self._greet()
        number, workers = start["start"], start["workers"]
        self._offset_ns, self._workers = start["offset_ns"], workers
        self._fd = c.create_fd(config.partitions, workers)
        self._counters = c.Counters(self._fd, config.partitions, workers)
        own = range(self._counters.worker(number), self._counters.worker(number + 1))
        self._indices = (*range(self._counters.partition(config.partitions)), *own)
        self._sent = dict.fromkeys(self._indices, 0)
        self._store(start["words"])
        self._selector = selectors.DefaultSelector()
        self._worker = WorkerProcess(number, self._selector, self._on_report, program)

    def _greet(self) -> dict[str, Any]:
        """Greet the client, and answer its requests for the time until it starts a worker. Return
        the message with which it starts the worker."""
        self._wire.send_line(GREETING)
        while True:
            try:
                message = json.loads(self._wire.read_line())
            except ValueError:
                message = None
            if not isinstance(message, dict) or not message.keys() & {"clock", "start"}:
                self._wire.send_line(NO_COMMANDS)
                raise _Refused
            if "start" in message:
                return message
            self._wire.send(clock_ns=Clock(0).now_ns())

    def run(self) -> None:
        """Run the worker until it ends.

        Raises:
            OSError: the connection has ended.
        """
        try:
            self._worker.start(self._fd, self._workers, self._offset_ns)
            self._obey(self._wire.pending())
            self._selector.register(
                self._wire, selectors.EVENT_READ, lambda _mask: self._obey(self._wire.read())
            )
            while self._worker.alive:
                for key, mask in self._selector.select(SEND_EVERY_S):
                    key.data(mask)
                self._worker.push()
                self._send_changes()
            code = self._worker.clean_up()
            self._send_changes()
            self._wire.send(exit=code)
        finally:
            self._worker.kill()
            self._selector.close()
            os.close(self._fd)

    def _obey(self, messages: Sequence[dict[str, Any]]) -> None:
        for message in messages:
            self._store(message["words"])
            self._worker.send(**message["order"])

    def _on_report(self, _worker: WorkerProcess, report: dict[str, Any]) -> None:
        self._send_changes()  # first, because the report may be that all messages were sent
        self._wire.send(report=report)

    def _store(self, words: Sequence[tuple[int, int]]) -> None:
        for index, value in words:
            self._counters.word[index] = self._sent[index] = value

    def _send_changes(self) -> None:
        word, sent = self._counters.word, self._sent
        changed = [
            (index, int(word[index])) for index in self._indices if word[index] != sent[index]
        ]
        if changed:
            sent.update(changed)
            self._wire.send(words=changed)


def serve(config: Config, log: Callable[[str], None], program: Sequence[str] = WORKER) -> NoReturn:
    """Run workers for pools that connect, until this process ends. `program` is the worker: a
    module and its first arguments."""
    listener = listen(config.command_host, config.command_port)
    log("Running workers for connections to {}:{}".format(*listener.getsockname()[:2]))
    while True:
        connection, (client, *_) = listener.accept()
        arguments = (config, connection, client, log, program)
        threading.Thread(target=_serve_one, args=arguments, daemon=True).start()


def _serve_one(
    config: Config,
    connection: socket.socket,
    client: str,
    log: Callable[[str], None],
    program: Sequence[str],
) -> None:
    with connection:
        try:
            relay = _Relay(config, Wire(connection), program)
        except (OSError, _Refused):
            return  # the client was a health check or a user
        log(f"Starting a worker for {client}")
        try:
            relay.run()
            log(f"The worker for {client} has ended")
        except OSError as error:
            log(f"The connection to {client} has ended ({error}); its worker was killed")
