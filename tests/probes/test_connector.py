"""Tests that a failed connector ends the run with its reason, and a busy Connect does not."""

import re
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from racetrack.errors import RacetrackError
from racetrack.probes.base import HadOutage, no_outage
from racetrack.probes.cdc import ConnectorProbe
from tests.fake_server import JsonHandler, serving

TRACE = """org.apache.kafka.connect.errors.ConnectException: Unrecoverable exception from callback
\tat org.apache.kafka.connect.runtime.WorkerSourceTask.maybeThrow(WorkerSourceTask.java:300)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: org.apache.kafka.common.errors.RecordTooLargeException: The message is """ + (
    "2097540 bytes when serialized. " + "x" * 2_000_000
)
WITHIN_S = 10.0


class Connect:
    """A fake Kafka Connect that always answers with the same status."""

    url = ""

    def __init__(self) -> None:
        self.code, self.connector, self.task, self.trace = 200, "RUNNING", "RUNNING", ""
        self.requested = threading.Event()

    def handle(self, request: JsonHandler) -> None:
        assert request.path == "/connectors/shop/status"
        task = {"id": 0, "state": self.task, "trace": self.trace}
        request.answer({"connector": {"state": self.connector}, "tasks": [task]}, self.code)
        self.requested.set()


@pytest.fixture
def connect() -> Iterator[Connect]:
    connect = Connect()

    class Handler(JsonHandler):
        def get(self) -> None:
            connect.handle(self)

    with serving(Handler) as connect.url:
        yield connect


def probe_of(
    connect: Connect, had_outage: HadOutage = no_outage, silent_for_s: float = WITHIN_S
) -> ConnectorProbe:
    return ConnectorProbe(connect.url, "shop", had_outage, silent_for_s, every_s=0.01)


def failure_of(probe: ConnectorProbe) -> str:
    """Check the probe as a session does; return the error with which it ends the run."""
    probe.start()
    give_up = time.monotonic() + WITHIN_S
    try:
        while time.monotonic() < give_up:
            try:
                probe.check()
            except RacetrackError as failure:
                return str(failure)
            threading.Event().wait(0.05)
    finally:
        probe.stop()
    raise AssertionError(f"nothing failed within {WITHIN_S} s")


def test_a_failed_task_is_reported_with_its_reason_cut(connect: Connect) -> None:
    connect.task, connect.trace = "FAILED", TRACE
    message = failure_of(probe_of(connect))
    first, *more = message.splitlines()
    assert first == "Debezium's task failed:"
    assert "RecordTooLargeException: The message is 2097540 bytes" in message
    assert "WorkerSourceTask.java" not in message
    assert len(message) < 1_000 and len(more) <= 5


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ({"connector": "PAUSED"}, "(?i)paused"),
        ({"code": 503}, "HTTP 503"),
    ],
)
def test_the_reason_is_named_in_one_line(
    connect: Connect, broken: dict[str, Any], says: str
) -> None:
    vars(connect).update(broken)
    assert re.search(says, failure_of(probe_of(connect, silent_for_s=0.1)))


@pytest.mark.parametrize("code", [200, 503])
def test_a_running_connector_and_an_expected_outage_are_no_failure(
    connect: Connect, code: int
) -> None:
    connect.code = code
    probe = probe_of(connect, lambda _since_s: code == 503, silent_for_s=0.0)
    probe.start()
    assert connect.requested.wait(WITHIN_S)
    probe.stop()
    probe.check()
