"""Tests of the process that serves the control port: clients connect to this process, and only it
connects to the generator."""

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Iterator

import psutil
import pytest

from loadgen import control
from loadgen.control_process import STATS_FOR_S, ControlProcess
from tests.loadgen.test_control import TIMEOUT_S, FakeLoad, all_from, ask, connected, line_from
from tests.waiting import wait_until


class Generator:
    """A fake generator, whose loop runs in a thread."""

    def __init__(self) -> None:
        self.load, self.logged = FakeLoad(), list[str]()
        self._ending = False
        self._selector = selectors.DefaultSelector()
        listener = control.listen("127.0.0.1", 0)
        self.address = listener.getsockname()
        self.process = ControlProcess(listener, self._selector, self.load, self.logged.append)
        self.process.open()
        self._thread = threading.Thread(target=self._loop)
        self._thread.start()

    def _loop(self) -> None:
        while not self._ending:
            for key, mask in self._selector.select(0.002):
                key.data(mask)
            self.process.poll()
        self.process.stop()
        self._selector.close()

    def end(self) -> None:
        self._ending = True
        self._thread.join()

    def connect(self) -> socket.socket:
        return connected(self.address)


@pytest.fixture
def generator() -> Iterator[Generator]:
    running = Generator()
    yield running
    running.end()


def test_what_clients_send_reaches_the_generator(generator: Generator) -> None:
    with generator.connect() as client:
        # It is not the generator that serves them.
        ours = psutil.Process().net_connections(kind="tcp")
        assert not [c for c in ours if c.laddr == generator.address and c.status == "ESTABLISHED"]
        assert ask(client, "get events_per_second") == "events_per_second 50"
        assert ask(client, "set events_per_second 9").endswith("old value was 50, new value is 9.")
        assert generator.load.milli["events_per_second"] == 9_000
        assert ask(client, "get events_per_second") == "events_per_second 9"
        assert ask(client, "stats") == generator.load.stats_line()
        assert ask(client, "watch") == generator.load.stats_line()
        assert line_from(client) == generator.load.stats_line()
        client.sendall(b"flush\nquit\n")
        wait_until(lambda: bool(generator.load.flushes), "the flush")
        generator.load.flushes[0]("Flushed 7 messages")
        assert all_from(client).endswith("Flushed 7 messages\nGoodbye.\n")
    assert any("new value is 9" in line for line in generator.logged)


@pytest.mark.slow
def test_statistics_are_made_once_for_all_who_ask(generator: Generator) -> None:
    began_s = time.monotonic()
    with contextlib.ExitStack() as crowd:
        clients = [crowd.enter_context(generator.connect()) for _ in range(40)]
        for client in clients:
            client.sendall(b"stats\n" * 500 + b"quit\n")
        for client in clients:
            assert all_from(client).count("now_ms") == 500
    assert generator.load.stats_requests <= (time.monotonic() - began_s) / STATS_FOR_S + 1


@pytest.mark.slow
def test_nobody_is_greeted_while_the_generator_hangs(generator: Generator) -> None:
    generator.connect().close()
    generator.load.go_on.clear()
    assert generator.load.hangs.wait(TIMEOUT_S)
    with socket.create_connection(generator.address) as client:
        client.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.recv(1)
        generator.load.go_on.set()
        client.settimeout(TIMEOUT_S)
        assert line_from(client) == "LOADGEN Connected."


def test_a_process_that_dies_is_replaced_and_has_the_rates(generator: Generator) -> None:
    with generator.connect() as client:
        ask(client, "set events_per_second 9")
        client.sendall(b"flush\n")
        wait_until(lambda: bool(generator.load.flushes), "the flush")
        psutil.Process(generator.process.pid).kill()
        with contextlib.suppress(ConnectionError):
            assert client.recv(1) == b""
    with generator.connect() as client:
        generator.load.flushes[0]("Flushed 7 messages")  # no client waits any more
        assert ask(client, "get events_per_second") == "events_per_second 9"
    assert any("died (exit code -9)" in line for line in generator.logged)


def test_it_ends_with_its_generator(generator: Generator) -> None:
    process = psutil.Process(generator.process.pid)
    with generator.connect() as client:
        generator.end()
        with contextlib.suppress(ConnectionError):
            assert client.recv(1) == b""
    assert not process.is_running()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(generator.address)
