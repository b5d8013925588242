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
    check_views_after_a_kill,
    ended_well,
    purchases_without_marks,
    run_folder,
)
from tests.run_json import read_run

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("engine", ENGINES)
def test_every_view_of_an_engine_is_right(engine: str, contained: Settings) -> None:
    door = upsert_e2e.run(engine, "500 5 10 1.0 --workload ads")
    run = ended_well(door)
    assert run["runtime"] == "compose"
    upsert_e2e.check_all_are_right(door, "ads")
    assert run["results"]["processed_events"] == run["results"]["published_events"] > 5_000
    assert run["versions"][engine]
    assert run["results"]["processes"][engine]["cpu_s"] > 0


def checked(engine: str, further: str = "", **settings: str) -> dict[str, Any]:
    """Check the record of a verified experiment on changing rows; return it."""
    changes = {"UPDATES_PER_SECOND": "30", "DELETES_PER_SECOND": "5"}
    # Long enough for containers to restart and report updates.
    door = upsert_e2e.run(engine, f"500 5 25 1.0 {further}", **changes, **settings)
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


@pytest.mark.usefixtures("contained")
def test_every_view_is_right_after_a_kill() -> None:
    run = checked("pg", "--fault kill:engine@4s")
    assert run["faults"]["done"][0]["services"] == list(find_engine("pg").services)


@pytest.mark.usefixtures("contained")
def test_every_view_is_right_and_as_old_as_its_mini_batches() -> None:
    """The lag of views, measured by tracer events, must include the interval of mini-batches.
    `dt_ms`, the published measure, does not: it is sampled just after an update."""
    run = checked("flink", FLINK_MINI_BATCH_MS="5000", TRACER_EVENTS_PER_SECOND="12")
    assert run["outcome"] == "ok"
    fresh_ms = run["results"]["dt_ms"]["p50"]
    for view in run["results"]["views"]:
        assert view["lag_p50_ms"] > max(1_500, 2 * fresh_ms), (view, fresh_ms)
