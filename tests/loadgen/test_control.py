"""Tests of the control socket with real clients: people, programs, and hostile ones."""

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen import control
from loadgen.commands import Answer, Commands, Load, Then
from loadgen.config import ConfigError
from tests.waiting import wait_until

TIMEOUT_S = 60.0


class FakeLoad(Load):
    """Keeps rates in a dictionary; the test decides when a flush is answered, and whether the
    statistics hang."""

    def __init__(self) -> None:
        self.milli = {"events_per_second": 50_000, "purchases_per_second": 3_000}
        self.flushes: list[Callable[[str], None]] = []
        self.stats_bytes, self.stats_requests = 200, 0
        self.hangs, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

    def rates(self) -> dict[str, str]:
        return dict.fromkeys(self.milli, "")

    def get_rate_milli(self, key: str) -> int:
        return self.milli[key]

    def set_rate_milli(self, key: str, milli_per_s: int) -> None:
        self.milli[key] = milli_per_s

    def stats_line(self) -> str:
        self.stats_requests += 1
        if not self.go_on.is_set():
            self.hangs.set()
            self.go_on.wait(TIMEOUT_S)
        return json.dumps({"now_ms": 1, "filler": "x" * self.stats_bytes})

    def flush(self, done: Callable[[str], None]) -> None:
        self.flushes.append(done)


class Server:
    """A control server on an event loop in a thread."""

    def __init__(self, **limits: Any) -> None:
        self.load, self.logged = FakeLoad(), list[str]()
        self.loop, self._ending = asyncio.new_event_loop(), asyncio.Event()
        listener = control.listen("127.0.0.1", 0)
        self.address = listener.getsockname()
        serve = self._serve(listener, limits)
        self._thread = threading.Thread(target=self.loop.run_until_complete, args=[serve])
        self._thread.start()

    async def _serve(self, listener: socket.socket, limits: dict[str, Any]) -> None:
        server = control.ControlServer(self.load, self.logged.append, **limits)
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
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    running = Server(**getattr(request, "param", {}))
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


def test_piped_commands_are_answered_before_the_end(server: Server) -> None:
    with server.connect() as client:
        client.sendall(b"get events_per_second\nget purchases_per_second\n")
        client.shutdown(socket.SHUT_WR)
        assert all_from(client) == "events_per_second 50\npurchases_per_second 3\n"


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
        b"GET /" + b"x" * 900 + b" HTTP/1.0\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"host: 127.0.0.1\n",
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


@pytest.mark.parametrize("server", [{"max_clients": 1}], indirect=True)
def test_one_client_too_many_is_refused(server: Server) -> None:
    with server.connect(), socket.create_connection(server.address, TIMEOUT_S) as second:
        assert "1 clients are connected already" in line_from(second)


def test_a_taken_port_is_an_error_that_names_the_setting(server: Server) -> None:
    with pytest.raises(ConfigError, match="COMMAND_ENDPOINT"):
        control.listen(*server.address)


@given(st.binary(max_size=200))
def test_any_line_has_an_answer(line: bytes) -> None:
    load = FakeLoad()
    answer = Commands(load).execute(line)
    assert isinstance(answer, Answer)
    assert answer.text or not line.split() or answer.then is Then.FLUSH


@pytest.mark.parametrize(
    "line",
    [
        "set events_per_second",
        "set events_per_second 10000001",
        "set events_per_second 1e3",
        "set events_per_second " + "9" * 900,
        "set nothing 1",
        "get",
        "stats now",
        "dance",
    ],
)
def test_bad_commands_are_errors_that_change_nothing(line: str) -> None:
    load = FakeLoad()
    assert Commands(load).execute(line.encode()).text.startswith("Error: ")
    assert load.milli == FakeLoad().milli
