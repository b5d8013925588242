"""docs/ci.md: its commands exist, and its conditions pass and fail on recorded runs."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from racetrack import cli
from racetrack.config import REPO
from tests.report.folders import RunSpec, run, search

PAGE = (REPO / "docs" / "ci.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def commands() -> list[list[str]]:
    """The words of each call of `race` on the page, after `race`."""
    (workflow,) = map(yaml.safe_load, blocks("yaml"))
    steps = [step["run"] for step in workflow["jobs"]["race"]["steps"] if "run" in step]
    lines = [*steps, *(line for block in blocks("sh") for line in block.splitlines())]
    words = [shlex.split(line) for line in lines]
    return [each[1:] for each in words if each and each[0].endswith("/race")]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_each_command_takes_its_arguments(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    base = tmp_path / "base.json"
    base.write_text("{}")
    context = click.Context(cli.race)
    command = cli.race.get_command(context, words[0])
    assert command
    files = {"/tmp/base.json": str(base), "$GITHUB_STEP_SUMMARY": "summary.md"}
    given = [files.get(word, word) for word in words[1:]]
    assert command.make_context(words[0], given, parent=context).params


BASE, CAPACITY_PER_S = RunSpec(), 100_000
# Changes of the recorded base that make a condition hold: of its runs, or of its capacity.
WORSE: dict[str, tuple[RunSpec, float]] = {
    "lag_p99_ms>2000": (RunSpec(delay_ms=3_000), CAPACITY_PER_S),
    "lag_p99_ms>5000": (RunSpec(delay_ms=6_000), CAPACITY_PER_S),
    "cpu_s_per_million>+10%": (RunSpec(cpu_pct=60), CAPACITY_PER_S),
    "cpu_s_per_million>+15%": (RunSpec(cpu_pct=60), CAPACITY_PER_S),
    "capacity_per_s<-10%": (BASE, 70_000),
    "capacity_per_s<-15%": (BASE, 70_000),
    "fell_behind": (RunSpec(leak=0.1), CAPACITY_PER_S),
    "undecided": (RunSpec(leak=0.01, window_s=5), CAPACITY_PER_S),
}


def record_runs(logs: Path, spec: RunSpec, per_s: float) -> None:
    """Record two runs and a capacity search of the same engine."""
    for seed in (1, 2):
        run(logs, replace(spec, seed=seed))
    search(logs, spec.engine, per_s)


def compare(*typed: object) -> tuple[int, str]:
    result = CliRunner().invoke(cli.race, ["compare", *map(str, typed)])
    return result.exit_code, result.output


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of `--json`, beside the folder of the runs in it."""
    folder = tmp_path_factory.mktemp("base")
    record_runs(folder / "logs", BASE, CAPACITY_PER_S)
    same, file = folder / "logs", folder / "base.json"
    code, output = compare(same, "--against", same, "--json", file)
    assert code == 0, output
    return file


def test_each_condition_of_the_page_is_known() -> None:
    rows = re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
    conditions = {each.strip("'") for row in rows for each in re.findall(r"`(.*?)`", row)}
    for words in commands():
        conditions |= {words[at + 1] for at, word in enumerate(words) if word == "--fail-if"}
    assert conditions == set(WORSE)


@pytest.mark.parametrize("condition", WORSE)
def test_a_condition_passes_and_fails_on_recorded_runs(
    condition: str, base: Path, tmp_path: Path
) -> None:
    gate = "--against", base, "--fail-if", condition
    code, output = compare(base.with_name("logs"), *gate)
    assert code == 0, output
    record_runs(tmp_path / "logs", *WORSE[condition])
    code, output = compare(tmp_path / "logs", *gate)
    assert code == 6, output
    assert f"Fails --fail-if '{condition}': " in output
