"""Tests of the loads that a capacity search can raise, in particular inserts, whose lag tracer
events show."""

from pathlib import Path
from typing import cast

import psutil
import pytest

from racetrack.config import load
from racetrack.errors import UsageError
from racetrack.results.folder import RunFolder
from racetrack.results.run import Window
from racetrack.results.search import PAGEVIEWS
from racetrack.run import loads
from racetrack.run.loads import Inserts
from racetrack.run.session import Session
from racetrack.run.trials import DURATIONS, Saturation, drain, try_rate
from racetrack.workloads.contract import find_workload
from tests.run.fakes import FakeEngine
from tests.run.fluid_inserts import FluidInserts
from tests.run.fluid_session import FakeClock

INSERTS = "purchases"
# Capacities of database, CDC and engine, in inserts per second, and the stage that is the
# bottleneck.
WAYS = [
    ((900.0, 3_000.0, 9_000.0), "database"),
    ((4_000.0, 1_500.0, 9_000.0), "cdc"),
    ((4_000.0, 3_000.0, 700.0), "engine"),
]


class Drive:
    """Inserts through stages of known capacities."""

    def __init__(self, logs: Path, stages_per_s: tuple[float, float, float]) -> None:
        clock = FakeClock()
        self.folder = RunFolder.create(logs, "fake", "way")
        self.way = FluidInserts(clock, self.folder, stages_per_s)
        settings = load({"TRACER_EVENTS_PER_SECOND": "12"})
        workload = find_workload(settings.workload)
        session = cast(Session, self.way)
        self.load = Inserts(session, self.folder.path, workload, settings)

    def last_saturation(self) -> Window:
        saturation = Saturation(self.load, self.folder.path, self.load.start_per_s, DURATIONS)
        assert saturation.warm_up().is_warm
        return saturation.measure()


@pytest.mark.parametrize(("stages_per_s", "limits"), WAYS, ids=[limits for _, limits in WAYS])
def test_the_path_is_as_fast_as_its_slowest_stage_for_which_the_most_wait(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stages_per_s: tuple[float, float, float],
    limits: str,
) -> None:
    at = Drive(tmp_path, stages_per_s)
    worked = at.load.work(at.last_saturation(), DURATIONS.batch_s)
    assert worked.work.per_s == pytest.approx(min(stages_per_s), rel=0.01)
    assert worked.work.is_capacity
    assert 4 < worked.work.backlog_min_s < worked.work.backlog_max_s < 31
    assert sum(worked.backlog_by_stage.values()) == pytest.approx(1)
    assert worked.backlog_by_stage[limits] > 0.9


@pytest.mark.slow
def test_a_rate_below_the_slowest_stage_is_held_and_one_above_it_is_not(tmp_path: Path) -> None:
    at = Drive(tmp_path, (4_000, 1_500, 9_000))
    at.last_saturation()
    drain(at.load, 1_400)
    look = at.load.sample()
    assert 0 <= look.due - look.counted <= 1_400
    rows = try_rate(at.load, 1_400, 2_000, DURATIONS)
    assert not rows.ended_early
    assert rows.lag_p99_ms < 1_200
    assert rows.handed_over_per_s == pytest.approx(1_412, rel=0.01)
    assert try_rate(at.load, 1_600, 2_000, DURATIONS).ended_early


def test_tracer_events_are_turned_on_for_inserts_and_left_if_there_are_more() -> None:
    engine = FakeEngine()
    assert loads.settings_for(PAGEVIEWS, engine, load({})).tracer_events_per_second == 0
    assert loads.settings_for(INSERTS, engine, load({})).tracer_events_per_second == 12
    more = load({"TRACER_EVENTS_PER_SECOND": "30"})
    assert loads.settings_for(INSERTS, engine, more).tracer_events_per_second == 30


def test_a_search_does_not_fill_the_memory_with_what_engines_have_read() -> None:
    engine, memory = FakeEngine(), psutil.virtual_memory().total
    for of in (PAGEVIEWS, INSERTS):
        found = loads.settings_for(of, engine, load({"KAFKA_RETENTION_BYTES": "-1"}))
        kept = found.kafka_retention_bytes * found.pageviews_partitions
        assert kept == pytest.approx(memory / 6, rel=0.01)
    bounded = load({"KAFKA_RETENTION_BYTES": "5000000"})
    assert loads.settings_for(PAGEVIEWS, engine, bounded).kafka_retention_bytes == 5_000_000


def test_what_can_not_be_raised_is_reported() -> None:
    engine = FakeEngine()
    with pytest.raises(
        UsageError, match="--of sales: the workload shop only has pageviews and purcha"
    ):
        loads.settings_for("sales", engine, load({}))
    with pytest.raises(UsageError, match="reads no table by CDC"):
        loads.settings_for(INSERTS, FakeEngine(needs=()), load({}))
