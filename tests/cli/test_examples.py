"""The examples in the help of all commands: each is accepted, as far as that shows without a
run."""

import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from racetrack import cli
from racetrack.cli.run import run_experiment
from racetrack.config import REPO
from racetrack.plan.model import parse_plan
from racetrack.plan.resolve import Options, resolve
from racetrack.results.experiment import ExperimentRecord, write_experiment
from tests.cli.conftest import Ended, MakesRuns, invoke_command

CONTEXT = click.Context(cli.race)
# A call, up to the text or the rest of a shell's line behind it.
CALL = re.compile(r"\./(race \w+|run_experiment\.sh) ?(.*?)(?: {2}.*|\)\".*| \|.*)?$")


def command_of(name: str) -> click.Command:
    command = run_experiment if name == "run_experiment.sh" else cli.race.get_command(CONTEXT, name)
    assert command
    return command


def examples() -> Iterator[tuple[str, str]]:
    """Yield the name of a command and its arguments, for each example."""
    commands = map(command_of, [*cli.race.list_commands(CONTEXT), "run_experiment.sh"])
    for command in (cli.race, *commands):
        text = inspect.cleandoc(command.help or "").partition("\nExample")[2].partition("\n\n")[0]
        for call in re.split(r"\n| && ", re.sub(r"\s*\\\n\s*", " ", text)):
            if found := CALL.search(call):
                yield found[1].removeprefix("race "), found[2]


EXAMPLES = sorted(set(examples()))
PLAN = 'variants = ["cal"]\nphase = [{ saturate = "20s" }]'
WITHOUT_A_STACK = ("run", "run_experiment.sh", "compare", "plan", "limit")
PUBLISHED = next((REPO / "results").glob("shop/*/dh@*.json"))


@pytest.fixture
def recorded(ended: Ended, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The record of a run, in the current folder, for `create_paths`."""
    monkeypatch.chdir(tmp_path)
    return ended("ok") / "run.json"


def create_paths(words: list[str], record: Path) -> None:
    """Create the folders and files that an example reads: runs, plans of sweeps, and results."""
    read = [Path(word) for word in words if word.partition("/")[0] in ("logs", "results")]
    for path in read:
        if path.suffix == ".json":
            path.parent.mkdir(parents=True)
            path.write_bytes(PUBLISHED.read_bytes())
        else:
            path.mkdir(parents=True)
            (path / "run.json").write_bytes(record.read_bytes())
            planned = resolve(parse_plan(PLAN, "plan"), "plan", Options(seed=1))
            experiment = planned.model_dump(mode="json", by_alias=True)
            write_experiment(path, ExperimentRecord(name="plan", seed=1, plan=experiment))
    if "my.toml" in words:
        Path("my.toml").write_text(PLAN)


def test_every_command_has_an_example() -> None:
    named = {name for name, _ in EXAMPLES}
    assert named == {*cli.race.list_commands(CONTEXT), "run_experiment.sh"}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "arguments"), EXAMPLES)
def test_each_example_is_accepted_with_its_plan_settings_faults_and_conditions(
    name: str, arguments: str, recorded: Path, makes_runs: MakesRuns, ended: Ended
) -> None:
    words = shlex.split(arguments)
    create_paths(words, recorded)
    command = command_of(name)
    if name not in WITHOUT_A_STACK or "logs/" in arguments:
        assert command.make_context(name, words, parent=CONTEXT)
        return
    instead: dict[str, object] = {"make_runs": makes_runs} if name != "plan" else {}
    if name.startswith("run"):
        instead = {"make_run": lambda *_: ended("ok")}
    result = invoke_command(command, words, **instead)
    assert result.exit_code in (0, 6), result.output
