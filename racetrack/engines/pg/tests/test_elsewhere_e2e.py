"""Runs against a PostgreSQL that the user provides: a real one, started by the test."""

import signal
import time
from collections.abc import Callable, Iterator

import pytest
from psutil import process_iter

from racetrack.engines.shared.tests.postgres import PASSWORD, Postgres, running_postgres
from tests.e2e.shared import Door, run_folder
from tests.run_json import read_run

pytestmark = pytest.mark.e2e

SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'racetrack%'"
NothingLeft = Callable[[], None]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def pg_door(
    door: Callable[..., Door], postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Door]:
    """`./run_experiment.sh pg …` with POSTGRES_URL at the test's PostgreSQL."""
    monkeypatch.setenv("POSTGRES_URL", postgres.url)

    def open_door(*arguments: str) -> Door:
        return door("run_experiment.sh", "pg", *arguments)

    return open_door


def test_a_run_is_verified_and_leaves_nothing(
    pg_door: Callable[..., Door],
    postgres: Postgres,
    nothing_left: NothingLeft,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRACER_EVENTS_PER_SECOND", "12")
    monkeypatch.setenv("READS_PER_SECOND", "6")
    run = pg_door("500", "5", "5", "1.0", "--verify")
    run.until(r"^\[4/")
    assert len(postgres.rows(SCHEMAS)) == 1
    arguments = " ".join(" ".join(each.info["cmdline"] or ()) for each in process_iter(["cmdline"]))
    assert run.wait() == 0, run.output
    nothing_left()
    assert postgres.rows(SCHEMAS) == []
    folder = run_folder(run.output)
    record = read_run(folder)
    assert record["outcome"] == "ok"
    assert {"postgres", "pgfeed"} & record["versions"].keys() == {"postgres"}
    assert any("it ran at POSTGRES_URL" in caveat for caveat in record["caveats"])
    assert any("PostgreSQL's clock is" in caveat for caveat in record["caveats"])
    results = record["results"]
    assert results["engine"] is None and record.get("engine_services", ()) in ((), [])
    assert "postgres" not in results["processes"]
    assert results["processed_pageviews"] == results["published_pageviews"] > 3_000
    assert all(view["lag_p99_ms"] is not None for view in results["views"])
    assert any(read["age"] for read in results["reads"])
    assert not any(read["errors"] for read in results["reads"])
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert [path for path in files if PASSWORD in path.read_text(errors="replace")] == []
    assert PASSWORD not in arguments + run.output


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_leaves_nothing(
    pg_door: Callable[..., Door], postgres: Postgres, nothing_left: NothingLeft, how: signal.Signals
) -> None:
    run = pg_door("500", "60", "5", "1.0")
    run.until(r"^\[4/")
    assert len(postgres.rows(SCHEMAS)) == 1
    run.signal(how)
    assert run.wait() == (130 if how is signal.SIGINT else -9), run.output
    give_up_s = time.monotonic() + 30
    while postgres.rows(SCHEMAS) and time.monotonic() < give_up_s:
        time.sleep(0.2)
    assert postgres.rows(SCHEMAS) == []
    nothing_left()
