"""End-to-end tests of engines that write to Redis: every view is right, counts survive a kill as
promised, and ports are open on this machine only."""

from collections.abc import Callable

import pytest

from racetrack.config import Settings
from racetrack.engines.shared.tests import upsert_e2e
from racetrack.engines.shared.tests.programs import WRITE_TO_REDIS
from tests.e2e.shared import check_answers, ended_well, run_folder, stack_up
from tests.run_json import read_run

RUN = "1000 8 10 1.0 --workload ads"
pytestmark = [pytest.mark.e2e, pytest.mark.parametrize("engine", WRITE_TO_REDIS)]

# Settings as different from the defaults as possible. tests/e2e/test_workloads.py tests the
# defaults.
OTHERWISE = {
    "apex": {
        "APEX_GUARANTEE": "at_most_once",
        "APEX_LOCALITY": "thread_local",
        "APEX_WINDOW_MS": "100",
        "APEX_FLUSH_MS": "100",
    },
    "storm": {"STORM_PARALLELISM": "2", "STORM_FLUSH_MS": "100"},
}


def counted_after_a_kill(engine: str, **settings: str) -> tuple[int, int]:
    """Kill an engine between two writes; return the numbers of events counted and published."""
    door = upsert_e2e.run(engine, f"{RUN} --fault kill:engine@12s", **settings)
    found = read_run(run_folder(door.output))
    assert "verified" in found, door.output
    results = found["results"]
    return results["processed_events"], results["published_events"]


def test_every_view_is_right_when_it_is_set_otherwise(engine: str) -> None:
    """During the run, a client also reads the views."""
    settings = {"ADS_WITH_SKEW": "true", "READS_PER_SECOND": "2", **OTHERWISE[engine]}
    door = upsert_e2e.run(engine, RUN, **settings)
    found = ended_well(door)
    upsert_e2e.check_all_are_right(door, "ads")
    results = found["results"]
    assert found["verified"]["views"]["campaign_windows"]["compared"] > 0
    assert results["processed_events"] == results["published_events"]
    assert results["processes"][engine]["cpu_s"] > 0
    assert {engine, "redis"} <= found["versions"].keys()
    check_answers(found)
    assert not any(read["errors"] for read in results["reads"])


def test_after_a_kill_nothing_is_lost(engine: str, nothing_left: Callable[[], None]) -> None:
    counted, published = counted_after_a_kill(engine)
    assert counted > published
    nothing_left()


def test_after_a_kill_nothing_is_counted_twice(engine: str) -> None:
    at_most_once = {f"{engine.upper()}_GUARANTEE": "at_most_once"}
    counted, published = counted_after_a_kill(engine, **at_most_once)
    assert 0 < counted < published


def test_it_listens_on_this_machine_alone(
    engine: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine listens on one port only: of Apex's buffer server, or of the ZooKeeper in
    Storm."""
    monkeypatch.setenv("WORKLOAD", "ads")
    with stack_up(engine, upsert_e2e.WITHIN_S):
        assert upsert_e2e.listening(engine, settings) == ["127.0.0.1"]
