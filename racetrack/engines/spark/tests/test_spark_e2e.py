"""End-to-end tests of Spark: every view that it provides is right after updates, deletions and a
kill; its ports are open on this machine only."""

import ipaddress
from collections.abc import Iterator

import pytest

from racetrack.config import Settings
from racetrack.engines.shared.tests import upsert_e2e
from racetrack.engines.spark.engine import NOT_MADE
from racetrack.workloads.contract import find_workload
from tests.e2e.shared import Door, ended_well, run_folder, stack_up
from tests.run_json import read_run

pytestmark = pytest.mark.e2e

WITHIN_S = 400
RUN = ("run_experiment.sh", "spark", "500", "10", "10", "1.0", "--verify")
CHANGES = upsert_e2e.CHANGES | {"UPDATES_PER_SECOND": "20", "DELETES_PER_SECOND": "2"}


def run(*further: str, **settings: str) -> Door:
    """Run a verified experiment."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        door = Door(*RUN, *further)
        door.wait(WITHIN_S)
    return door


@pytest.fixture(scope="module")
def shop() -> Door:
    """Run an experiment with updates and deletions, in which views are followed and read."""
    door = run(**CHANGES)
    ended_well(door)
    return door


def test_the_shop_s_views_are_right_after_updates_and_deletions(shop: Door) -> None:
    assert upsert_e2e.statuses(shop) == {
        view.name: "absent" if view.name in NOT_MADE else "right"
        for view in find_workload("shop").views
    }


def test_the_views_that_it_makes_are_followed_and_read(shop: Door) -> None:
    upsert_e2e.check_views_are_followed_and_read(shop)


@pytest.mark.parametrize(
    "settings",
    [{}, {"SPARK_AFTER_A_KILL": "anew", "SPARK_TRIGGER_MS": "300"}],
)
def test_nothing_is_lost_or_counted_twice_after_a_kill(settings: dict[str, str]) -> None:
    door = run("--workload", "ads", "--fault", "kill:engine@8s", **settings)
    found = read_run(run_folder(door.output))
    assert len(found["faults"]["done"]) == 1
    views = find_workload("ads").views
    assert upsert_e2e.statuses(door) == {view.name: "right" for view in views}, door.output
    assert found["results"]["processed_events"] == found["results"]["published_events"]


@pytest.fixture(scope="module")
def up() -> Iterator[Door]:
    """Start a stack with `race up`."""
    with stack_up("spark", WITHIN_S) as door:
        yield door


def test_nobody_else_can_reach_what_it_listens_on(up: Door, settings: Settings) -> None:
    """Spark's driver listens for executors, even if there are none."""
    listened_on = upsert_e2e.listening("spark", settings)
    assert listened_on
    assert all(ipaddress.ip_address(address).is_loopback for address in listened_on), listened_on
