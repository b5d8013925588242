"""End-to-end tests of engines on a shop whose rows are updated and deleted: every view is right, is
followed and can be read, with any settings and after a kill; the ports on which they listen; and
messages that they can't read."""

import re
from collections.abc import Callable

import pytest
from dotenv import dotenv_values

from racetrack import plugins
from racetrack.config import Settings
from racetrack.engines import find_engine
from racetrack.engines.shared.tests import upsert_e2e
from tests.e2e.shared import check_views_after_a_kill, ended_well, refusal_of, run_folder, stack_up
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
    door = upsert_e2e.run_with_changes(engine, 1_000, **settings)
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
        ("pg", {"POSTGRES_UNLOGGED": "true"}),
    ],
)
def test_every_view_is_right_after_a_kill(
    engine: str, changed: dict[str, str], nothing_left: Callable[[], None]
) -> None:
    """Check that it continues from its last commit or reads all input again, and counts nothing
    twice."""
    door = upsert_e2e.run_with_changes(engine, 1_000, "--fault kill:engine@4s", **changed)
    run = read_run(run_folder(door.output))
    check_views_after_a_kill(run, door)
    assert run["results"]["processed_events"] == run["results"]["published_events"]
    if engine == "pg":  # its client gets errors while the server is dead
        upsert_e2e.check_views_are_followed_and_read(door, may_fail=True)
        log = (run_folder(door.output) / "stack" / "postgres.log").read_text()
        assert ("automatic recovery in progress" in log) is ("POSTGRES_UNLOGGED" not in changed)
    nothing_left()


def test_views_that_are_declared_are_right_after_a_kill() -> None:
    """Pathway's views of the shop are programmed, and those of this workload are not."""
    words = "1000 10 10 1.0 --workload ads --fault kill:engine@4s"
    upsert_e2e.check_all_are_right(upsert_e2e.run("pathway", words), "ads")


@pytest.mark.parametrize("engine", ["kstreams", "pathway"])
def test_its_views_stand_without_anything_loaded_and_it_listens_on_nothing(
    engine: str, settings: Settings
) -> None:
    with stack_up(engine, upsert_e2e.WITHIN_S):
        assert upsert_e2e.listening(engine, settings) == []
        upsert_e2e.check_stack_that_is_up()


@pytest.mark.parametrize(
    ("engine", "value", "reason"),
    [
        ("dh", None, r"no value \(a tombstone\)"),
        ("flink", b"hello", "not JSON: 'hello'"),
        # A message without a value is skipped: Pathway does not report it.
        ("pathway", b"hello", "not JSON: 'hello'"),
    ],
)
def test_a_message_that_is_no_pageview_ends_the_run_and_is_named(
    engine: str, value: bytes | None, reason: str, nothing_left: Callable[[], None]
) -> None:
    outcome = refusal_of(engine, value)
    place = rf"{find_engine(engine).title} can't take pageviews/2 at offset \d+"
    assert re.fullmatch(rf"{place}: {reason} \(.+\)", outcome), outcome
    nothing_left()
