"""`./race run` and `./run_experiment.sh`: both run the same; wrong arguments end in one clear line,
the usage, and exit code 2; the exit code says how the run ended."""

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import Result

from racetrack import plugins
from racetrack.cli.run import run_experiment
from racetrack.config import REPO, Settings
from racetrack.machine_lock import machine_lock
from racetrack.results.run import RunArguments
from tests.cli.conftest import Ended, invoke, invoke_command
from tests.some_engines import EXAMPLE

MakeRun = Callable[..., Path]
POSITIONAL = (EXAMPLE, "5000", "20", "10", "1.0")


def nothing_is_run(*_: object) -> Path:
    raise AssertionError("a run has begun")


def by_position(arguments: Sequence[str], make_run: MakeRun = nothing_is_run) -> Result:
    return invoke_command(run_experiment, arguments, make_run=make_run)


def run(typed: str, make_run: MakeRun = nothing_is_run) -> Result:
    return invoke(f"run {typed}", make_run=make_run)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nosuch", "5000", "20", "10", "1.0"], "nosuch"),
        (["fluid", "5000", "20", "10", "1.0"], "fluid"),  # a simulation
        ([EXAMPLE, "-5", "20", "10", "1.0"], "-5 is negative"),
        ([EXAMPLE, "5000", "nan", "10", "1.0"], "WAIT"),
        ([EXAMPLE, "5000", "20", "0", "1.0"], "SAMPLES"),
        ([EXAMPLE, "5000", "20", "10", "0"], "DELAY"),
        ([EXAMPLE, "5000", "20", "10"], "DELAY"),
        (["dh,nosuch", "5000", "20", "10", "1.0"], "nosuch"),
    ],
)
def test_a_wrong_argument_is_named(arguments: list[str], says: str) -> None:
    result = by_position(arguments)
    assert result.exit_code == 2
    assert "Usage: " in result.output
    (error_line,) = [line for line in result.output.splitlines() if line.startswith("Error: ")]
    assert says in error_line


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--rate many", "--rate"),
        ("--load spike", "spike BASE PEAK DURATION"),
        ("--load 'spike 5k 50k 10s' --rate 5k", "--rate and --load"),
        ("--fail-if lag_p99_ms>+10%", "--against"),
        ("--fail-if slow", "--fail-if"),
        ("--json - --csv -", "Only one of"),
        ("--json nowhere/run.json", "nowhere"),
        ("--workload ads --queries q0", "--queries"),
        ("--workload nexmark --queries q6", "q6"),
    ],
)
def test_an_option_that_can_not_be_used_is_named_before_anything_runs(
    options: str, says: str
) -> None:
    result = run(f"{EXAMPLE} {options}")
    assert result.exit_code == 2, result.output
    assert says in result.output


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


def test_engines_separated_by_commas_are_a_group(made: Made) -> None:
    assert run("dh,pg", made).exit_code == 0
    assert [engine for engine, _, _ in made.runs] == ["dh+pg"]


def test_a_load_profile_takes_the_place_of_the_rate_and_is_sampled_to_its_end(made: Made) -> None:
    sampled = "--samples 500 --every 100ms"
    for load in ("'spike 5k 50k 10s'", f"'sine 1k 3k 60s' {sampled}", "'constant 7k'"):
        assert run(f"{EXAMPLE} --load {load}", made).exit_code == 0
    spike, sine, constant = (given for _, given, _ in made.runs)
    assert (spike.load, spike.events_per_s, spike.samples) == ("spike 5k 50k 10s", 20_000, 30)
    assert (sine.samples, sine.decide_within_s) == (600, 0)
    assert (constant.load, constant.events_per_s, constant.samples) == (None, 7_000, 10)


def test_at_rate_0_there_is_nothing_to_decide(made: Made) -> None:
    typed = [EXAMPLE, "0", "2m", "10", "500ms", "--decide-within", "2m"]
    result = by_position(typed, made)
    assert result.exit_code == 0, result.output
    ((_, arguments, _),) = made.runs
    assert (arguments.events_per_s, arguments.wait_s, arguments.delay_s) == (0, 120, 0.5)
    assert arguments.decide_within_s == 0


@pytest.mark.parametrize(
    ("outcome", "code"), [("ok", 0), ("the broker ended", 1), ("Void: others.", 5)]
)
def test_how_it_ended_is_the_exit_code(ended: Ended, outcome: str, code: int) -> None:
    failing = run(f"{EXAMPLE} --fail-if lag_p99_ms<100", lambda *_: ended(outcome))
    assert failing.exit_code == (code or 6)
    assert run(EXAMPLE, lambda *_: ended(outcome)).exit_code == code


def test_a_run_under_a_load_is_compared_with_one_under_the_same_load(
    tmp_path: Path, ended: Ended
) -> None:
    def under(load: str, backlog: int) -> MakeRun:
        results = {"load": {"max_backlog_events": backlog}}
        made = {"arguments": {"load": load}, "results": results, "engine": EXAMPLE}
        return lambda *_: ended("ok", made)

    before = tmp_path / "before.json"
    assert run(f"{EXAMPLE} --json {before}", under("spike 1k 9k 1s", 100)).exit_code == 0
    for load, backlog, says in (
        ("spike 1k 9k 1s", 105, ""),
        ("spike 1k 9k 1s", 200, "max_backlog_events changed by +100.0"),
        ("sine 1k 9k 1s", 105, "max_backlog_events"),
    ):
        condition = f"--fail-if max_backlog_events>+10% --against {before}"
        result = run(f"{EXAMPLE} {condition}", under(load, backlog))
        assert result.exit_code == (6 if says else 0), result.output
        assert says in result.output


def test_records_go_to_files_and_to_standard_output(tmp_path: Path, made: Made) -> None:
    table = tmp_path / "run.md"
    result = run(f"{EXAMPLE} --json - --csv {tmp_path / 'run.csv'} --markdown {table}", made)
    run_record = json.loads(result.stdout)
    (record,) = run_record["records"]
    assert (run_record["kind"], record["outcome"]) == ("runs", "ok")
    columns = (tmp_path / "run.csv").read_text().splitlines()[0].split(",")
    assert columns == list(record)
    assert "| kept up |" in table.read_text()


@pytest.mark.parametrize(("option", "printed"), [("", ""), ("--print-samples", "name=x\n")])
def test_samples_are_printed_if_asked_for(ended: Ended, option: str, printed: str) -> None:
    folder = ended("ok")
    (folder / "top_summary.log").write_text("name=x\n")
    result = by_position([*POSITIONAL, *option.split()], lambda *_: folder)
    assert (result.exit_code, result.output) == (0, printed)


@pytest.mark.parametrize(
    ("arguments", "settings", "says"),
    [
        ("--fault kill:nobody@1s", {}, "nobody"),
        ("", {"KAFKA_HEAP": "much"}, "KAFKA_HEAP"),
        ("", {"REDPANDA_MEMORY": "7g"}, "REDPANDA_MEMORY"),
    ],
)
def test_what_can_not_be_used_is_reported_while_another_run_has_the_machine(
    arguments: str, settings: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with machine_lock():
        result = by_position([*POSITIONAL, *arguments.split()])
    assert result.exit_code == 2, result.output
    assert says in result.output


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
