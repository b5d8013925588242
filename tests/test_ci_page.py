"""docs/ci.md: its commands and its conditions exist."""

import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from racetrack import cli
from racetrack.config import REPO
from racetrack.report import gate

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


def test_each_condition_of_the_page_is_one() -> None:
    rows = re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
    conditions = {each.strip("'") for row in rows for each in re.findall(r"`(.*?)`", row)}
    for words in commands():
        conditions |= {words[at + 1] for at, word in enumerate(words) if word == "--fail-if"}
    assert conditions
    for condition in conditions:
        assert gate.parse(condition)
