"""Fixtures of the tests of commands: a free machine, ended runs, and experiments without runs."""

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

from racetrack import cli, integrity
from racetrack.config import for_record, load
from racetrack.plan.resolve import Cell, ResolvedPlan
from racetrack.results.experiment import (
    ExperimentRecord,
    ExperimentRun,
    read_experiment,
    write_experiment,
)
from racetrack.results.folder import RunFolder
from racetrack.results.run import PartOf, WindowRecord
from racetrack.run import runner
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
    """A run may hold the real lock, and run folders go elsewhere. After a failure, all installed
    files would be read, which takes seconds."""
    monkeypatch.setattr(integrity, "examine_all", lambda _: "")
    monkeypatch.setenv("MACHINE_LOCK", str(tmp_path / "machine.lock"))
    monkeypatch.setenv("LOGS_FOLDER", str(tmp_path / "logs"))


@pytest.fixture
def ended(tmp_path: Path) -> Ended:
    """Make the folder of a run with this outcome, and other changes to its record."""

    def make(outcome: str, changes: Mapping[str, Any] | None = None) -> Path:
        record = run_json({"outcome": outcome, **(changes or {})})
        folder = tmp_path / "a_run"
        folder.mkdir(exist_ok=True)
        (folder / "run.json").write_text(json.dumps(record))
        return folder

    return make


class MakesRuns:
    """Takes the place of the function that makes the runs of a plan: each run ends at once with
    `outcome`, and with the windows that `windows` returns for its cell."""

    def __init__(self) -> None:
        self.plans: list[ResolvedPlan] = []
        self.folders: list[Path] = []
        self.outcome = "ok"
        self.windows: Callable[[Cell], Sequence[WindowRecord]] = lambda _: ()

    def __call__(
        self, planned: ResolvedPlan | None, resume: Path | None, *_: object, **__: object
    ) -> tuple[Path, ExperimentRecord]:
        if not planned:
            assert resume
            return resume, read_experiment(resume)
        self.plans.append(planned)
        folder = runner.begin(planned)
        self.folders.append(folder)
        record = read_experiment(folder)
        record.runs = tuple(self._made(folder, planned, run) for run in record.runs)
        write_experiment(folder, record)
        return folder, record

    def _made(self, folder: Path, planned: ResolvedPlan, run: ExperimentRun) -> ExperimentRun:
        cell = planned.cells[run.cell]
        made = RunFolder.create(folder.parent, cell.engine, "made")
        record = run_json({"outcome": self.outcome, "engine": cell.engine})
        part = PartOf(experiment=folder.name, variant=cell.variant, repeat=cell.repeat)
        record["part_of"] = part.model_dump()
        record["windows"] = [window.model_dump(mode="json") for window in self.windows(cell)]
        record |= {"run_id": made.tag, "settings": for_record(load(cell.settings))}
        del record["results"], record["measured"]
        (made.path / "run.json").write_text(json.dumps(record))
        return run.model_copy(update={"tag": made.tag, "outcome": self.outcome})


@pytest.fixture
def makes_runs() -> MakesRuns:
    return MakesRuns()
