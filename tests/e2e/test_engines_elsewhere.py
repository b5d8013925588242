"""End-to-end tests with engines that the user provides: real servers, started by the tests."""

import signal
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from racetrack import cli
from racetrack.engines.dh.tests.brought import KEY, brought
from racetrack.engines.flink.tests.cluster import running_cluster
from racetrack.engines.shared.tests import upsert_e2e
from racetrack.engines.shared.tests.postgres import PASSWORD, running_postgres
from racetrack.engines.spark.tests.standalone import running_standalone
from racetrack.workloads.contract import find_workload
from tests.e2e.shared import Door, NothingLeft, Open, text_of_run
from tests.waiting import wait_until

BRIEF, LONG = ("500", "5", "5", "1.0", "--verify"), ("500", "60", "5", "1.0")
SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'racetrack%'"
# With the default, Spark uses all CPU, and the generator may be late.
CALM = {"SPARK_HEAP": "1g", "SPARK_TRIGGER_MS": "1000"}


@dataclass(frozen=True)
class Provided:
    """A running engine: the settings of runs that use it, of which the first is its address; its
    service in a stack, which is not started then; and what runs have left in it."""

    name: str
    settings: Mapping[str, str]
    left: Callable[[], Collection[object]]
    service: str
    secret: str = ""


@contextmanager
def deephaven(_folder: Path) -> Iterator[Provided]:
    with brought() as server:

        def left() -> list[str]:
            return [name for name in server.names() if "racetrack" in name] + server.kafka_threads()

        yield Provided("dh", server.settings(), left, "deephaven", KEY)


@contextmanager
def flink(folder: Path) -> Iterator[Provided]:
    with running_cluster(folder) as cluster:
        yield Provided("flink", {"FLINK_GATEWAY_URL": cluster.url}, cluster.jobs, "flink")


@contextmanager
def postgres(_folder: Path) -> Iterator[Provided]:
    with running_postgres() as server:

        def left() -> list[tuple[object, ...]]:
            return server.rows(SCHEMAS)

        yield Provided("pg", {"POSTGRES_URL": server.url}, left, "postgres", PASSWORD)


@contextmanager
def spark(folder: Path) -> Iterator[Provided]:
    with running_standalone(folder) as cluster:

        def left() -> list[str]:
            return [*cluster.applications(), *(path.name for path in cluster.shared.iterdir())]

        yield Provided("spark", {**cluster.environment, **CALM}, left, "sparkmaster")


@pytest.fixture(scope="module", params=[deephaven, flink, postgres, spark])
def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Provided]:
    with request.param(tmp_path_factory.mktemp("engine")) as engine:
        yield engine


@pytest.fixture
def engine(running: Provided, monkeypatch: pytest.MonkeyPatch) -> Provided:
    """Let all runs use the engine."""
    for name, value in running.settings.items():
        monkeypatch.setenv(name, value)
    return running


def begun(door: Open, engine: Provided, *words: str) -> Door:
    """Start an experiment; return it at the start of step 4, in which the engine settles."""
    run = door("run_experiment.sh", engine.name, *words)
    run.until(r"^\[4/")
    assert engine.left()
    return run


def test_the_check_lists_what_is_possible_and_leaves_nothing(engine: Provided) -> None:
    result = CliRunner().invoke(cli.race, ["check"])
    assert result.exit_code == 0, result.output
    assert "\n  can " in result.output
    assert not engine.secret or " clock is " in result.output
    assert not engine.secret or engine.secret not in result.output
    assert not engine.left()


def test_a_run_is_verified_and_leaves_nothing(
    door: Open, engine: Provided, nothing_left: NothingLeft, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine's cost is unknown, and its secret is in no file, output or argument. (It is a JVM
    option of the test's Deephaven, but that JVM runs within a Python process.)"""
    monkeypatch.setenv("TRACER_EVENTS_PER_SECOND", "12")
    monkeypatch.setenv("READS_PER_SECOND", "6" if engine.secret else "0")
    run = begun(door, engine, *BRIEF)
    text = text_of_run(run)
    nothing_left()
    wait_until(lambda: not engine.left(), "end of all that the run made", 80, 0.5)
    record = run.record()
    setting, results = next(iter(engine.settings)), record["results"]
    assert any(f"it ran at {setting}" in caveat for caveat in record["caveats"])
    assert results["engine"] is None and not record.get("engine_services")
    assert engine.service not in results["processes"]
    assert results["processed_events"] == results["published_events"] > 3_000
    assert all(view["lag_p99_ms"] is not None for view in results["views"])
    assert upsert_e2e.statuses(run) == {
        view.name: "absent" if view.name in record["absent_views"] else "right"
        for view in find_workload("shop").views
    }
    if engine.secret:
        assert engine.service in record["versions"]
        assert any("clock is" in caveat for caveat in record["caveats"])
        assert any(read["age"] for read in results["reads"])
        assert not any(read["errors"] for read in results["reads"])
        assert engine.secret not in text


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_leaves_nothing(
    door: Open, engine: Provided, nothing_left: NothingLeft, how: signal.Signals
) -> None:
    run = begun(door, engine, *LONG)
    run.signal(how)
    assert run.wait() == (130 if how is signal.SIGINT else -9), run.output
    wait_until(lambda: not engine.left(), "end of all that the run made", every_s=0.5)
    nothing_left()
