"""The command line as a whole: help, and what every command does with what is wrong."""

import pytest
from click.testing import CliRunner

from racetrack import cli
from tests.some_engines import EXAMPLE


@pytest.mark.parametrize("command", [cli.experiment.experiment, cli.race])
def test_help_shows_an_example_and_the_exit_codes(command: object) -> None:
    result = CliRunner().invoke(command, ["--help"])  # type: ignore[arg-type]
    assert result.exit_code == 0
    assert f"./run_experiment.sh {EXAMPLE} 5000 20 10 1.0" in result.output
    assert "Exit codes" in result.output


def test_a_bad_setting_ends_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KAFKA_PORT", "none")
    result = CliRunner().invoke(cli.race, ["status"])
    assert result.exit_code == 2
    assert "KAFKA_PORT" in result.output


@pytest.mark.parametrize("name", sorted(cli.race.commands))
def test_examples_in_help_name_engines_that_there_are(name: str) -> None:
    result = CliRunner().invoke(cli.race, [name, "--help"])
    assert result.exit_code == 0
    assert "{" not in result.output
