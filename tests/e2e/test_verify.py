"""End-to-end tests of views against their sources, after rows were updated and deleted. Tests of
the engines verify stacks that were started by hand."""

from collections.abc import Iterator

import pytest

from racetrack.workloads.shop.catalogue import VIEWS
from tests.e2e.shared import (
    Door,
    check_answers,
    check_views_followed,
    ended_well,
    purchases_without_marks,
    run_folder,
    write_odd_rows,
)
from tests.run_json import read_run
from tests.some_engines import EXAMPLE

pytestmark = pytest.mark.e2e

TRACER_EVENTS_PER_S = 12
CHANGES = {
    "UPDATES_PER_SECOND": "30",
    "DELETES_PER_SECOND": "5",
    "TRACER_EVENTS_PER_SECOND": str(TRACER_EVENTS_PER_S),
    "READS_PER_SECOND": "6",
}
WITHIN_S = 600.0
NAMES = {view.name for view in VIEWS}


@pytest.fixture(scope="module")
def finished() -> Iterator[Door]:
    """Run a verified experiment with updated prices, flags and purchases, and deleted purchases."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in CHANGES.items():
            patch.setenv(name, value)
        door = Door("run_experiment.sh", EXAMPLE, "4000", "7", "5", "1.0", "--verify")
        write_odd_rows(door)
        ended_well(door, WITHIN_S)
    yield door


def test_every_view_is_right_after_updates_and_deletions(finished: Door) -> None:
    run = read_run(run_folder(finished.output))
    verified = run["verified"]
    assert {name: view["status"] for name, view in verified["views"].items()} == dict.fromkeys(
        NAMES, "right"
    )
    assert verified["drained_after_s"] < verified["drain_within_s"]
    assert verified["end_offsets"] == run["measured"]["end_offsets"]
    assert verified["source_rows"]["pageviews"] == sum(verified["end_offsets"]) > 40_000
    for name, view in verified["views"].items():
        assert view["compared"] > 0, name
    # Rows were deleted: there were 1,000 purchases at first, and each second added three.
    assert purchases_without_marks(run, run_folder(finished.output)) < 1_000
    assert "[6/7] compare every view with the sources" in finished.output


def test_its_views_are_followed_by_their_tracer_events(finished: Door) -> None:
    folder = run_folder(finished.output)
    check_views_followed(read_run(folder), folder, TRACER_EVENTS_PER_S)


def test_its_views_are_read_and_answered(finished: Door) -> None:
    run = read_run(run_folder(finished.output))
    check_answers(run)
    assert not any(read["errors"] for read in run["results"]["reads"])
