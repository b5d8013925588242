"""End-to-end tests with a Spark that the user provides: a real standalone cluster."""

import signal
from collections.abc import Callable, Iterator

import pytest

from racetrack.engines.shared.tests import elsewhere_e2e, upsert_e2e
from racetrack.engines.spark.engine import NOT_MADE
from racetrack.engines.spark.tests.standalone import Standalone, running_standalone
from racetrack.workloads.contract import find_workload
from tests.e2e.shared import Door
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e

OpenDoor = Callable[..., Door]
NothingLeft = Callable[[], None]
# With the default, Spark uses all CPU, and the generator may be late.
CALM = {"SPARK_TRIGGER_MS": "1000"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with running_standalone(tmp_path_factory.mktemp("spark")) as running:
        yield running


@pytest.fixture(autouse=True)
def provided(cluster: Standalone, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all runs use the test's cluster."""
    for name, value in {**cluster.environment, "SPARK_HEAP": "1g", **CALM}.items():
        monkeypatch.setenv(name, value)


def left(cluster: Standalone) -> list[str]:
    return [*cluster.applications(), *(path.name for path in cluster.shared.iterdir())]


def test_a_run_is_verified_and_leaves_nothing(
    door: OpenDoor, cluster: Standalone, nothing_left: NothingLeft, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACER_EVENTS_PER_SECOND", "12")
    run = elsewhere_e2e.begun(door, "spark", *elsewhere_e2e.BRIEF, "--verify")
    (application,) = cluster.applications()
    assert application.startswith("racetrack_")
    assert run.wait(400) == 0, run.output
    wait_until(lambda: not left(cluster), "end of the application and its folder", 80, 0.5)
    nothing_left()
    assert f"working folders, with logs, of the application {application}" in run.output
    assert upsert_e2e.statuses(run) == {
        view.name: "absent" if view.name in NOT_MADE else "right"
        for view in find_workload("shop").views
    }
    elsewhere_e2e.check_followed(run, "SPARK_MASTER_URL")


@elsewhere_e2e.interrupted
def test_an_interrupted_run_leaves_nothing(
    door: OpenDoor, cluster: Standalone, nothing_left: NothingLeft, how: signal.Signals
) -> None:
    run = elsewhere_e2e.begun(door, "spark", *elsewhere_e2e.LONG)
    assert len(cluster.applications()) == len(list(cluster.shared.iterdir())) == 1
    elsewhere_e2e.check_interrupted(run, how, lambda: left(cluster))
    nothing_left()
