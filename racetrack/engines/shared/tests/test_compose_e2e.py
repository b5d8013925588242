"""End-to-end tests of engines in containers: verification of all their views, of some after
updates, deletions and a kill."""

from typing import Any

import pytest

from racetrack.config import Settings
from racetrack.engines import find_engine
from racetrack.engines.shared.tests import upsert_e2e
from racetrack.engines.shared.tests.programs import ENGINES
from racetrack.workloads.contract import find_workload
from tests.e2e.shared import (
    Door,
    check_views_after_a_kill,
    ended_well,
    purchases_without_marks,
    run_folder,
)
from tests.run_json import read_run

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("engine", ENGINES)
def test_every_view_of_an_engine_is_right(engine: str, contained: Settings) -> None:
    words = ("500", "5", "10", "1.0", "--verify", "--workload", "ads")
    door = Door("run_experiment.sh", engine, *words)
    run = ended_well(door)
    assert run["runtime"] == "compose"
    right = {view.name: "right" for view in find_workload("ads").views}
    assert upsert_e2e.statuses(door) == right
    assert run["results"]["processed_events"] == run["results"]["published_events"] > 5_000
    assert run["versions"][engine]
    assert run["results"]["processes"][engine]["cpu_s"] > 0


def checked(engine: str, *further: str) -> dict[str, Any]:
    """Check the record of a verified experiment on changing rows; return it."""
    # Long enough for containers to restart and report updates.
    door = Door("run_experiment.sh", engine, "500", "5", "25", "1.0", "--verify", *further)
    door.wait(400)
    run = read_run(run_folder(door.output))
    assert run["runtime"] == "compose"
    check_views_after_a_kill(run, door)
    assert run["verified"]["views"].keys() == {view.name for view in find_workload("shop").views}
    # Rows were deleted: there were 1,000 purchases at first, and each second added three.
    assert purchases_without_marks(run, run_folder(door.output)) < 1_000
    services = set(find_engine(engine).services)
    assert run["measured"]["cpu_s"].keys() >= services
    assert run["versions"].keys() >= services
    return run


@pytest.fixture
def changing(contained: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UPDATES_PER_SECOND", "30")
    monkeypatch.setenv("DELETES_PER_SECOND", "5")


@pytest.mark.usefixtures("changing")
def test_every_view_is_right_after_a_kill() -> None:
    run = checked("pg", "--fault", "kill:engine@4s")
    assert run["faults"]["done"][0]["services"] == list(find_engine("pg").services)


@pytest.mark.usefixtures("changing")
def test_every_view_is_right_and_as_old_as_its_mini_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The lag of views, measured by tracer events, must include the interval of mini-batches.
    `dt_ms`, the published measure, does not: it is sampled just after an update."""
    monkeypatch.setenv("FLINK_MINI_BATCH_MS", "5000")
    monkeypatch.setenv("TRACER_EVENTS_PER_SECOND", "12")
    run = checked("flink")
    assert run["outcome"] == "ok"
    fresh_ms = run["results"]["dt_ms"]["p50"]
    for view in run["results"]["views"]:
        assert view["lag_p50_ms"] > max(1_500, 2 * fresh_ms), (view, fresh_ms)
