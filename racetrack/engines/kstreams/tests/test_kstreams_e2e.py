"""End-to-end tests of Kafka Streams: every view is right after updates, deletions and a kill, with
any settings; and the ports on which it listens."""

from collections.abc import Callable, Iterator

import pytest

from racetrack.config import Settings
from racetrack.engines.shared.tests import upsert_e2e
from tests.e2e.shared import Door, check_views_after_a_kill, ended_well, run_folder, stack_up
from tests.run_json import read_run

pytestmark = pytest.mark.e2e

# The default settings, and settings as different from them as possible.
KINDS = {
    "as delivered": {},
    "otherwise": {
        "KSTREAMS_GUARANTEE": "exactly_once_v2",
        "KSTREAMS_THREADS": "2",
        "KSTREAMS_CACHE_MB": "0",
        "KSTREAMS_STORE": "in_memory",
        "KSTREAMS_CHANGELOG": "off",
        "KSTREAMS_AFTER_A_KILL": "anew",
        "KSTREAMS_JVM_OPTIONS": "-XX:+UseParallelGC",
        "KSTREAMS_PROPERTIES": "producer.batch.size=65536 max.task.idle.ms=-1",
    },
}


@pytest.fixture(scope="module", params=KINDS)
def finished(request: pytest.FixtureRequest) -> Door:
    """Run an experiment with each of the KINDS of settings."""
    door = upsert_e2e.run("kstreams", 1_000, **KINDS[request.param])
    ended_well(door)
    return door


def test_every_view_is_right_after_updates_and_deletions(finished: Door) -> None:
    upsert_e2e.check_every_view_is_right(finished)


def test_its_views_are_followed_and_read(finished: Door) -> None:
    upsert_e2e.check_views_are_followed_and_read(finished)


def test_its_progress_came_while_it_ran(finished: Door) -> None:
    upsert_e2e.check_progress_came_while_it_ran(finished, "kstreams", updates=20)
    assert "kafka-streams" in read_run(run_folder(finished.output))["versions"]


def test_every_view_is_right_after_a_kill(nothing_left: Callable[[], None]) -> None:
    """Check that it continues from its last commit, and counts nothing twice."""
    exactly_once = {"KSTREAMS_GUARANTEE": "exactly_once_v2"}
    door = upsert_e2e.run("kstreams", 1_000, "--fault", "kill:engine@4s", **exactly_once)
    check_views_after_a_kill(read_run(run_folder(door.output)), door)
    nothing_left()


@pytest.fixture(scope="module")
def up() -> Iterator[Door]:
    """Start a stack with `race up`."""
    with stack_up("kstreams", upsert_e2e.WITHIN_S) as door:
        yield door


def test_it_listens_on_nothing(up: Door, settings: Settings) -> None:
    assert upsert_e2e.listening("kstreams", settings) == []


def test_its_views_stand_without_anything_loaded(up: Door) -> None:
    upsert_e2e.check_stack_that_is_up()
