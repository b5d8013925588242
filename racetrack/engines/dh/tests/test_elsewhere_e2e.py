"""End-to-end tests with a Deephaven that the user provides: a real server, started by the test."""

import signal
from collections.abc import Callable, Iterator

import pytest

from racetrack.engines.dh.tests.brought import KEY, Brought, brought
from racetrack.engines.shared.tests import elsewhere_e2e
from tests.e2e.shared import Door
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e

OpenDoor = Callable[..., Door]
NothingLeft = Callable[[], None]


@pytest.fixture(scope="module")
def server() -> Iterator[Brought]:
    with brought() as found:
        yield found


@pytest.fixture(autouse=True)
def provided(server: Brought, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all runs use the test's Deephaven."""
    for name, value in server.settings().items():
        monkeypatch.setenv(name, value)


def left(server: Brought) -> list[str]:
    return [name for name in server.names() if "racetrack" in name] + server.kafka_threads()


def test_a_run_is_verified_and_leaves_nothing(
    door: OpenDoor, server: Brought, nothing_left: NothingLeft, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACER_EVENTS_PER_SECOND", "12")
    monkeypatch.setenv("READS_PER_SECOND", "6")
    run = elsewhere_e2e.begun(door, "dh", *elsewhere_e2e.BRIEF, "--verify")
    assert len(left(server)) > 10
    # The key is a JVM option of the test's server, but no process has it as an argument: this JVM
    # runs within a Python process.
    arguments = elsewhere_e2e.command_lines()
    assert run.wait() == 0, run.output
    nothing_left()
    wait_until(lambda: not left(server), "end of all tables, consumers and producers", every_s=0.5)
    record = elsewhere_e2e.check_followed(run, "DEEPHAVEN_URL")
    elsewhere_e2e.check_read(record)
    elsewhere_e2e.check_secret(run, arguments, KEY)
    assert record["versions"]["deephaven"][0].isdecimal()
    assert any("Deephaven's clock is" in caveat for caveat in record["caveats"])
    assert "deephaven" not in record["results"]["processes"]


@elsewhere_e2e.interrupted
def test_an_interrupted_run_leaves_nothing(
    door: OpenDoor, server: Brought, nothing_left: NothingLeft, how: signal.Signals
) -> None:
    run = elsewhere_e2e.begun(door, "dh", *elsewhere_e2e.LONG)
    assert len(left(server)) > 10
    elsewhere_e2e.check_interrupted(run, how, lambda: left(server))
    nothing_left()
