"""`./run_experiment.sh`: wrong arguments end in one clear line, the usage, and exit code 2; the
exit code says how the run ended."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from racetrack import cli, plugins
from racetrack.config import Settings
from racetrack.machine_lock import machine_lock
from racetrack.results.run import RunArguments
from racetrack.run import experiment
from tests.cli.conftest import Ended
from tests.some_engines import EXAMPLE


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nosuch", "5000", "20", "10", "1.0"], "nosuch"),
        (["fluid", "5000", "20", "10", "1.0"], "there is no 'fluid'"),
        ([EXAMPLE, "-5", "20", "10", "1.0"], "-5 is negative"),
        ([EXAMPLE, "5,000", "20", "10", "1.0"], "write 5000"),
        ([EXAMPLE, "many", "20", "10", "1.0"], "RATE"),
        ([EXAMPLE, "5000", "nan", "10", "1.0"], "WAIT"),
        ([EXAMPLE, "5000", "20", "0", "1.0"], "SAMPLES"),
        ([EXAMPLE, "5000", "20", "1.5", "1.0"], "SAMPLES"),
        ([EXAMPLE, "5000", "20", "10", "-1"], "-1 is negative"),
        ([EXAMPLE, "5000", "20", "10", "0"], "DELAY"),
        ([EXAMPLE, "5000", "20", "10", "1.0", "--verfy"], "Did you mean '--verify'?"),
        ([EXAMPLE, "5000", "20", "10", "inf"], "DELAY"),
        ([EXAMPLE, "5000", "20", "10"], "DELAY"),
        ([EXAMPLE, "5000", "20", "10", "1.0", "--workload", "nosuch"], "nosuch"),
        ([], "ENGINE"),
    ],
)
def test_a_wrong_argument_is_named(arguments: list[str], says: str) -> None:
    result = CliRunner().invoke(cli.race, ["experiment", *arguments])
    assert result.exit_code == 2
    assert "Usage: " in result.output
    (error_line,) = [line for line in result.output.splitlines() if line.startswith("Error: ")]
    assert says in error_line


@pytest.mark.parametrize(("outcome", "code"), [("ok", 0), ("the broker ended", 1)])
def test_what_was_asked_is_run_and_how_it_ended_is_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, ended: Ended, outcome: str, code: int
) -> None:
    runs: list[tuple[str, RunArguments]] = []

    def run_once(engine: str, asked: RunArguments, settings: Settings, *_: object) -> Path:
        runs.append((engine, asked))
        assert settings.workload == workload
        return ended(outcome)

    monkeypatch.setattr(experiment, "run_once", run_once)
    monkeypatch.setattr(experiment, "require_possible", lambda *_: None)
    monkeypatch.setenv("WORKLOAD", "another")
    workload = plugins.default_workload()
    typed = f"{EXAMPLE} 5000 20 10 0.5 --verify --fault kill:mysql@1s --fault pause:broker@2s+1s"
    typed += f" --workload {workload}"
    result = CliRunner().invoke(cli.race, ["experiment", *typed.split()])
    assert result.exit_code == code, result.output
    asked = RunArguments(
        pageviews_per_s=5_000,
        wait_s=20,
        samples=10,
        delay_s=0.5,
        verify=True,
        faults=("kill:mysql@1s", "pause:broker@2s+1s"),
    )
    assert runs == [(EXAMPLE, asked)]


def test_rates_and_times_are_taken_as_people_write_them(
    monkeypatch: pytest.MonkeyPatch, ended: Ended
) -> None:
    runs: list[RunArguments] = []

    def run_once(_engine: str, asked: RunArguments, *_: object) -> Path:
        runs.append(asked)
        return ended("ok")

    monkeypatch.setattr(experiment, "run_once", run_once)
    for typed in ("5k 2m 10 500ms", "0 0 10 1s --decide-within 2m"):
        result = CliRunner().invoke(cli.race, ["experiment", EXAMPLE, *typed.split()])
        assert result.exit_code == 0, result.output
    assert [(run.pageviews_per_s, run.wait_s, run.delay_s) for run in runs] == [
        (5_000, 120, 0.5),
        (0, 0, 1),
    ]
    assert runs[1].decide_within_s == 0  # nothing is offered, so there is nothing to decide


@pytest.mark.parametrize(("option", "printed"), [("", ""), ("--print-samples", "name=x\n")])
def test_samples_are_printed_if_asked_for(
    monkeypatch: pytest.MonkeyPatch, ended: Ended, option: str, printed: str
) -> None:
    folder = ended("ok")
    (folder / "top_summary.log").write_text("name=x\n")
    monkeypatch.setattr(experiment, "run_once", lambda *_: folder)
    typed = ["experiment", EXAMPLE, *["5000", "20", "10", "1.0"], *option.split()]
    result = CliRunner().invoke(cli.race, typed)
    assert (result.exit_code, result.output) == (0, printed)


@pytest.mark.parametrize(
    ("arguments", "settings", "says"),
    [
        ("--fault kill:nobody@1s", {}, "nobody"),
        ("", {"WORKLOAD": "nosuch"}, "WORKLOAD"),
        ("", {"KAFKA_HEAP": "much"}, "KAFKA_HEAP"),
        ("", {"REDPANDA_MEMORY": "7g"}, "REDPANDA_MEMORY has no effect"),
    ],
)
def test_what_can_not_be_used_is_said_while_another_run_has_the_machine(
    arguments: str, settings: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    typed = f"experiment {EXAMPLE} 5000 20 10 1.0 {arguments}"
    with machine_lock():
        result = CliRunner().invoke(cli.race, typed.split())
    assert result.exit_code == 2, result.output
    assert says in result.output


def test_another_run_on_the_machine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "run_once", pytest.fail)
    with machine_lock():
        result = CliRunner().invoke(cli.race, ["experiment", EXAMPLE, *["5000", "20", "10", "1.0"]])
    assert result.exit_code == 4
    assert f"pid {os.getpid()}" in result.output
