"""A connector that fails ends the run with its reason; Connect that is busy does not."""

import http.server
import json
import threading
import time
from collections.abc import Iterator

import pytest

from racetrack.errors import RacetrackError
from racetrack.probes.base import HadOutage, no_outage
from racetrack.probes.cdc import ConnectorProbe

TRACE = """org.apache.kafka.connect.errors.ConnectException: Unrecoverable exception from callback
\tat org.apache.kafka.connect.runtime.WorkerSourceTask.maybeThrow(WorkerSourceTask.java:300)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: org.apache.kafka.common.errors.RecordTooLargeException: The message is """ + (
    "2097540 bytes when serialized. " + "x" * 2_000_000
)
WITHIN_S = 10.0


class Connect(http.server.ThreadingHTTPServer):
    """Answers with one status."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.code, self.connector, self.task, self.trace = 200, "RUNNING", "RUNNING", ""
        self.requested = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        connect = self.server
        assert isinstance(connect, Connect)
        assert self.path == "/connectors/shop/status"
        body = json.dumps(
            {
                "connector": {"state": connect.connector},
                "tasks": [{"id": 0, "state": connect.task, "trace": connect.trace}],
            }
        ).encode()
        self.send_response(connect.code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        connect.requested.set()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def connect() -> Iterator[Connect]:
    with Connect() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def probe_of(
    connect: Connect, had_outage: HadOutage = no_outage, silent_for_s: float = WITHIN_S
) -> ConnectorProbe:
    return ConnectorProbe(connect.url, "shop", had_outage, silent_for_s, every_s=0.01)


def failure_of(probe: ConnectorProbe) -> str:
    """Return the error that ends the run, checking the probe as a session does."""
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


@pytest.mark.parametrize("state", ["FAILED", "PAUSED", "STOPPED"])
def test_a_connector_that_does_not_run_is_reported(connect: Connect, state: str) -> None:
    connect.connector = state
    assert state.lower() in failure_of(probe_of(connect)).lower()


def test_connect_may_be_silent_but_not_for_ever(connect: Connect) -> None:
    connect.code = 503
    assert "HTTP 503" in failure_of(probe_of(connect, silent_for_s=0.1))


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
