"""End-to-end tests of engines on a shop whose rows are updated and deleted: every view is right, is
followed and can be read, with any settings and after a kill; and the ports on which they listen."""

from collections.abc import Callable, Iterator

import pytest
from dotenv import dotenv_values

from racetrack import plugins
from racetrack.config import Settings
from racetrack.engines.shared.tests import upsert_e2e
from racetrack.workloads.contract import find_workload
from tests.e2e.shared import Door, check_views_after_a_kill, ended_well, run_folder, stack_up
from tests.run_json import read_run

pytestmark = pytest.mark.e2e

PUBLISHED = {"DEEPHAVEN_PUBLISH": "true"}
FILE = plugins.ENGINES / "flink" / "tuned.env"
TUNED = {name: value or "" for name, value in dotenv_values(FILE).items()}
# Engines with their default settings, and with settings as different from them as possible. Flink's
# tasks are parallel, so that they may overtake each other.
KINDS: dict[str, tuple[str, dict[str, str]]] = {
    "dh": ("dh", {}),
    "dh published": ("dh", PUBLISHED),
    "flink": ("flink", {"FLINK_PARALLELISM": "2"}),
    "flink as tuned": ("flink", {"FLINK_PARALLELISM": "2", **TUNED}),
    "kstreams": ("kstreams", {}),
    "kstreams otherwise": (
        "kstreams",
        {
            "KSTREAMS_GUARANTEE": "exactly_once_v2",
            "KSTREAMS_THREADS": "2",
            "KSTREAMS_CACHE_MB": "0",
            "KSTREAMS_STORE": "in_memory",
            "KSTREAMS_CHANGELOG": "off",
            "KSTREAMS_AFTER_A_KILL": "anew",
            "KSTREAMS_JVM_OPTIONS": "-XX:+UseParallelGC",
            "KSTREAMS_PROPERTIES": "producer.batch.size=65536 max.task.idle.ms=-1",
        },
    ),
    "pathway": ("pathway", {}),
    "pathway otherwise": (
        "pathway",
        {"PATHWAY_AUTOCOMMIT_MS": "300", "PATHWAY_CLOCK_MS": "500", "PATHWAY_THREADS": "2"},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_view_is_right_followed_and_read(kind: str, nothing_left: Callable[[], None]) -> None:
    engine, settings = KINDS[kind]
    door = upsert_e2e.run(engine, 1_000, **settings)
    ended_well(door)
    nothing_left()
    upsert_e2e.check_every_view_is_right(door)
    upsert_e2e.check_views_are_followed_and_read(door)
    upsert_e2e.check_progress_came_while_it_ran(door, engine, updates=20)
    assert "] compare every view with the sources" in door.output


@pytest.mark.parametrize(
    ("engine", "changed"),
    [
        ("dh", PUBLISHED),
        ("kstreams", {"KSTREAMS_GUARANTEE": "exactly_once_v2"}),
        ("pathway", {}),
        ("pg", {}),
    ],
)
def test_every_view_is_right_after_a_kill(
    engine: str, changed: dict[str, str], nothing_left: Callable[[], None]
) -> None:
    """Check that it continues from its last commit or reads all input again, and counts nothing
    twice."""
    door = upsert_e2e.run(engine, 1_000, "--fault", "kill:engine@4s", **changed)
    run = read_run(run_folder(door.output))
    check_views_after_a_kill(run, door)
    assert run["results"]["processed_events"] == run["results"]["published_events"]
    if engine == "pg":  # its client gets errors while the server is dead
        upsert_e2e.check_views_are_followed_and_read(door, may_fail=True)
    nothing_left()


def test_views_that_are_declared_are_right_after_a_kill() -> None:
    """Pathway's views of the shop are programmed, and those of this workload are not."""
    words = "pathway 1000 10 10 1.0 --workload ads --verify --fault kill:engine@4s"
    door = Door("run_experiment.sh", *words.split())
    door.wait(upsert_e2e.WITHIN_S)
    right = {view.name: "right" for view in find_workload("ads").views}
    assert upsert_e2e.statuses(door) == right, door.output


@pytest.fixture(scope="module", params=["kstreams", "pathway"])
def up(request: pytest.FixtureRequest) -> Iterator[str]:
    """Start a stack with `race up`; yield its engine."""
    with stack_up(request.param, upsert_e2e.WITHIN_S):
        yield str(request.param)


def test_its_views_stand_without_anything_loaded_and_it_listens_on_nothing(
    up: str, settings: Settings
) -> None:
    assert upsert_e2e.listening(up, settings) == []
    upsert_e2e.check_stack_that_is_up()
