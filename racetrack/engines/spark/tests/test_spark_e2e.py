"""End-to-end tests of Spark: every view is right after updates, deletions and a
kill; its ports are open on this machine only."""

import pytest

from racetrack.config import Settings
from racetrack.engines.shared.tests import upsert_e2e
from tests.e2e.shared import ended_well, run_folder, stack_up
from tests.run_json import read_run

pytestmark = pytest.mark.e2e


def test_the_shop_s_views_are_right_followed_and_read_after_updates_and_deletions() -> None:
    changes = {"UPDATES_PER_SECOND": "20", "DELETES_PER_SECOND": "2"}
    door = upsert_e2e.run("spark", "500 10 10 1.0", **upsert_e2e.CHANGES | changes)
    ended_well(door)
    upsert_e2e.check_all_are_right(door)
    upsert_e2e.check_views_are_followed_and_read(door)


@pytest.mark.parametrize(
    "settings",
    [{}, {"SPARK_AFTER_A_KILL": "anew", "SPARK_TRIGGER_MS": "300"}],
)
def test_nothing_is_lost_or_counted_twice_after_a_kill(settings: dict[str, str]) -> None:
    words = "500 10 10 1.0 --workload ads --fault kill:engine@8s"
    door = upsert_e2e.run("spark", words, **settings)
    found = read_run(run_folder(door.output))
    assert len(found["faults"]["done"]) == 1
    upsert_e2e.check_all_are_right(door, "ads")
    assert found["results"]["processed_events"] == found["results"]["published_events"]


def test_nobody_else_can_reach_what_it_listens_on(settings: Settings) -> None:
    """Spark's driver listens for executors, even if there are none."""
    with stack_up("spark", upsert_e2e.WITHIN_S):
        upsert_e2e.check_loopback_only(["spark"], settings)
