"""Runs 150 misbehaving clients of the control port until standard input is closed.

    python3 bench/crowd.py HOST PORT

50 clients watch the statistics, 50 have sent half a line, and 50 request statistics continuously
but hardly read the answers. In addition, a line of 10 MB is sent every second. Disconnected clients
reconnect."""

import contextlib
import selectors
import socket
import sys
import threading
import time

EACH = 50
LONG_LINE = b"x" * 10_000_000
ASK_AGAIN_S = 0.1
# A slow reader reads this many bytes every ASK_AGAIN_S.
SIP_BYTES = 100


class Crowd:
    """The clients, grouped by behavior."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._selector = selectors.DefaultSelector()
        self._half_open = [self._join(b"set events_per_second 1") for _ in range(EACH)]
        self._slow = [self._join(b"") for _ in range(EACH)]
        for _ in range(EACH):
            self._watch()

    def _join(self, first_words: bytes) -> socket.socket:
        client = socket.create_connection(self._address, timeout=10)
        client.sendall(first_words)
        client.setblocking(False)
        return client

    def _watch(self) -> None:
        self._selector.register(self._join(b"watch\n"), selectors.EVENT_READ)

    def go_on(self) -> None:
        """For ASK_AGAIN_S, read the output that watching clients receive. Then let the slow readers
        send requests."""
        until_s = time.monotonic() + ASK_AGAIN_S
        while (left_s := until_s - time.monotonic()) > 0:
            for key, _ in self._selector.select(left_s):
                self._take(key.fileobj)  # type: ignore[arg-type]
        self._slow = [self._ask_and_sip(client) for client in self._slow]

    def _take(self, client: socket.socket) -> None:
        with contextlib.suppress(ConnectionError):
            if client.recv(1 << 16):
                return
        self._selector.unregister(client)
        client.close()
        self._watch()

    def _ask_and_sip(self, client: socket.socket) -> socket.socket:
        try:
            with contextlib.suppress(BlockingIOError):
                client.send(b"stats\n" * 10)
            with contextlib.suppress(BlockingIOError):
                client.recv(SIP_BYTES)
        except ConnectionError:  # disconnected
            client.close()
            return self._join(b"")
        return client

    def long_lines(self) -> None:
        """Send 10 MB without a line end, every second (in a thread)."""
        while True:
            with (
                contextlib.suppress(OSError),  # disconnected before everything is sent
                socket.create_connection(self._address, timeout=10) as client,
            ):
                client.sendall(LONG_LINE)
            time.sleep(1)  # interval of long lines


def wait_for_end(ended: threading.Event) -> None:
    """Set the event when standard input is closed (in a thread)."""
    sys.stdin.read()
    ended.set()


def main() -> None:
    """Run the command line."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    crowd = Crowd(sys.argv[1], int(sys.argv[2]))
    ended = threading.Event()
    threading.Thread(target=wait_for_end, args=[ended], daemon=True).start()
    threading.Thread(target=crowd.long_lines, daemon=True).start()
    print("ready", flush=True)
    while not ended.is_set():
        crowd.go_on()


if __name__ == "__main__":
    main()
