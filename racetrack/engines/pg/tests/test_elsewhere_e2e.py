"""End-to-end tests with a PostgreSQL that the user provides: a real server, started by the test."""

import signal
from collections.abc import Callable, Iterator

import pytest

from racetrack.engines.shared.tests import elsewhere_e2e
from racetrack.engines.shared.tests.postgres import PASSWORD, Postgres, running_postgres
from tests.e2e.shared import Door

pytestmark = pytest.mark.e2e

SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'racetrack%'"
OpenDoor = Callable[..., Door]
NothingLeft = Callable[[], None]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture(autouse=True)
def provided(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all runs use the test's PostgreSQL."""
    monkeypatch.setenv("POSTGRES_URL", postgres.url)


def test_a_run_is_verified_and_leaves_nothing(
    door: OpenDoor, postgres: Postgres, nothing_left: NothingLeft, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACER_EVENTS_PER_SECOND", "12")
    monkeypatch.setenv("READS_PER_SECOND", "6")
    run = elsewhere_e2e.begun(door, "pg", *elsewhere_e2e.BRIEF, "--verify")
    assert len(postgres.rows(SCHEMAS)) == 1
    arguments = elsewhere_e2e.command_lines()
    assert run.wait() == 0, run.output
    nothing_left()
    assert postgres.rows(SCHEMAS) == []
    record = elsewhere_e2e.check_followed(run, "POSTGRES_URL")
    elsewhere_e2e.check_read(record)
    elsewhere_e2e.check_secret(run, arguments, PASSWORD)
    assert {"postgres", "pgfeed"} & record["versions"].keys() == {"postgres"}
    assert any("PostgreSQL's clock is" in caveat for caveat in record["caveats"])
    assert "postgres" not in record["results"]["processes"]


@elsewhere_e2e.interrupted
def test_an_interrupted_run_leaves_nothing(
    door: OpenDoor, postgres: Postgres, nothing_left: NothingLeft, how: signal.Signals
) -> None:
    run = elsewhere_e2e.begun(door, "pg", *elsewhere_e2e.LONG)
    assert len(postgres.rows(SCHEMAS)) == 1
    elsewhere_e2e.check_interrupted(run, how, lambda: postgres.rows(SCHEMAS))
    nothing_left()
