"""The command line: wrong arguments end in one clear line, the usage, and exit code 2."""

import pytest
from click.testing import CliRunner

from racetrack import cli


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nosuch", "5000", "20", "10", "1.0"], "nosuch"),
        (["dh", "0", "20", "10", "1.0"], "RATE"),
        (["dh", "-5", "20", "10", "1.0"], "RATE"),
        (["dh", "many", "20", "10", "1.0"], "RATE"),
        (["dh", "5000", "0", "10", "1.0"], "WAIT"),
        (["dh", "5000", "nan", "10", "1.0"], "WAIT"),
        (["dh", "5000", "20", "0", "1.0"], "SAMPLES"),
        (["dh", "5000", "20", "1.5", "1.0"], "SAMPLES"),
        (["dh", "5000", "20", "10", "-1"], "DELAY"),
        (["dh", "5000", "20", "10", "inf"], "DELAY"),
        (["dh", "5000", "20", "10"], "DELAY"),
        ([], "ENGINE"),
    ],
)
def test_a_wrong_argument_is_named(arguments: list[str], says: str) -> None:
    result = CliRunner().invoke(cli.experiment, arguments)
    assert result.exit_code == 2
    assert "Usage: " in result.output
    (error_line,) = [line for line in result.output.splitlines() if line.startswith("Error: ")]
    assert says in error_line


@pytest.mark.parametrize("command", [cli.experiment, cli.race])
def test_help_shows_an_example_and_the_exit_codes(command: object) -> None:
    result = CliRunner().invoke(command, ["--help"])  # type: ignore[arg-type]
    assert result.exit_code == 0
    assert "./run_experiment.sh dh 5000 20 10 1.0" in result.output
    assert "Exit codes" in result.output


def test_a_bad_setting_ends_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KAFKA_PORT", "none")
    result = CliRunner().invoke(cli.race, ["status"])
    assert result.exit_code == 2
    assert "KAFKA_PORT" in result.output
