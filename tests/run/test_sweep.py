"""Tests of a sweep: engines take turns, no run is repeated, and an interruption loses nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from racetrack import plugins, terminal
from racetrack.config import Settings, load
from racetrack.errors import UsageError
from racetrack.results.folder import read_plan
from racetrack.results.run import RunArguments
from racetrack.results.sweep import Sweep
from racetrack.run import sweep
from racetrack.terminal import Screen
from tests.records import run_json
from tests.some_engines import CALIBRATION, EXAMPLE

PLAN = Sweep(engines=("steady", "swift"), rates=(50, 500), repeat=2, wait_s=1, samples=1, delay_s=1)


class Ran:
    """Records runs (engine, rate, heap) without running them. The fourth is interrupted once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.runs: list[tuple[str, int, str]] = []
        self.made: list[RunArguments] = []

    def run_once(
        self,
        engine: str,
        made: RunArguments,
        settings: Settings,
        _screen: Any,
        guard: terminal.Guard,
    ) -> Path:
        if len(self.runs) == 3 and "interrupt" not in str(self.runs[-1]):
            self.runs.append(("interrupted", 0, ""))
            raise terminal.Interrupted(2)
        self.runs.append((engine, made.pageviews_per_s, settings.connect_heap))
        self.made.append(made)
        folder = self._folder / f"run{len(self.runs)}"
        folder.mkdir()
        (folder / "run.json").write_text(json.dumps(run_json()))
        guard.disarm()
        return folder


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ran:
    monkeypatch.setenv("LOGS_FOLDER", str(tmp_path))
    return Ran(tmp_path)


def carry_out(folder: Path, run_once: sweep.RunOnce) -> bool:
    with terminal.guarded(print) as guard:
        return sweep.carry_out(folder, Screen(), guard, run_once)


def test_engines_alternate() -> None:
    order = [(run.engine, run.pageviews_per_s) for run in sweep.planned(PLAN).runs]
    one_repeat = [("steady", 50), ("swift", 50), ("steady", 500), ("swift", 500)]
    assert order == one_repeat * 2


def test_a_sweep_that_was_broken_off_goes_on_with_what_is_missing(
    ran: Ran,
) -> None:
    folder = sweep.begin(PLAN)
    with pytest.raises(terminal.Interrupted):
        carry_out(folder, ran.run_once)
    done = read_plan(folder, Sweep).runs
    assert [run.tag for run in done] == ["run1", "run2", "run3", *[None] * 5]
    assert carry_out(folder, ran.run_once)
    assert [run.outcome for run in read_plan(folder, Sweep).runs] == ["ok"] * 8
    assert len(ran.runs) == 9  # eight, and the interrupted one
    assert carry_out(folder, ran.run_once)
    assert len(ran.runs) == 9


def test_each_value_of_a_varied_setting_reaches_its_run(ran: Ran) -> None:
    plan = Sweep(
        engines=("steady",), rates=(0,), wait_s=1, vary="CONNECT_HEAP", values=("2g", "8g")
    )
    carry_out(sweep.begin(plan), ran.run_once)
    assert [heap for _engine, _rate, heap in ran.runs] == ["2g", "8g"]


def test_a_load_profile_reaches_each_run_and_its_window_is_not_extended(ran: Ran) -> None:
    plan = PLAN.model_copy(
        update={"load": "ramp 1k 3k 60s", "rates": (2_000,), "decide_within_s": 120.0, "repeat": 1}
    )
    carry_out(sweep.begin(plan), ran.run_once)
    assert {(made.load, made.decide_within_s) for made in ran.made} == {("ramp 1k 3k 60s", 0)}


def test_settings_of_the_sweep_reach_each_run_and_are_kept_with_it(
    ran: Ran,
) -> None:
    plan = Sweep(engines=("steady",), rates=(50, 500), wait_s=1, settings={"CONNECT_HEAP": "3g"})
    carry_out(folder := sweep.begin(plan), ran.run_once)
    assert [heap for _engine, _rate, heap in ran.runs] == ["3g", "3g"]
    assert read_plan(folder, Sweep).settings == {"CONNECT_HEAP": "3g"}


def test_the_published_experiment_has_its_own_rates_and_settings(
    ran: Ran,
) -> None:
    plan = sweep.as_published([EXAMPLE], 120)
    assert (plan.wait_s, plan.samples, plan.delay_s) == (20, 10, 1)
    runs = sweep.planned(plan).runs
    rates = [run.pageviews_per_s for run in runs]
    assert rates == [50, 5_000, 35_000, 100_000, 145_000, 160_000, 200_000]
    for run in runs:
        assert run.settings["PURCHASES_PER_SECOND_START"] == "3"
        assert run.settings["WORKLOAD"] == plugins.default_workload()
        load(run.settings)  # fails if they are no settings
        assert len(run.settings) == 3


def test_an_engine_that_was_not_in_it_has_no_published_experiment() -> None:
    with pytest.raises(UsageError, match=f"{CALIBRATION}: not in the published experiment"):
        sweep.as_published([EXAMPLE, CALIBRATION], 120)


def test_what_each_run_verifies_and_causes_is_in_the_plan(ran: Ran) -> None:
    faults = ("kill:mysql@1s",)
    plan = Sweep(engines=("steady",), rates=(5,), verify=True, faults=faults, decide_within_s=9)
    folder = sweep.begin(plan)  # a resumed sweep has only its folder
    carry_out(folder, ran.run_once)
    assert [(run.verify, run.faults, run.decide_within_s) for run in ran.made] == [
        (True, faults, 0)
    ]
