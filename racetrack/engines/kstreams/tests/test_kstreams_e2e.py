"""Kafka Streams on the real stack: every view right after updates, deletions and a kill, however
it is set; what it listens on."""

from collections.abc import Callable, Iterator

import psutil
import pytest

from racetrack.config import Settings
from racetrack.stack.runtime import running_stack
from racetrack.workloads.shop.catalogue import VIEWS
from tests.e2e.shared import (
    Door,
    check_answers,
    check_views_after_a_kill,
    check_views_followed,
    ended_well,
    purchases_without_marks,
    run_folder,
    stack_up,
    write_odd_rows,
)
from tests.run_json import read_run

pytestmark = pytest.mark.e2e

TRACER_EVENTS_PER_S = 12
CHANGES = {
    "UPDATES_PER_SECOND": "30",
    "DELETES_PER_SECOND": "5",
    "TRACER_EVENTS_PER_SECOND": str(TRACER_EVENTS_PER_S),
    "READS_PER_SECOND": "6",
}
RUN = ("run_experiment.sh", "kstreams", "1000", "15", "10", "1.0", "--verify")
WITHIN_S = 400
# As it is set, and as far from that as its settings go.
KINDS = {
    "as delivered": {},
    "otherwise": {
        "KSTREAMS_GUARANTEE": "exactly_once_v2",
        "KSTREAMS_THREADS": "2",
        "KSTREAMS_CACHE_MB": "0",
        "KSTREAMS_STORE": "in_memory",
        "KSTREAMS_CHANGELOG": "off",
    },
}


def run(*further: str, **settings: str) -> Door:
    """A verified experiment in which rows of the shop change and go."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (CHANGES | settings).items():
            patch.setenv(name, value)
        door = Door(*RUN, *further)
        write_odd_rows(door)
        door.wait(WITHIN_S)
    return door


@pytest.fixture(scope="module", params=KINDS)
def finished(request: pytest.FixtureRequest) -> Door:
    """One of each kind."""
    door = run(**KINDS[request.param])
    ended_well(door)
    return door


def test_every_view_is_right_after_updates_and_deletions(finished: Door) -> None:
    run = read_run(run_folder(finished.output))
    verified = run["verified"]
    assert {name: view["status"] for name, view in verified["views"].items()} == {
        view.name: "right" for view in VIEWS
    }, finished.output
    for name, view in verified["views"].items():
        assert view["compared"] > 0, name
    # The shop began with 1,000 purchases, and three a second came.
    assert purchases_without_marks(run, run_folder(finished.output)) < 1_000


def test_its_views_are_followed_by_their_marks(finished: Door) -> None:
    folder = run_folder(finished.output)
    check_views_followed(read_run(folder), folder, TRACER_EVENTS_PER_S)


def test_its_views_are_read_by_a_client_that_keeps_them(finished: Door) -> None:
    run = read_run(run_folder(finished.output))
    check_answers(run)
    assert not any(read["errors"] for read in run["results"]["reads"])


def test_its_progress_came_while_it_ran(finished: Door) -> None:
    folder = run_folder(finished.output)
    assert len((folder / "kstreams_sample_dt.log").read_text().splitlines()) > 20
    run = read_run(folder)
    assert run["results"]["processed_pageviews"] == run["results"]["published_pageviews"]
    assert run["results"]["processes"]["kstreams"]["cpu_s"] > 0
    assert "kafka-streams" in run["versions"]


def test_every_view_is_right_after_a_kill(nothing_left: Callable[[], None]) -> None:
    """It goes on from its last commit, and nothing is counted twice."""
    door = run("--fault", "kill:engine@4s", KSTREAMS_GUARANTEE="exactly_once_v2")
    check_views_after_a_kill(read_run(run_folder(door.output)), door)
    nothing_left()


@pytest.fixture(scope="module")
def up() -> Iterator[Door]:
    """A stack that was put up by hand."""
    with stack_up("kstreams", WITHIN_S) as door:
        yield door


def test_it_listens_on_nothing(up: Door, settings: Settings) -> None:
    found = running_stack(settings)
    assert found
    assert [
        connection.laddr
        for pid in found[1].services["kstreams"]
        for connection in psutil.Process(pid).net_connections(kind="tcp")
        if connection.status == psutil.CONN_LISTEN
    ] == []


def test_its_views_stand_without_anything_loaded(up: Door) -> None:
    verified = Door("race", "verify")
    assert verified.wait(WITHIN_S) == 0, verified.output
    assert "every view is right" in verified.output
