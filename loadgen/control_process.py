"""Control server in a separate process, so that clients never delay the load.

The control process sends the requests of clients to the generator's main process, which answers
them; both are JSON packets over a socket. Only `ControlProcess` runs in the main process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable

from loadgen.commands import Load
from loadgen.control import ControlServer

BROADCAST_EVERY_S = 0.1
# Statistics are cached this long, so that the generator formats them at most once per interval.
STATS_FOR_S = 0.005
MAX_PACKET_BYTES = 1 << 20
STOP_WITHIN_S = 1.0


class ControlProcess:
    """Starts the control process, answers its requests, and replaces it when it dies.

    The constructor already starts the process, because that takes time; `open` begins to answer.
    """

    def __init__(
        self,
        listener: socket.socket,
        selector: selectors.BaseSelector,
        load: Load,
        log: Callable[[str], None],
    ) -> None:
        self._listener, self._selector, self._load, self._log = listener, selector, load, log
        self._channel: socket.socket | None = None
        self._start()

    def open(self) -> None:
        """Begin to answer requests. Clients that connected earlier have been waiting."""
        channel = self._channel
        if channel is not None:
            receive = self._receive
            self._selector.register(channel, selectors.EVENT_READ, lambda _mask: receive(channel))

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> None:
        """Replace the process if it has died. Call regularly."""
        if self._process.poll() is not None:
            self._log(
                f"The process {self.pid} of the control port died (exit code "
                f"{self._process.returncode}); its clients are gone. Starting another one."
            )
            self._close_channel()
            self._start()
            self.open()

    def stop(self) -> None:
        """Stop listening, and end every connection."""
        self._listener.close()
        self._close_channel()  # this ends the process
        try:
            self._process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        handed_on = (theirs.fileno(), self._listener.fileno())
        package_parent = str(Path(__file__).resolve().parent.parent)
        path = [package_parent, *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "loadgen.control_process", *map(str, handed_on)],
            pass_fds=handed_on,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        self._channel = ours

    def _receive(self, channel: socket.socket) -> None:
        try:
            packet = channel.recv(MAX_PACKET_BYTES)
        except BlockingIOError:
            return
        except ConnectionError:
            packet = b""
        if not packet:
            self._close_channel()  # the process has died; `poll` replaces it
            return
        request = json.loads(packet)
        getattr(self, "_on_" + request.pop("do"))(**request)

    def _on_rates(self) -> None:
        help_texts = self._load.rates()
        milli = {key: self._load.get_rate_milli(key) for key in help_texts}
        self._send(rates={"help": help_texts, "milli": milli})

    def _on_set(self, key: str, milli: int) -> None:
        self._load.set_rate_milli(key, milli)
        self._send(set=key)

    def _on_stats(self) -> None:
        self._send(stats=self._load.stats_line())

    def _on_flush(self, token: int) -> None:
        channel = self._channel

        def done(line: str) -> None:
            if self._channel is channel:  # the process may have been replaced
                self._send(flushed=token, line=line)

        self._load.flush(done)

    def _on_log(self, text: str) -> None:
        self._log(text)

    def _send(self, **answer: Any) -> None:
        try:
            if self._channel is not None:
                self._channel.send(json.dumps(answer).encode())
        except BlockingIOError:
            self._log(f"The process {self.pid} of the control port hangs; killing it.")
            self._process.kill()
        except ConnectionError:
            return  # the process has died; `poll` replaces it

    def _close_channel(self) -> None:
        if self._channel is not None:
            if self._channel in self._selector.get_map():
                self._selector.unregister(self._channel)
            self._channel.close()
            self._channel = None


class GeneratorGone(ConnectionError):
    """The generator's main process has ended, so this process must end too."""


class RemoteLoad(Load):
    """The generator, as seen from the control process."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._flushes: dict[int, Callable[[str], None]] = {}
        self._flush_count = 0
        self._line, self._line_s = "", float("-inf")
        rates = self._request("rates", do="rates")
        self._help: dict[str, str] = rates["help"]
        self._milli: dict[str, int] = rates["milli"]

    def rates(self) -> dict[str, str]:
        return self._help

    def get_rate_milli(self, key: str) -> int:
        return self._milli[key]

    def set_rate_milli(self, key: str, milli_per_s: int) -> None:
        self._request("set", do="set", key=key, milli=milli_per_s)
        self._milli[key] = milli_per_s
        self._line_s = float("-inf")

    def stats_line(self) -> str:
        if time.monotonic() > self._line_s + STATS_FOR_S:
            self._line, self._line_s = self._request("stats", do="stats"), time.monotonic()
        return self._line

    def flush(self, done: Callable[[str], None]) -> None:
        self._flush_count += 1
        self._flushes[self._flush_count] = done
        self._send(do="flush", token=self._flush_count)

    def log(self, text: str) -> None:
        """Write a line to the generator's log."""
        self._send(do="log", text=text)

    def receive(self) -> None:
        """Handle a completed flush, if its packet has arrived."""
        try:
            self._complete_flush(self._read(socket.MSG_DONTWAIT))
        except BlockingIOError:
            return  # `_request` has already read the packet

    def _request(self, answer: str, **request: Any) -> Any:
        """Send a request and wait for its answer."""
        self._send(**request)
        while True:
            packet = self._read()
            if answer in packet:
                return packet[answer]
            self._complete_flush(packet)

    def _complete_flush(self, packet: dict[str, Any]) -> None:
        """Report a completed flush to its client. All other packets are answers to requests."""
        self._line_s = float("-inf")
        self._flushes.pop(packet["flushed"])(packet["line"])

    def _send(self, **packet: Any) -> None:
        try:
            self._channel.send(json.dumps(packet).encode())
        except ConnectionError as error:
            raise GeneratorGone from error

    def _read(self, flags: int = 0) -> dict[str, Any]:
        try:
            packet = self._channel.recv(MAX_PACKET_BYTES, flags)
        except ConnectionError as error:
            raise GeneratorGone from error
        if not packet:
            raise GeneratorGone
        found: dict[str, Any] = json.loads(packet)
        return found


async def serve(channel: socket.socket, listener: socket.socket) -> None:
    """Serve clients until the generator is gone."""
    loop = asyncio.get_running_loop()
    load = RemoteLoad(channel)
    server = ControlServer(load, load.log)
    gone: asyncio.Future[None] = loop.create_future()

    def receive() -> None:
        try:
            load.receive()
        except GeneratorGone:
            loop.remove_reader(channel)
            gone.set_result(None)

    loop.add_reader(channel, receive)
    await server.start(listener)
    next_broadcast_s = time.monotonic()
    while not gone.done():
        # Needed even without watchers: it blocks while the generator hangs, so that clients that
        # connect then are not greeted.
        load.stats_line()
        server.broadcast()
        # Keep the interval, but skip broadcasts that are late by more than one interval.
        late_s = time.monotonic() - next_broadcast_s
        next_broadcast_s += BROADCAST_EVERY_S * (1 + late_s // BROADCAST_EVERY_S)
        await asyncio.wait({gone}, timeout=max(0.0, next_broadcast_s - time.monotonic()))
    server.close()


def main(argv: list[str]) -> int:
    """Run `python -m loadgen.control_process CHANNEL_FD LISTENER_FD` until the generator is gone;
    return exit code 0."""
    # Ctrl-C reaches the whole process group; the generator decides when this process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    channel, listener = (socket.socket(fileno=int(fd)) for fd in argv)
    with contextlib.suppress(GeneratorGone):
        asyncio.run(serve(channel, listener))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
