"""Workers in other pods: a process of the pool that represents a worker elsewhere.

    python -m loadgen.remote HOST:PORT CONTROL_FD COUNTERS_FD NUMBER WORKERS CLOCK_OFFSET_NS

The pool starts it in place of `loadgen.worker`. It connects to a host of workers (host.py) and
forwards orders to the worker there, and the worker's reports and counters to the pool. The worker
uses this machine's clock, so that all pods follow the schedule by the same clock. The exit code is
the worker's, or 4 if the connection failed.
"""

from __future__ import annotations

import json
import selectors
import signal
import socket
import sys
from typing import Any

from loadgen import config as settings
from loadgen import counters as c
from loadgen.clock import Clock
from loadgen.control import GREETING
from loadgen.control_link import ControlLink

EXIT_NO_CONNECTION = 4
CONNECT_WITHIN_S = 5.0
# The fastest of this many round trips determines the offset of the clocks.
CLOCK_ROUND_TRIPS = 10
# A report that the pool can't receive now is sent again after this time.
RETRY_S = 0.02
PACKET_BYTES = 1 << 16
# A connection that is silent for this long has failed: the other node or its network is gone.
SILENT_S = 10


class Wire:
    """Connection between a pool and a host of workers: JSON objects, one a line."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (
            (socket.TCP_NODELAY, 1),
            (socket.TCP_USER_TIMEOUT, SILENT_S * 1000),
            (socket.TCP_KEEPIDLE, SILENT_S // 2),
            (socket.TCP_KEEPINTVL, 1),
            (socket.TCP_KEEPCNT, SILENT_S // 2),
        ):
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
        self._connection = connection
        self._rest = b""
        self._lines: list[bytes] = []

    def fileno(self) -> int:
        """Return the socket's descriptor, for a selector."""
        return self._connection.fileno()

    def send(self, **message: Any) -> None:
        """Send a message.

        Raises:
            OSError: the connection has ended.
        """
        self.send_line(json.dumps(message))

    def send_line(self, line: str) -> None:
        """Send a line of text.

        Raises:
            OSError: the connection has ended.
        """
        self._connection.sendall(line.encode() + b"\n")

    def read_line(self) -> bytes:
        """Wait for the next line and return it.

        Raises:
            OSError: the connection has ended.
        """
        while not self._lines:
            self._read()
        return self._lines.pop(0)

    def read(self) -> list[dict[str, Any]]:
        """Wait for data; return the complete messages.

        Raises:
            OSError: the connection has ended.
        """
        self._read()
        return self.pending()

    def pending(self) -> list[dict[str, Any]]:
        """Return the messages that arrived together with the last line that was read."""
        lines, self._lines = self._lines, []
        return [json.loads(line) for line in lines]

    def _read(self) -> None:
        data = self._connection.recv(PACKET_BYTES)
        if not data:
            raise ConnectionError("the other side has closed the connection")
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._lines += lines


class Proxy:
    """Takes the place of a worker in the pool, and forwards everything to and from the real worker
    in another pod."""

    def __init__(self, wire: Wire, link: ControlLink, counters: c.Counters, number: int) -> None:
        self._wire, self._link, self._counters, self._number = wire, link, counters, number

    def start(self, clock: Clock, workers: int) -> None:
        """Start the worker, with this machine's clock and the counters of its predecessor.

        Raises:
            OSError: the connection has ended, or leads to no host of workers.
        """
        if (greeting := self._wire.read_line()) != GREETING.encode():
            raise ConnectionError(f"it greets with {greeting[:40]!r}")
        block = range(self._counters.worker(self._number), self._counters.worker(self._number + 1))
        self._wire.send(
            start=self._number,
            workers=workers,
            offset_ns=self._offset_ns(clock),
            words=self._values(block),
        )

    def run(self) -> int:
        """Forward messages until the worker has ended; return its exit code. Return 0 if the pool
        has ended.

        Raises:
            OSError: the connection has ended.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(self._wire, selectors.EVENT_READ)
            selector.register(self._link, selectors.EVENT_READ)
            while True:
                self._link.send()
                ready = {key.fileobj for key, _ in selector.select(RETRY_S)}
                if self._link in ready and not self._forward_orders():
                    return 0
                for message in self._wire.read() if self._wire in ready else ():
                    if (code := self._take(message)) is not None:
                        self._link.send()
                        return code

    def _forward_orders(self) -> bool:
        """Forward the pool's orders; return False if the pool has ended."""
        while True:
            try:
                order = self._link.order()
            except ConnectionError:
                return False
            if order is None:
                return True
            words = []
            if order["do"] == "assign":  # the worker continues from the partition's counters
                partition, at = order["partition"], self._counters.partition
                words = self._values(range(at(partition), at(partition + 1)))
            self._wire.send(order=order, words=words)

    def _take(self, message: dict[str, Any]) -> int | None:
        """Store changed counters, forward a report; return the exit code if the worker ended."""
        for index, value in message.get("words", ()):
            self._counters.word[index] = value
        if "report" in message:
            self._link.report(**message["report"])
        code: int | None = message.get("exit")
        return code

    def _values(self, indices: range) -> list[tuple[int, int]]:
        return [(index, int(self._counters.word[index])) for index in indices]

    def _offset_ns(self, clock: Clock) -> int:
        """Return the offset with which the other machine's monotonic clock shows this clock's
        time, exact to half the fastest round trip."""
        fastest_ns, offset_ns = sys.maxsize, 0
        for _ in range(CLOCK_ROUND_TRIPS):
            sent_ns = clock.now_ns()
            self._wire.send(clock=True)
            there_ns = json.loads(self._wire.read_line())["clock_ns"]
            took_ns = clock.now_ns() - sent_ns
            if took_ns < fastest_ns:
                fastest_ns, offset_ns = took_ns, sent_ns + took_ns // 2 - there_ns
        return offset_ns


def main(argv: list[str]) -> int:
    """Connect to the host of workers and represent a worker there; return the exit code."""
    host, port = argv[0].rsplit(":", 1)
    control_fd, counters_fd, number, workers, offset_ns = map(int, argv[1:])
    # Ctrl-C reaches the whole process group; the main process stops the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    link = ControlLink(socket.socket(fileno=control_fd))
    counters = c.Counters(counters_fd, settings.load().partitions, workers)
    try:
        connection = socket.create_connection((host, int(port)), CONNECT_WITHIN_S)
        connection.settimeout(SILENT_S)
        with connection:
            proxy = Proxy(Wire(connection), link, counters, number)
            proxy.start(Clock(offset_ns), workers)
            return proxy.run()
    except OSError as error:
        link.log(f"no connection to the workers at {argv[0]}: {error}")
        return EXIT_NO_CONNECTION


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
