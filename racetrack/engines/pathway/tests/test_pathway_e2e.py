"""End-to-end tests of Pathway: every view is right after updates, deletions and a kill, with any
settings; and it listens on no port."""

from collections.abc import Callable, Iterator

import pytest

from racetrack.config import Settings
from racetrack.engines.shared.tests import upsert_e2e
from racetrack.workloads.contract import find_workload
from tests.e2e.shared import Door, check_views_after_a_kill, ended_well, run_folder, stack_up
from tests.run_json import read_run

pytestmark = pytest.mark.e2e

KINDS = {
    "as delivered": {},
    "otherwise": {
        "PATHWAY_AUTOCOMMIT_MS": "300",
        "PATHWAY_CLOCK_MS": "500",
        "PATHWAY_THREADS": "2",
    },
}


@pytest.fixture(scope="module", params=KINDS)
def finished(request: pytest.FixtureRequest) -> Door:
    """Run an experiment with each of the KINDS of settings."""
    door = upsert_e2e.run("pathway", 1_000, **KINDS[request.param])
    ended_well(door)
    return door


def test_every_view_is_right_after_updates_and_deletions(finished: Door) -> None:
    upsert_e2e.check_every_view_is_right(finished)


def test_its_views_are_followed_and_read(finished: Door) -> None:
    upsert_e2e.check_views_are_followed_and_read(finished)


def test_its_progress_came_while_it_ran(finished: Door) -> None:
    upsert_e2e.check_progress_came_while_it_ran(finished, "pathway", updates=20)
    assert "pathway" in read_run(run_folder(finished.output))["versions"]


@pytest.mark.parametrize("workload", ["shop", "ads"])
def test_every_view_is_right_after_a_kill(workload: str, nothing_left: Callable[[], None]) -> None:
    """Check that it reads all input again, and counts nothing twice."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UPDATES_PER_SECOND", "30")
        arguments = ("1000", "10", "10", "1.0", "--workload", workload, "--verify")
        door = Door("run_experiment.sh", "pathway", *arguments, "--fault", "kill:engine@4s")
        door.wait(upsert_e2e.WITHIN_S)
    run = read_run(run_folder(door.output))
    if workload == "shop":
        check_views_after_a_kill(run, door)
    else:
        views = find_workload("ads").views
        assert upsert_e2e.statuses(door) == {view.name: "right" for view in views}, door.output
    assert run["results"]["processed_pageviews"] == run["results"]["published_pageviews"]
    nothing_left()


@pytest.fixture(scope="module")
def up() -> Iterator[Door]:
    """Start a stack with `race up`."""
    with stack_up("pathway", upsert_e2e.WITHIN_S) as door:
        yield door


def test_it_listens_on_nothing(up: Door, settings: Settings) -> None:
    assert upsert_e2e.listening("pathway", settings) == []


def test_its_views_stand_without_anything_loaded(up: Door) -> None:
    upsert_e2e.check_stack_that_is_up()
