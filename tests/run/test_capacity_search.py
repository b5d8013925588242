"""Tests of the whole capacity search, with a fake engine and a fake clock. They also check that
`limit.json` contains what was found before a run failed or the search was interrupted."""

import json
import signal
from collections.abc import Callable, Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from racetrack import terminal
from racetrack.config import load
from racetrack.errors import RacetrackError
from racetrack.results.folder import RunFolder, read_run
from racetrack.results.search import LimitRecord
from racetrack.run.capacity_search import CapacitySearch
from racetrack.run.session import Session
from racetrack.run.trials import DURATIONS
from racetrack.terminal import Screen
from simulations.fluid import SimulatedEngine
from tests.run.fakes import FakeEngine, FakeStack
from tests.run.fluid_session import FluidRuns, FluidSession

ENGINE = SimulatedEngine(per_s=20_000, noise=0.03)
Search = Callable[[], LimitRecord]


class Fakes(FluidRuns):
    """Fakes with which a search runs: a stack, sessions, and reasons why runs are void."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = FakeStack()
        self.void: Iterator[str | None] = repeat(None)

    def session(self, _engine: object, _stack: object, folder: RunFolder, *_: object) -> Session:
        return self.open(ENGINE, folder)


@pytest.fixture
def fakes() -> Fakes:
    return Fakes()


@pytest.fixture
def search(fakes: Fakes, tmp_path: Path) -> Search:
    settings = load({"LOGS_FOLDER": str(tmp_path)})

    def run() -> LimitRecord:
        guard = terminal.Guard(print)
        screen = Screen(Console(quiet=True))
        return CapacitySearch(
            "fake",
            settings,
            screen,
            guard,
            DURATIONS,
            find_engine=lambda _: FakeEngine(),
            open_stack=lambda *_: fakes.stack.as_stack(),
            open_session=fakes.session,
            why_void=lambda *_: next(fakes.void, None),
            clock=fakes.clock,
        ).run()

    return run


def recorded(logs: Path) -> dict[str, Any]:
    (file,) = logs.glob("*_UTC_fake_limit/limit.json")
    record: dict[str, Any] = json.loads(file.read_text())
    return record


def test_capacity_and_sustainable_rates_are_found(search: Search, tmp_path: Path) -> None:
    found = search()
    assert found.outcome == "ok"
    assert found.capacity is not None
    assert found.capacity.per_s == pytest.approx(20_000, rel=0.02)
    assert found.capacity.low < found.capacity.per_s < found.capacity.high
    assert [one.bound_ms for one in found.sustainable] == [2_000, 5_000]
    for one in found.sustainable:
        assert one.sustained_per_s == pytest.approx(19_000, rel=0.06)
    assert LimitRecord.model_validate(recorded(tmp_path)) == found
    assert 8 < found.minutes <= DURATIONS.within_s / 60


def test_every_run_is_fresh_and_leaves_a_folder(
    search: Search, fakes: Fakes, tmp_path: Path
) -> None:
    found = search()
    tags = [run.tag for run in found.runs]
    assert len(tags) == len(set(tags)) == len(fakes.sessions) == 2
    assert all(read_run(tmp_path / tag).outcome == "ok" for tag in tags)
    assert all(session.stopped for session in fakes.sessions)
    for run in found.runs:
        assert run.saturation[0].idle_share == 0
        assert run.saturation[0].cpu_s_per_million == {"fake": pytest.approx(10, rel=0.03)}
    assert found.runs[0].update_interval_ms is None  # no rate was tried in this run
    assert found.runs[1].update_interval_ms == pytest.approx(1_000, abs=250)


def test_rates_are_tried_in_the_second_run_before_it_is_overloaded(search: Search) -> None:
    first, second = search().runs
    assert not first.trials
    recorded = second.trials[0]
    assert recorded.handed_over_per_s == pytest.approx(recorded.per_s, rel=0.01)
    assert 0 < recorded.counted_before < second.saturation[0].counted_before


def test_a_generator_that_gives_out_first_is_named(search: Search, fakes: Fakes) -> None:
    def gives_out(session: FluidSession) -> None:
        session.hands_over_per_s = 15_000.0

    fakes.change = gives_out
    found = search()
    assert found.capacity is None
    assert found.outcome.startswith("its capacity is unknown: it was idle for ")
    assert "only 15,0" in found.outcome or "only 14,9" in found.outcome


def test_a_first_run_that_fails_ends_the_search_and_what_was_seen_stands(
    search: Search, fakes: Fakes, tmp_path: Path
) -> None:
    def dies(session: FluidSession) -> None:
        session.dies_at_s = 150  # before its throughput is fully measured

    fakes.change = dies
    with pytest.raises(RacetrackError, match="out of memory"):
        search()
    found = recorded(tmp_path)
    assert found["outcome"] == "the engine ended: out of memory"
    assert [len(run["saturation"]) for run in found["runs"]] == [0]
    assert fakes.sessions[-1].stopped


def test_a_search_that_is_interrupted_before_it_saw_anything_leaves_a_record(
    search: Search, fakes: Fakes, tmp_path: Path
) -> None:
    """Without a record, a report on all folders would refuse to read the search's folder."""

    def interrupted(_: FluidSession) -> None:
        raise terminal.Interrupted(signal.SIGINT)

    fakes.change = interrupted
    with pytest.raises(terminal.Interrupted):
        search()
    assert recorded(tmp_path)["outcome"] == "unfinished"


def test_a_second_run_that_fails_leaves_the_capacity_of_the_first(
    search: Search, fakes: Fakes, tmp_path: Path
) -> None:
    def dies(session: FluidSession) -> None:
        if len(fakes.sessions) == 1:
            session.dies_at_s = 150  # while a rate is tried

    fakes.change = dies
    found = search()
    assert found.outcome == (
        "its second run failed, so the capacity rests on the first run alone:"
        " the engine ended: out of memory"
    )
    assert found.capacity is not None
    assert found.capacity.per_s == pytest.approx(20_000, rel=0.03)
    assert not found.is_capacity_of_all_runs
    assert [len(run.saturation) for run in found.runs] == [1, 0]
    assert LimitRecord.model_validate(recorded(tmp_path)) == found
    assert fakes.sessions[-1].stopped


def test_a_run_that_others_disturbed_is_made_again(search: Search, fakes: Fakes) -> None:
    fakes.void = iter(["Void: others.", None, "Void: others."])
    found = search()
    first, second = found.runs
    assert [seen.void for seen in first.saturation] == ["Void: others.", None]
    assert [seen.void for seen in second.trials][:2] == ["Void: others.", None]
    assert second.trials[0].per_s == second.trials[1].per_s
    assert found.outcome == "ok"
    assert found.capacity is not None


@pytest.mark.slow
def test_a_machine_that_is_never_quiet_makes_the_result_void(search: Search, fakes: Fakes) -> None:
    fakes.void = repeat("Void: others.")
    found = search()
    assert found.outcome == "Void: others."
    assert [len(run.saturation) for run in found.runs] == [4, 4]


def test_time_that_runs_out_is_reported(
    search: Search, fakes: Fakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_slow(session: FluidSession) -> None:
        fakes.clock.now_s += 200

    fakes.change = is_slow
    found = search()
    assert found.outcome == "no time for more rate trials within 15 min"
    assert found.capacity is not None
