"""docs/ci.md: its commands exist, and its conditions pass and fail on recorded runs."""

import re
import shlex
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from racetrack import cli
from racetrack.config import REPO
from tests.report.folders import RunSpec, run

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


@pytest.mark.parametrize(("cpu_pct", "code"), [(40.0, 0), (60.0, 6)])
def test_its_conditions_pass_and_fail(tmp_path: Path, cpu_pct: float, code: int) -> None:
    for name, used_pct in (("base", 40.0), ("change", cpu_pct)):
        for seed in (1, 2):
            run(tmp_path / name, RunSpec(cpu_pct=used_pct, seed=seed))
    (words,) = [each for each in commands() if "--against" in each]
    texts = [words[at + 1] for at, word in enumerate(words) if word == "--fail-if"]
    assert len(texts) == 4
    # Recorded runs have no capacity.
    conditions = [word for text in texts if "capacity" not in text for word in ("--fail-if", text)]
    base = str(tmp_path / "base.json")
    recorded = [str(tmp_path / "base"), "--against", str(tmp_path / "base")]
    made = CliRunner().invoke(cli.race, ["compare", *recorded, "--json", base])
    assert made.exit_code == 0, made.output
    typed = ["compare", str(tmp_path / "change"), "--against", base, *conditions]
    result = CliRunner().invoke(cli.race, typed)
    assert result.exit_code == code, result.output
