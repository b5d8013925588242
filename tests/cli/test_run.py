"""`./race run` and `./run_experiment.sh`: both run the same; the exit code says how it ended."""

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import Result

from racetrack import plugins
from racetrack.analysis.outcome import run_outcome
from racetrack.cli.run import run_experiment
from racetrack.config import REPO, Settings
from racetrack.machine_lock import machine_lock
from racetrack.results.run import RunArguments
from tests.cli.conftest import Ended, invoke, invoke_command
from tests.records import record, verified
from tests.report.folders import WRONG
from tests.some_engines import EXAMPLE

MakeRun = Callable[..., Path]
POSITIONAL = (EXAMPLE, "5000", "20", "10", "1.0")


def nothing_is_run(*_: object) -> Path:
    raise AssertionError("a run has begun")


def by_position(arguments: Sequence[str], make_run: MakeRun = nothing_is_run) -> Result:
    return invoke_command(run_experiment, arguments, make_run=make_run)


def run(typed: str, make_run: MakeRun) -> Result:
    return invoke(f"run {typed}", make_run=make_run)


class Made:
    """Makes runs that end `ok` at once; `runs` has engine, arguments and workload of each."""

    def __init__(self, ended: Ended) -> None:
        self._ended = ended
        self.runs: list[tuple[str, RunArguments, str]] = []

    def __call__(
        self, engine: str, arguments: RunArguments, settings: Settings, *_: object
    ) -> Path:
        self.runs.append((engine, arguments, settings.workload))
        return self._ended("ok")


@pytest.fixture
def made(ended: Ended) -> Made:
    return Made(ended)


def test_both_forms_run_the_same(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKLOAD", "another")
    workload = plugins.default_workload()
    options = "--verify --fault kill:mysql@1s --fault pause:broker@2s+1s --workload " + workload
    arguments = RunArguments(
        events_per_s=5_000,
        wait_s=20,
        samples=10,
        delay_s=0.5,
        verify=True,
        faults=("kill:mysql@1s", "pause:broker@2s+1s"),
    )
    typed = [EXAMPLE, "5k", "20", "10", "0.5", *options.split()]
    assert by_position(typed, made).exit_code == 0
    assert run(f"{EXAMPLE} --every 500ms {options}", made).exit_code == 0
    assert made.runs == [(EXAMPLE, arguments, workload)] * 2
    assert run(f"dh,pg --workload {workload}", made).exit_code == 0
    assert made.runs[-1][0] == "dh+pg"  # a group


def test_a_load_profile_takes_the_place_of_the_rate_and_at_rate_0_nothing_is_decided(
    made: Made,
) -> None:
    sampled = "--samples 500 --every 100ms"
    for load in ("'spike 5k 50k 10s'", f"'sine 1k 3k 60s' {sampled}", "'constant 7k'"):
        assert run(f"{EXAMPLE} --load {load}", made).exit_code == 0
    assert run(f"{EXAMPLE} --rate 0 --settle 2m --decide-within 2m", made).exit_code == 0
    spike, sine, constant, idle = (given for _, given, _ in made.runs)
    assert (spike.load, spike.events_per_s, spike.samples) == ("spike 5k 50k 10s", 20_000, 30)
    assert (sine.samples, sine.decide_within_s) == (600, 0)
    assert (constant.load, constant.events_per_s, constant.samples) == (None, 7_000, 10)
    assert (idle.events_per_s, idle.wait_s, idle.decide_within_s) == (0, 120, 0)


@pytest.mark.parametrize(
    ("outcome", "code"), [("ok", 0), ("the broker ended", 1), ("Void: others.", 5)]
)
def test_how_it_ended_is_the_exit_code(ended: Ended, outcome: str, code: int) -> None:
    failing = run(f"{EXAMPLE} --fail-if lag_p99_ms<100", lambda *_: ended(outcome))
    assert failing.exit_code == (code or 6)
    assert run(EXAMPLE, lambda *_: ended(outcome)).exit_code == code


def test_views_that_a_fault_made_wrong_fail_a_run(ended: Ended) -> None:
    changes = {"verified": verified(users=WRONG), "faults": {"from_ms": 0, "done": []}}
    outcome = run_outcome(record(changes))
    assert outcome != "ok"
    assert run(EXAMPLE, lambda *_: ended(outcome, changes)).exit_code == 1


def test_another_run_on_the_machine_is_named() -> None:
    with machine_lock():
        result = by_position(POSITIONAL)
    assert result.exit_code == 4
    assert f"pid {os.getpid()}" in result.output


@pytest.mark.slow
def test_the_script_takes_arguments_by_position() -> None:
    """Its help comes from the command that it calls."""
    script = REPO / "run_experiment.sh"
    done = subprocess.run([script, "--help"], capture_output=True, text=True, check=True)
    assert "Usage: ./run_experiment.sh [OPTIONS] ENGINE RATE WAIT SAMPLES DELAY" in done.stdout
