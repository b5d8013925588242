"""End-to-end tests of Deephaven with published views: every view is right after updates, deletions
and a kill."""

from collections.abc import Callable

import pytest

from racetrack.engines.shared.tests import upsert_e2e
from tests.e2e.shared import Door, check_views_after_a_kill, ended_well, run_folder
from tests.run_json import read_run

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def finished() -> Door:
    door = upsert_e2e.run("dh", 1_000, DEEPHAVEN_PUBLISH="true")
    ended_well(door)
    return door


def test_every_view_is_right_after_updates_and_deletions(finished: Door) -> None:
    upsert_e2e.check_every_view_is_right(finished)


def test_its_views_are_followed_and_read(finished: Door) -> None:
    upsert_e2e.check_views_are_followed_and_read(finished)


def test_its_progress_came_while_it_ran(finished: Door) -> None:
    folder = run_folder(finished.output)
    results = read_run(folder)["results"]
    assert results["processed_pageviews"] == results["published_pageviews"]
    assert "client" not in results["processes"]


def test_every_view_is_right_after_a_kill(nothing_left: Callable[[], None]) -> None:
    door = upsert_e2e.run("dh", 1_000, "--fault", "kill:engine@4s", DEEPHAVEN_PUBLISH="true")
    check_views_after_a_kill(read_run(run_folder(door.output)), door)
    nothing_left()
