"""The control socket in a process of its own, so that whatever clients do, the loop that makes the
load serves none of them.

The two talk over a socket, in packets of JSON: the front asks what its clients ask, and the
generator answers. `Front` is the generator's side; the rest is the process.
"""

from __future__ import annotations

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
# Statistics this old are new enough for whoever asks: a client that does nothing but ask costs the
# generator one line every few milliseconds.
STATS_FOR_S = 0.005
MAX_PACKET_BYTES = 1 << 20
STOP_WITHIN_S = 1.0


class Front:
    """Keeps the process, answers its questions, and replaces it when it dies.

    The process is started at once, since that takes a moment, and let in by `open`.
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
        """Answer from now on. Until then clients are not greeted, and their connections wait."""
        channel = self._channel
        if channel is not None:
            receive = self._receive
            self._selector.register(channel, selectors.EVENT_READ, lambda _mask: receive(channel))

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> None:
        """Replace the process if it has died. To be called every now and then."""
        if self._process.poll() is not None:
            self._log(
                f"The process {self.pid} of the control port died (exit code "
                f"{self._process.returncode}); its clients are gone. Starting another one."
            )
            self._close_channel()
            self._start()
            self.open()

    def stop(self) -> None:
        """Stop listening, and end every conversation."""
        self._listener.close()
        self._close_channel()  # the process ends when its generator is gone
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
            [sys.executable, "-m", "loadgen.front", *map(str, handed_on)],
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
            self._close_channel()  # it has died, which `poll` will see
            return
        question = json.loads(packet)
        getattr(self, "_on_" + question.pop("do"))(**question)

    def _on_rates(self) -> None:
        told = self._load.rates()
        milli = {key: self._load.get_rate_milli(key) for key in told}
        self._send(rates={"told": told, "milli": milli})

    def _on_set(self, key: str, milli: int) -> None:
        self._load.set_rate_milli(key, milli)
        self._send(set=key)

    def _on_stats(self) -> None:
        self._send(stats=self._load.stats_line())

    def _on_flush(self, token: int) -> None:
        asked_by = self._channel

        def done(line: str) -> None:
            if self._channel is asked_by:  # else whoever asked is gone
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
            return  # it has died, which `poll` will see

    def _close_channel(self) -> None:
        if self._channel is not None:
            if self._channel in self._selector.get_map():
                self._selector.unregister(self._channel)
            self._channel.close()
            self._channel = None


class GeneratorGone(Exception):
    """The generator has ended, so this process does too."""


class RemoteLoad(Load):
    """The generator, seen from the process of the control port."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._flushes: dict[int, Callable[[str], None]] = {}
        self._flushed: list[tuple[Callable[[str], None], str]] = []
        self._flush_count = 0
        self._line, self._line_s = "", float("-inf")
        rates = self._ask("rates", do="rates")
        self._told: dict[str, str] = rates["told"]
        self._milli: dict[str, int] = rates["milli"]

    def rates(self) -> dict[str, str]:
        return self._told

    def get_rate_milli(self, key: str) -> int:
        return self._milli[key]

    def set_rate_milli(self, key: str, milli_per_s: int) -> None:
        self._ask("set", do="set", key=key, milli=milli_per_s)
        self._milli[key] = milli_per_s
        self._line_s = float("-inf")

    def stats_line(self) -> str:
        if time.monotonic() > self._line_s + STATS_FOR_S:
            self._line, self._line_s = self._ask("stats", do="stats"), time.monotonic()
        return self._line

    def flush(self, done: Callable[[str], None]) -> None:
        self._flush_count += 1
        self._flushes[self._flush_count] = done
        self._tell(do="flush", token=self._flush_count)

    def log(self, text: str) -> None:
        """A line for the generator's log."""
        self._tell(do="log", text=text)

    def listen(self) -> None:
        """Take a packet that comes unasked, if there is one: while a question was answered, it may
        have been taken.
        """
        try:
            self._take(self._receive(socket.MSG_DONTWAIT))
        except BlockingIOError:
            return

    def deliver(self) -> None:
        """Answer the flushes that are done."""
        flushed, self._flushed = self._flushed, []
        for done, line in flushed:
            self._line_s = float("-inf")
            done(line)

    def _ask(self, answer: str, **question: Any) -> Any:
        """Ask, and wait for the answer."""
        self._tell(**question)
        while True:
            packet = self._receive()
            if answer in packet:
                return packet[answer]
            self._take(packet)

    def _take(self, packet: dict[str, Any]) -> None:
        """What is not the answer to a question is word of a flush. Clients hear of it later, not
        in the middle of another one's turn.
        """
        self._flushed.append((self._flushes.pop(packet["flushed"]), packet["line"]))

    def _tell(self, **packet: Any) -> None:
        try:
            self._channel.send(json.dumps(packet).encode())
        except ConnectionError as error:
            raise GeneratorGone from error

    def _receive(self, flags: int = 0) -> dict[str, Any]:
        try:
            packet = self._channel.recv(MAX_PACKET_BYTES, flags)
        except ConnectionError as error:
            raise GeneratorGone from error
        if not packet:
            raise GeneratorGone
        found: dict[str, Any] = json.loads(packet)
        return found


def serve(channel: socket.socket, listener: socket.socket) -> None:
    """Serve clients until the generator is gone."""
    selector = selectors.DefaultSelector()
    load = RemoteLoad(channel)
    selector.register(channel, selectors.EVENT_READ, lambda _mask: load.listen())
    server = ControlServer(listener, selector, load, load.log)
    next_broadcast_s = time.monotonic()
    while True:
        load.deliver()
        for key, mask in selector.select(max(0.0, next_broadcast_s - time.monotonic())):
            if selector.get_map().get(key.fd) is not None:  # an earlier callback may have closed it
                key.data(mask)
        now_s = time.monotonic()
        if now_s >= next_broadcast_s:
            # On a grid, but never twice to make up for a late one.
            next_broadcast_s += BROADCAST_EVERY_S * (
                1 + (now_s - next_broadcast_s) // BROADCAST_EVERY_S
            )
            # Also where nobody watches: this process greets nobody while its generator hangs.
            load.stats_line()
            server.broadcast()


def main(argv: list[str]) -> int:
    """`python -m loadgen.front CHANNEL_FD LISTENER_FD`. Exit code 0 when the generator is gone."""
    # Ctrl-C reaches the whole process group; the generator decides when this process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    channel, listener = (socket.socket(fileno=int(fd)) for fd in argv)
    try:
        serve(channel, listener)
    except GeneratorGone:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
