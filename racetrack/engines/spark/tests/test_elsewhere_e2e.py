"""Runs against a Spark that the user provides: a real standalone cluster, started by the test."""

import signal
from collections.abc import Callable, Iterator

import pytest

from racetrack.engines.shared.tests import upsert_e2e
from racetrack.engines.spark.engine import NOT_MADE
from racetrack.engines.spark.tests.standalone import Standalone, running_standalone
from racetrack.workloads.contract import find_workload
from tests.e2e.shared import Door, run_folder
from tests.run_json import read_run
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e

NothingLeft = Callable[[], None]
# Otherwise Spark takes all CPU there is, and the generator may be late.
CALM = {"SPARK_TRIGGER_MS": "1000"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with running_standalone(tmp_path_factory.mktemp("spark")) as running:
        yield running


@pytest.fixture
def spark_door(
    door: Callable[..., Door], cluster: Standalone, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Door]:
    """`./run_experiment.sh spark …` with SPARK_MASTER_URL at the test's cluster."""
    for name, value in {**cluster.environment, "SPARK_HEAP": "1g", **CALM}.items():
        monkeypatch.setenv(name, value)

    def open_door(*arguments: str) -> Door:
        return door("run_experiment.sh", "spark", *arguments)

    return open_door


def check_nothing_runs(cluster: Standalone) -> None:
    wait_until(lambda: not cluster.applications(), "end of the application", 40, 0.5)
    wait_until(lambda: not list(cluster.shared.iterdir()), "removal of the folder", 40, 0.5)


def test_a_run_is_verified_and_leaves_nothing(
    spark_door: Callable[..., Door],
    cluster: Standalone,
    nothing_left: NothingLeft,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRACER_EVENTS_PER_SECOND", "12")
    run = spark_door("500", "5", "5", "1.0", "--verify")
    run.until(r"^\[4/")
    (application,) = cluster.applications()
    assert application.startswith("racetrack_")
    assert run.wait(400) == 0, run.output
    check_nothing_runs(cluster)
    nothing_left()
    assert f"working folders, with logs, of the application {application}" in run.output
    assert upsert_e2e.statuses(run) == {
        view.name: "absent" if view.name in NOT_MADE else "right"
        for view in find_workload("shop").views
    }
    record = read_run(run_folder(run.output))
    assert record["outcome"] == "ok"
    (caveat,) = (each for each in record["caveats"] if "it ran at SPARK_MASTER_URL" in each)
    assert "so they are blank" in caveat
    results = record["results"]
    assert results["engine"] is None
    assert results["processed_pageviews"] == results["published_pageviews"] > 3_000
    assert all(view["lag_p99_ms"] is not None for view in results["views"])


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_leaves_nothing(
    spark_door: Callable[..., Door],
    cluster: Standalone,
    nothing_left: NothingLeft,
    how: signal.Signals,
) -> None:
    run = spark_door("500", "60", "5", "1.0")
    run.until(r"^\[4/")
    assert len(cluster.applications()) == len(list(cluster.shared.iterdir())) == 1
    run.signal(how)
    assert run.wait() == (130 if how is signal.SIGINT else -9), run.output
    check_nothing_runs(cluster)
    nothing_left()
