"""The two kinds of run that a search makes, on engines that are made up."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from racetrack.analysis import capacity, curves
from racetrack.errors import RacetrackError
from racetrack.run.phases import PACE, overload, steady
from racetrack.run.session import Session
from racetrack.runfolder import RunFolder
from tests.run.fluid import Wavering
from tests.run.fluid_session import Clock, FluidSession

STEADY = Wavering(per_s=20_000, noise=0.02)


class Drive:
    """A session of a made-up engine, and its folder."""

    def __init__(self, logs: Path, monkeypatch: pytest.MonkeyPatch, engine: Wavering) -> None:
        self.clock = Clock()
        self.clock.rule(monkeypatch)
        self.folder = RunFolder.create(logs, "made-up", "phase")
        self.fluid = FluidSession(self.clock, engine, np.random.default_rng(5), self.folder)
        self.session = cast(Session, self.fluid)
        self.session.run_demo()


def test_an_overloaded_run_shows_what_the_engine_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = Drive(tmp_path, monkeypatch, STEADY)
    seen = overload(at.session, 1_000, PACE)
    assert seen.window.seconds == pytest.approx(PACE.session_s, abs=2)
    told, window = curves.read(at.folder.path), seen.window
    work = capacity.work(told, window.start_ms, window.end_ms, PACE.batch_s)
    assert work.per_s == pytest.approx(20_000, rel=0.01)
    assert work.is_capacity
    assert 4 < work.youngest_s < work.oldest_s < 31


def test_it_is_measured_once_the_engine_is_warm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick, slow = (Drive(tmp_path, monkeypatch, STEADY) for _ in range(2))
    slow.fluid.cold_s = 35
    slow.clock.rule(monkeypatch)
    warmed = overload(slow.session, 15_000, PACE)
    quick.clock.rule(monkeypatch)
    assert overload(quick.session, 15_000, PACE).warm_up_s < warmed.warm_up_s < PACE.warm_up_most_s
    assert warmed.is_warm


def test_an_engine_that_never_gets_warm_is_measured_and_said_to_be_cold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = Drive(tmp_path, monkeypatch, STEADY)
    seen = overload(at.session, 15_000, replace(PACE, warm_up_most_s=20))
    assert not seen.is_warm
    assert 20 <= seen.warm_up_s < 40


def test_who_can_not_be_overloaded_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = Drive(tmp_path, monkeypatch, STEADY)
    at.fluid.most_per_s = 5_000
    with pytest.raises(RacetrackError, match=r"could not be overloaded within 180 s; .*--start"):
        overload(at.session, 1_000, PACE)


def test_a_run_at_a_rate_begins_at_half_of_it_and_tells_its_lag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = Drive(tmp_path, monkeypatch, STEADY)
    seen = steady(at.session, at.folder.path, 15_000, PACE)
    assert at.fluid.set_to == [7_500, 15_000]
    assert seen.window.seconds == pytest.approx(PACE.hold_s, abs=1)
    assert not seen.broken_off
    assert seen.cycle_ms == pytest.approx(1_000, abs=250)
    assert seen.lag_p50_ms == pytest.approx(500, abs=150)
    assert seen.lag_p99_ms == pytest.approx(1_000, abs=250)


def test_one_that_is_late_for_every_bound_is_broken_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = Drive(tmp_path, monkeypatch, STEADY)
    seen = steady(at.session, at.folder.path, 30_000, PACE)
    assert seen.broken_off
    assert seen.lag_p99_ms > 5_000
    assert seen.window.seconds < 30
