"""Tests of saturation and draining, on simulated engines."""

from pathlib import Path
from typing import cast

import numpy as np
import pytest

from racetrack.analysis import capacity, curves
from racetrack.config import load
from racetrack.errors import RacetrackError
from racetrack.results.folder import RunFolder
from racetrack.results.run import Window
from racetrack.run.saturation import Saturation, SessionLoad, drain
from racetrack.run.session import Session
from simulations.fluid import SimulatedEngine
from tests.run.fluid_session import FakeClock, FluidSession

WARM_UP_S, LOW_S, FOR_S, HOLD_S, BATCH_S = 120.0, 10.0, 120.0, 60.0, 30.0
STEADY = SimulatedEngine(per_s=20_000, noise=0.02)


class Drive:
    """A session of a simulated engine, and its folder."""

    def __init__(self, logs: Path, engine: SimulatedEngine) -> None:
        self.clock = FakeClock()
        self.folder = RunFolder.create(logs, "fake", "phase")
        self.fluid = FluidSession(self.clock, engine, np.random.default_rng(5), self.folder)
        self.session = cast(Session, self.fluid)
        self.session.run_demo()
        self.load = SessionLoad(self.session, self.folder.path, load({}))

    def work_in(self, window: Window) -> capacity.Work:
        """Return the engine's throughput in a window."""
        recorded = curves.read(self.folder.path)
        return capacity.work(recorded, window.start_ms, window.end_ms, BATCH_S)


def test_an_overloaded_engine_shows_what_it_works(tmp_path: Path) -> None:
    at = Drive(tmp_path, STEADY)
    saturation = Saturation(at.load, at.folder.path, 1_000)
    saturation.warm_up(WARM_UP_S, LOW_S)
    window = saturation.measure(FOR_S, HOLD_S)
    assert window.seconds == pytest.approx(FOR_S, abs=2)
    work = at.work_in(window)
    assert work.per_s == pytest.approx(20_000, rel=0.01)
    assert work.is_capacity
    assert 4 < work.backlog_min_s < work.backlog_max_s < 31


def test_an_engine_whose_updates_grow_is_measured_when_they_have_grown(tmp_path: Path) -> None:
    """Each update takes in the whole backlog and has a fixed cost. While the backlog is small, that
    cost is a large share of an update's time, so the engine is slower than it can be."""
    growing = SimulatedEngine(per_s=300_000, noise=0.001, fixed_s=1.5)
    at = Drive(tmp_path, growing)
    saturation = Saturation(at.load, at.folder.path, 1_000)
    saturation.warm_up(WARM_UP_S, LOW_S)
    first = at.work_in(saturation.measure(FOR_S, HOLD_S))
    assert drain(at.load, 30_000)
    saturation.end()
    began_s = at.clock.now_s
    window = saturation.measure(FOR_S, HOLD_S)
    assert at.clock.now_s - window.seconds - began_s >= HOLD_S
    second = at.work_in(window)
    assert second.per_s == pytest.approx(first.per_s, rel=0.02)
    assert second.batches_per_s[0] == pytest.approx(second.per_s, rel=0.03)
    soon = at.work_in(Window(start_ms=window.start_ms - 45_000, end_ms=window.start_ms - 25_000))
    assert soon.per_s < 0.95 * second.per_s


def test_it_is_measured_once_the_engine_is_warm_or_reported_as_cold(tmp_path: Path) -> None:
    quick, slow, never = (Drive(tmp_path, STEADY) for _ in range(3))
    slow.fluid.cold_s = 35
    warmed = Saturation(slow.load, slow.folder.path, 15_000).warm_up(WARM_UP_S, LOW_S)
    at_once = Saturation(quick.load, quick.folder.path, 15_000).warm_up(WARM_UP_S, LOW_S)
    assert at_once.is_warm and warmed.is_warm
    assert at_once.took_s < warmed.took_s < WARM_UP_S
    cold = Saturation(never.load, never.folder.path, 15_000).warm_up(20, LOW_S)
    assert not cold.is_warm and 20 <= cold.took_s < 40


def test_who_can_not_be_overloaded_is_not_waited_for_without_end(tmp_path: Path) -> None:
    at = Drive(tmp_path, STEADY)
    at.fluid.most_per_s = 5_000
    with pytest.raises(RacetrackError, match=r"was not saturated within 240 s; .*--start"):
        Saturation(at.load, at.folder.path, 1_000).warm_up(WARM_UP_S, LOW_S)


def test_a_backlog_is_worked_off_before_a_rate_is_set(tmp_path: Path) -> None:
    at = Drive(tmp_path, STEADY)
    at.load.offer(30_000)
    at.session.watch(30, "gathering a backlog")
    assert drain(at.load, 19_000)
    look = at.session.load_sample()
    assert 0 <= look.due - look.counted <= 19_000


def test_an_engine_that_never_catches_up_is_not_waited_for_without_end(tmp_path: Path) -> None:
    at = Drive(tmp_path, STEADY)
    at.load.offer(60_000)
    at.session.watch(60, "gathering a backlog")
    began_s = at.clock.now_s
    assert not drain(at.load, 10_000)
    assert at.clock.now_s - began_s == pytest.approx(120, abs=4)


def test_an_engine_that_does_not_catch_up_beside_a_load_is_let_catch_up_without(
    tmp_path: Path,
) -> None:
    at = Drive(tmp_path, STEADY)
    at.load.offer(60_000)
    at.session.watch(15, "gathering a backlog")
    began_s = at.clock.now_s
    assert drain(at.load, 60_000)
    assert at.clock.now_s - began_s > 60
