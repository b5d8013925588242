"""Tests of workers in other pods: the pool's orders reach them, reports and counters come back."""

import contextlib
import os
import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from loadgen import config, host
from loadgen import counters as c
from loadgen.clock import NS_PER_MS, Clock
from loadgen.control import GREETING
from loadgen.worker_process import REMOTE_WORKER, WorkerProcess
from tests.ports import free_ports
from tests.waiting import wait_until

PARTITIONS, WORKERS, NUMBER = 6, 4, 3
FAKE = ("tests.loadgen.fake_worker",)


class Pool:
    """A pool with one worker: its counters, and the worker's reports."""

    def __init__(self, address: str) -> None:
        self.fd = c.create_fd(PARTITIONS, WORKERS)
        self.counters = c.Counters(self.fd, PARTITIONS, WORKERS)
        self.clock = Clock.anchored_now()
        self.reports: list[dict[str, Any]] = []
        self.selector = selectors.DefaultSelector()
        self.worker = WorkerProcess(
            NUMBER,
            self.selector,
            lambda _, report: self.reports.append(report),
            (*REMOTE_WORKER, address),
        )
        self.start()

    def start(self) -> None:
        self.worker.start(self.fd, WORKERS, self.clock.offset_ns)

    def until(self, holds: Callable[[], bool]) -> None:
        def look() -> bool:
            for key, mask in self.selector.select(0.01):
                key.data(mask)
            self.worker.push()
            return holds()

        wait_until(look, "answer of the worker")

    def has(self, event: str) -> bool:
        return any(report["event"] == event for report in self.reports)


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> str:
    (port,) = free_ports(1)
    found = f"127.0.0.1:{port}"
    monkeypatch.setenv("MYSQL_PASSWORD", "secret")
    monkeypatch.setenv("COMMAND_ENDPOINT", found)
    loaded = config.load()
    threading.Thread(target=host.serve, args=(loaded, print, FAKE), daemon=True).start()
    wait_until(lambda: is_greeting(port), "greeting")
    return found


@pytest.fixture
def pool(address: str) -> Iterator[Pool]:
    started = Pool(address)
    yield started
    started.worker.kill()
    os.close(started.fd)


def is_greeting(port: int) -> bool:
    with (
        contextlib.suppress(OSError),
        socket.create_connection(("127.0.0.1", port), timeout=5) as connection,
    ):
        return connection.makefile().readline() == f"{GREETING}\n"
    return False


def test_counters_continue_where_the_partition_was(pool: Pool) -> None:
    partition = pool.counters.partition(4)
    pool.counters.word[partition + c.POSITION] = 50
    pool.counters.word[partition + c.HANDED] = 49
    pool.until(lambda: pool.has("ready"))
    pool.worker.send(do="assign", partition=4)
    pool.until(lambda: pool.counters.column(c.POSITION)[4] == 1050)
    assert pool.counters.column(c.HANDED) == [0, 0, 0, 0, 49, 0]
    assert sum(pool.counters.lateness(WORKERS)) == 1


def test_counters_arrive_before_the_report_that_all_was_sent(pool: Pool) -> None:
    pool.worker.send(do="flush", token="flush/1")
    pool.until(lambda: pool.has("flushed"))
    assert pool.counters.column(c.HANDED)[2] == 7


def test_the_worker_has_the_clock_of_the_pool(pool: Pool) -> None:
    pool.until(lambda: pool.has("log"))
    (log,) = (report["text"] for report in pool.reports if report["event"] == "log")
    assert 0 <= pool.clock.now_ns() - int(log) < 5_000 * NS_PER_MS


@pytest.mark.slow
def test_the_exit_code_is_that_of_the_worker_and_a_successor_goes_on(pool: Pool) -> None:
    pool.worker.send(do="assign", partition=0)
    pool.until(lambda: pool.counters.column(c.POSITION)[0] == 1000)
    pool.worker.stop(1.0)
    pool.until(lambda: not pool.worker.alive)
    assert pool.worker.clean_up() == 3
    pool.start()
    pool.worker.send(do="assign", partition=0)
    pool.until(lambda: pool.counters.column(c.POSITION)[0] == 2000)
    assert sum(pool.counters.lateness(WORKERS)) == 2


def test_without_a_host_the_worker_ends_and_says_why(address: str) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        pool = Pool("127.0.0.1:{1}".format(*nobody.getsockname()))
        pool.until(lambda: not pool.worker.alive)
        assert pool.worker.clean_up() == 4
    (report,) = pool.reports
    assert report["text"].startswith("no connection to the workers at 127.0.0.1:")
