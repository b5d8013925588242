"""`./run_experiment.sh`: wrong arguments end in one clear line, the usage, and exit code 2; the
exit code says how the run ended."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from racetrack import cli, plugins
from racetrack.run import single
from racetrack.run_record import RunArguments
from racetrack.settings import Settings
from tests.cli.conftest import Ended
from tests.some_engines import EXAMPLE


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nosuch", "5000", "20", "10", "1.0"], "nosuch"),
        ([EXAMPLE, "0", "20", "10", "1.0"], "RATE"),
        ([EXAMPLE, "-5", "20", "10", "1.0"], "RATE"),
        ([EXAMPLE, "many", "20", "10", "1.0"], "RATE"),
        ([EXAMPLE, "5000", "0", "10", "1.0"], "WAIT"),
        ([EXAMPLE, "5000", "nan", "10", "1.0"], "WAIT"),
        ([EXAMPLE, "5000", "20", "0", "1.0"], "SAMPLES"),
        ([EXAMPLE, "5000", "20", "1.5", "1.0"], "SAMPLES"),
        ([EXAMPLE, "5000", "20", "10", "-1"], "DELAY"),
        ([EXAMPLE, "5000", "20", "10", "inf"], "DELAY"),
        ([EXAMPLE, "5000", "20", "10"], "DELAY"),
        ([EXAMPLE, "5000", "20", "10", "1.0", "--workload", "nosuch"], "nosuch"),
        ([], "ENGINE"),
    ],
)
def test_a_wrong_argument_is_named(arguments: list[str], says: str) -> None:
    result = CliRunner().invoke(cli.experiment.experiment, arguments)
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

    monkeypatch.setattr(single, "run_once", run_once)
    monkeypatch.setenv("WORKLOAD", "another")
    workload = plugins.default_workload()
    typed = f"{EXAMPLE} 5000 20 10 0.5 --verify --fault kill:mysql@1s --fault pause:broker@2s+1s"
    typed += f" --workload {workload}"
    result = CliRunner().invoke(cli.experiment.experiment, typed.split())
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
