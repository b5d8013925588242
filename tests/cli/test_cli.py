"""The command line as a whole: help, completion, and what every command does with what is wrong."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from racetrack import cli
from racetrack.config import REPO, load
from racetrack.machine_lock import machine_lock
from tests.some_engines import TWO

ONE, OTHER = TWO
COMMANDS = cli.race.list_commands(click.Context(cli.race))


def race(typed: str) -> Result:
    return CliRunner().invoke(cli.race, shlex.split(typed))


def test_help_has_every_command_in_whole_sentences_and_each_has_its_exit_codes() -> None:
    whole = race("--help").output
    assert "..." not in whole.replace("[ARGS]...", "")
    for name in COMMANDS:
        assert f"\n  {name} " in whole
        result = race(f"{name} -h")
        assert result.exit_code == 0 and "Exit codes" in result.output


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("comparee", "Did you mean 'compare'?"),
        (f"run {ONE} --ratse 5", "Did you mean '--rate'?"),
        ("up flnk", "Did you mean flink?"),
        ("engines nosuch", ONE),  # one of those that there are
        ("check", "KAFKA_BOOTSTRAP_SERVERS"),  # nothing runs elsewhere
        (f"run {ONE} --rate -5", "-5 is negative"),
        (f"run {ONE} --load spike", "spike BASE PEAK DURATION"),
        (f"run {ONE} --fault kill:nobody@1s", "nobody"),
        (f"run {ONE} --fail-if lag_p99_ms>+10%", "--against"),
        ("plan quick", "variants"),
        (f"vary {ONE} --quick", "--plan vary"),  # a former command
        (f"compare {ONE} {REPO}", "Name either engines or folders"),
        (f"compare --resume {REPO} --load 5k", "--load"),
        (f"limit {ONE} --within 25", "25m"),
    ],
)
def test_what_can_not_be_used_is_named_before_anything_begins(typed: str, says: str) -> None:
    with machine_lock():  # a run would report that instead
        result = race(typed)
    assert result.exit_code == 2, result.output
    assert says in result.output
    assert not load().logs_folder.exists()


def test_ctrl_c_before_a_command_has_begun_has_its_own_exit_code() -> None:
    program = (
        "import os, signal, sys, threading; from racetrack.cli import main;"
        " threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGINT]).start();"
        " sys.argv[1:] = ['engines']; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (130, b"")


def test_a_name_in_the_environment_that_is_no_setting_is_warned_of_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KAFKA_HAEP", "9g")
    result = race(f"engines {ONE}")
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
    script = race("completion bash").output
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
        ("./race compare dh --plan as", ["as-published"]),
        ("./run_experiment.sh flink 5 5 5 1 --ver", ["--verify"]),
    ],
)
def test_bash_completes(typed: str, offers: list[str], tmp_path: Path) -> None:
    assert completed(typed, tmp_path) == offers
