"""Fixtures of the tests of commands: a free machine, ended runs, and plans instead of sweeps."""

import copy
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from racetrack import cli
from racetrack.results.folder import read_plan
from racetrack.results.sweep import Sweep
from tests.records import run_json

Ended = Callable[..., Path]


def invoke(typed: str, **arguments: object) -> Result:
    """Run `./race` with these words. The command's function receives `arguments` in addition to the
    options."""
    name, *words = shlex.split(typed)
    command = cli.race.get_command(click.Context(cli.race), name)
    assert command
    return invoke_command(command, words, **arguments)


def invoke_command(command: click.Command, words: Sequence[str], **arguments: object) -> Result:
    """Run this command with these words, as `invoke` does."""
    command = copy.copy(command)
    assert command.callback
    command.callback = partial(command.callback, **arguments)
    return CliRunner().invoke(command, words)


@pytest.fixture(autouse=True)
def free_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A run may hold the real lock, and run folders go elsewhere."""
    monkeypatch.setenv("MACHINE_LOCK", str(tmp_path / "machine.lock"))
    monkeypatch.setenv("LOGS_FOLDER", str(tmp_path / "logs"))


@pytest.fixture
def ended(tmp_path: Path) -> Ended:
    """Make the folder of a run with this outcome, and other changes to its record."""

    def make(outcome: str, changes: Mapping[str, Any] | None = None) -> Path:
        record = run_json({"outcome": outcome, **(changes or {})})
        (tmp_path / "run.json").write_text(json.dumps(record))
        return tmp_path

    return make


class CarryOut:
    """Takes the place of the function that makes the runs of a plan: it keeps the plan."""

    def __init__(self) -> None:
        self.plans: list[Sweep] = []
        self.result: bool | BaseException = True

    def __call__(self, folder: Path, *_: object) -> bool:
        self.plans.append(read_plan(folder, Sweep))
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


@pytest.fixture
def carry_out() -> CarryOut:
    return CarryOut()
