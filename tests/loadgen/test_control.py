"""Tests of the control socket with real clients: people, programs, and hostile ones."""

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from loadgen import control
from loadgen.commands import Commands, Load
from tests.waiting import wait_until

TIMEOUT_S = 60.0


class FakeLoad(Load):
    """Keeps rates in a dictionary; the test decides when a flush is answered."""

    def __init__(self) -> None:
        self.milli = {"events_per_second": 50_000, "purchases_per_second": 3_000}
        self.flushes: list[Callable[[str], None]] = []
        self.stats_bytes = 200

    def rates(self) -> dict[str, str]:
        return dict.fromkeys(self.milli, "")

    def get_rate_milli(self, key: str) -> int:
        return self.milli[key]

    def set_rate_milli(self, key: str, milli_per_s: int) -> None:
        self.milli[key] = milli_per_s

    def stats_line(self) -> str:
        return json.dumps({"now_ms": 1, "filler": "x" * self.stats_bytes})

    def flush(self, done: Callable[[str], None]) -> None:
        self.flushes.append(done)


class Server:
    """A control server on an event loop in a thread."""

    def __init__(self) -> None:
        self.load, self.logged = FakeLoad(), list[str]()
        self.loop, self._ending = asyncio.new_event_loop(), asyncio.Event()
        listener = control.listen("127.0.0.1", 0)
        self.address = listener.getsockname()
        serve = self._serve(listener)
        self._thread = threading.Thread(target=self.loop.run_until_complete, args=[serve])
        self._thread.start()

    async def _serve(self, listener: socket.socket) -> None:
        server = control.ControlServer(self.load, self.logged.append)
        await server.start(listener)
        while not self._ending.is_set():
            server.broadcast()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._ending.wait(), 0.002)
        server.close()

    def end(self) -> None:
        self.loop.call_soon_threadsafe(self._ending.set)
        self._thread.join()
        self.loop.close()

    def connect(self) -> socket.socket:
        return connected(self.address)


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.end()


def connected(address: tuple[str, int]) -> socket.socket:
    client = socket.create_connection(address, timeout=TIMEOUT_S)
    assert line_from(client) == "LOADGEN Connected."
    return client


def line_from(client: socket.socket) -> str:
    """Return one line from the server; "" if it has closed the connection."""
    line = b""
    while not line.endswith(b"\n"):
        byte = client.recv(1)
        if not byte:
            break
        line += byte
    return line.decode().rstrip("\n")


def all_from(client: socket.socket) -> str:
    """Return everything that the server sends until it closes the connection, maybe with unread
    input, which resets the connection."""
    text = b""
    with contextlib.suppress(ConnectionError):
        while part := client.recv(65536):
            text += part
    return text.decode()


def ask(client: socket.socket, line: str) -> str:
    client.sendall(line.encode() + b"\n")
    return line_from(client)


def test_commands_sent_at_once_are_answered_in_order(server: Server) -> None:
    with server.connect() as client:
        client.sendall(b"SET purchases_per_second 0.5\r\nflush\nget events_per_second\nquit\n")
        set_ = "Setting purchases_per_second: old value was 3, new value is 0.5."
        assert line_from(client) == set_
        assert server.load.milli["purchases_per_second"] == 500
        wait_until(lambda: bool(server.load.flushes), "the flush")
        server.loop.call_soon_threadsafe(server.load.flushes[0], "Flushed 7 messages")
        assert all_from(client) == "Flushed 7 messages\nevents_per_second 50\nGoodbye.\n"


def test_half_a_line_is_not_executed(server: Server) -> None:
    with server.connect() as client:
        for piece in (b"get page", b"views_per", b"_second\n", b"set events_per_second 100"):
            client.sendall(piece)
        assert line_from(client) == "events_per_second 50"
        client.shutdown(socket.SHUT_WR)
        assert "was not executed" in all_from(client)
    assert server.load.milli["events_per_second"] == 50_000


def test_a_line_of_a_megabyte_is_answered_and_closed(server: Server) -> None:
    with server.connect() as client:
        client.sendall(b"x" * 1_000_000 + b"\n")
        assert all_from(client) == "Error: a line may have 1000 bytes. Goodbye.\n"


FETCH = (
    b"POST / HTTP/1.1\r\nHost: 127.0.0.1:8090\r\nOrigin: https://example.com\r\n"
    b"Content-Type: text/plain\r\nContent-Length: 28\r\n\r\n"
)
CHANGE = b"set events_per_second 9\r\n"
TLS_HELLO = b"\x16\x03\x01\x00\xf4\x01\x00\x00\xf0\x03\x03"


@pytest.mark.parametrize("first", [b"", b"set events_per_second 7\n"])
@pytest.mark.parametrize(
    "request_bytes",
    [
        FETCH,
        TLS_HELLO,
    ],
)
def test_a_web_page_changes_nothing_and_is_hung_up_on(
    server: Server, first: bytes, request_bytes: bytes
) -> None:
    with server.connect() as client:
        client.sendall(first + request_bytes + CHANGE)
        heard = all_from(client)
    assert first or not heard
    own = {"events_per_second": 7_000} if first else {}
    assert server.load.milli == FakeLoad().milli | own
    assert "it speaks HTTP or TLS" in server.logged[-1]


@pytest.mark.slow
def test_a_client_that_never_reads_is_dropped_and_stalls_nobody(server: Server) -> None:
    server.load.stats_bytes = 20_000
    deaf = server.connect()
    deaf.sendall(b"watch\n")
    with server.connect() as other:
        wait_until(lambda: any("does not read" in line for line in server.logged), "the drop")
        assert ask(other, "get events_per_second") == "events_per_second 50"
    deaf.close()


@pytest.mark.parametrize(
    "line",
    [
        "set events_per_second 10000001",
        "set nothing 1",
        "dance",
    ],
)
def test_bad_commands_are_errors_that_change_nothing(line: str) -> None:
    load = FakeLoad()
    assert Commands(load).execute(line.encode()).text.startswith("Error: ")
    assert load.milli == FakeLoad().milli
