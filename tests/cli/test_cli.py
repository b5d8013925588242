"""The command line as a whole: help, completion, and what every command does with what is wrong."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from racetrack import cli
from racetrack.config import REPO, defaults, load
from tests.some_engines import EXAMPLE

# Settings whose defaults are not empty, and one whose default is.
EMPTY = {"RUNTIME": "", "kafka_heap": " ", "KAFKA_VERSION": "", "KAFKA_TOPIC_PREFIX": ""}
COMMANDS = cli.race.list_commands(click.Context(cli.race))


def test_help_shows_every_command_in_whole_sentences() -> None:
    result = CliRunner().invoke(cli.race, ["--help"])
    assert result.exit_code == 0
    assert "./run_experiment.sh dh 5000 20 10 1.0 " in result.output
    assert "..." not in result.output.replace("[ARGS]...", "")
    for name in COMMANDS:
        assert f"\n  {name} " in result.output
    assert "Exit codes" in result.output


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_of_a_command_has_examples_with_engines_that_there_are(name: str, option: str) -> None:
    result = CliRunner().invoke(cli.race, [name, option])
    assert result.exit_code == 0
    assert "Example" in result.output and "Exit codes" in result.output


def test_help_imports_nothing_heavy() -> None:
    """Check the imports that make it slow, since times vary on a busy machine."""
    program = "import sys; from racetrack.cli import race; race(['--help'], standalone_mode=False);"
    program += (
        "print(sorted({'numpy', 'rich', 'pydantic', 'psycopg', 'docker'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPO, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("comparee", "Did you mean 'compare'?"),
        (f"run {EXAMPLE} --ratse 5", "Did you mean '--rate'?"),
        ("up flnk", "Did you mean flink?"),
        (f"up {EXAMPLE} --workload shopp", "Did you mean shop?"),
    ],
)
def test_a_typing_error_is_answered_with_the_nearest(typed: str, says: str) -> None:
    result = CliRunner().invoke(cli.race, typed.split())
    assert result.exit_code == 2
    assert says in result.output


def test_a_bad_setting_ends_in_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PORT", "none")
    result = CliRunner().invoke(cli.race, ["status"])
    assert result.exit_code == 2
    assert "KAFKA_PORT: 'none' is not a whole number" in result.output


def test_ctrl_c_before_a_command_has_begun_has_its_own_exit_code() -> None:
    program = (
        "import os, signal, sys, threading; from racetrack.cli import main;"
        " threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGINT]).start();"
        " sys.argv[1:] = ['engines']; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (130, b"")


def test_images_are_not_built_for_a_push_without_a_registry() -> None:
    result = CliRunner().invoke(cli.race, ["images", "--push"])
    assert result.exit_code == 2
    assert "KUBERNETES_REGISTRY is empty" in result.output


def test_a_name_in_the_environment_that_is_no_setting_is_warned_of_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KAFKA_HAEP", "9g")
    result = CliRunner().invoke(cli.race, ["engines", EXAMPLE])
    assert result.exit_code == 0
    assert result.stderr.count("KAFKA_HAEP") == 1
    assert "Did you mean KAFKA_HEAP?" in result.stderr


def completed(typed: str, tmp_path: Path) -> list[str]:
    """What bash offers for a line whose last word is begun; the command stands on PATH."""
    for name in ("race", "run_experiment.sh"):
        arguments = cli.POSITIONAL_FORM if name == "run_experiment.sh" else ""
        command = f'#!/bin/sh\nexec {sys.executable} -m racetrack.cli {arguments} "$@"\n'
        (tmp_path / name).write_text(command)
        (tmp_path / name).chmod(0o755)
    script = CliRunner().invoke(cli.race, ["completion", "bash"]).output
    words = typed.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    program = f"{script}\nCOMP_WORDS=({quoted})\nCOMP_CWORD={len(words) - 1}\n"
    program += f'_racetrack_complete {words[0]}\nprintf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(
        ["bash", "-c", program],
        env={**os.environ, "PYTHONPATH": str(REPO)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "offers"),
    [
        ("./race comp", ["compare", "completion"]),
        ("./race compare fli", ["flink"]),
        ("./race compare dh --plan as", ["as-published"]),
        ("./race plan qu", ["quick"]),
        ("./race limit fli", ["flink"]),
        ("./race compare flink --repe", ["--repeats"]),
        ("./run_experiment.sh fli", ["flink"]),
        ("./run_experiment.sh flink 5 5 5 1 --ver", ["--verify"]),
    ],
)
def test_bash_completes(typed: str, offers: list[str], tmp_path: Path) -> None:
    assert completed(typed, tmp_path) == offers


def test_an_empty_setting_in_the_environment_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in EMPTY.items():
        monkeypatch.setenv(name, value)
    cli.unset_empty_settings()
    loaded, usual = load(), defaults()
    for name in map(str.lower, EMPTY):
        assert getattr(loaded, name) == getattr(usual, name)
    assert os.environ.keys() & EMPTY.keys() == {"KAFKA_TOPIC_PREFIX"}
