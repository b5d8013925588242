"""The README and the pages that it begins with tell the truth: commands run, their output looks as
printed, and what they name exists."""

import json
import os
import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from pydantic import SecretStr

from racetrack import cli
from racetrack.install.versions import in_env_files
from racetrack.screen import REMARK
from racetrack.settings import REPO, load
from tests.e2e.loadgen_stack import LoadgenStack
from tests.e2e.shared import EXPERIMENT, Door, run_folder

pytestmark = pytest.mark.e2e

README = (REPO / "README.md").read_text()
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUN_FOLDER = (REPO / "docs" / "run-folder.md").read_text()
PAGES = ("README.md", "docs/run-folder.md", "docs/engines.md", "docs/results.md")
# Further pages, of which only the links are looked at.
LINKED = (
    *("docs/measured.md", "docs/faults.md", "docs/verdict.md", "docs/view-lag.md"),
    *("docs/adding-an-engine.md", "docs/adding-a-workload.md", "docs/workloads.md"),
)


def prose(page: str) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", (REPO / page).read_text(), flags=re.MULTILINE | re.DOTALL)


# What stands between backticks; the page wraps its lines.
SPANS = [
    span for page in PAGES for span in re.findall(r"`([^`]+)`", prose(page).replace("\n", " "))
]
NC = "nc localhost 8090"
# What only some runs say, and what goes on below the verdict.
DEPENDS_ON_FIGURES = (REMARK, " " * 14, "  warning ")
LAG = "  lag "  # which only a verdict with a slope has
STEP = re.compile(r"\[[1-6]/6\] ")


def transcripts() -> dict[str, list[str]]:
    """What the README prints after each `$ ` of its console blocks, by command."""
    found: dict[str, list[str]] = {}
    for block in CONSOLE.findall(README):
        printed: list[str] = []
        for line in block.splitlines():
            if line.startswith("$ "):
                printed = found.setdefault(line[2:], [])
            else:
                printed.append(line)
    return found


def shape(line: str) -> str:
    """A line with all that changes from run to run taken out."""
    line = re.sub(r"\S*logs/\S+", "FOLDER", line)
    line = re.sub(r"(the data in) \S+", r"\1 FOLDER", line)
    line = re.sub(r"samples=\[.*\]", "samples=[N]", line)
    # The outcome's and the verdict's words depend on their figures.
    line = re.sub(r"^(\w+ at \S+ pageviews/s \(\w+\):) .*", r"\1 WORDS", line)
    line = re.sub(r"^(  verdict) .*", r"\1 WORDS", line)
    step = STEP.match(line)
    kept = step[0] if step else ""
    return kept + re.sub(r"(?<![\w.])-?\d+(,\d{3})*(\.\d+)?|n/a", "N", line[len(kept) :]).rstrip()


def sections(lines: Iterable[str]) -> dict[str, Counter[str]]:
    """The shapes of a run's lines by step (before the first: ""), in no order: services get ready
    as they please."""
    found = {"": Counter[str]()}
    name = ""
    for line in lines:
        if STEP.match(line):
            name = shape(line)
            assert name not in found, f"{name} twice"
            found[name] = Counter()
        elif not line.startswith(DEPENDS_ON_FIGURES):
            found[name][shape(line)] += 1
    return found


def test_nothing_is_left_to_fill_in() -> None:
    assert re.findall(r"@@\w+@@", README) == []


def test_every_command_is_run_by_a_test() -> None:
    files = [*Path(__file__).parent.glob("*.py"), *REPO.glob("racetrack/engines/*/tests/*_e2e.py")]
    tests = "".join(path.read_text() for path in files)
    run_here = {EXPERIMENT, NC}
    for command in transcripts().keys() - run_here:
        if command == "./run_tests.sh":  # which runs this
            assert command.removeprefix("./") in (REPO / ".ci/run").read_text()
            continue
        words = [json.dumps(word) for word in shlex.split(command.removeprefix("./"))]
        literally = f"Door({', '.join(words)})" in tests
        by_helper = words[:2] == ['"race"', '"up"'] and f"stack_up({words[-1]}" in tests
        assert literally or by_helper, f"no test runs {command!r}"


def test_the_experiment_prints_what_the_readme_shows(experiment: Door) -> None:
    assert EXPERIMENT in transcripts()
    printed, real = sections(transcripts()[EXPERIMENT]), sections(experiment.lines)
    assert list(printed) == list(real)
    for name, lines in printed.items():
        only = [line for line in lines - real[name] if not line.startswith(LAG)]
        assert only == [], f"in the README only, {name or 'before step 1'}"
        # Set-up is done and told by the first run only.
        if name and not name.startswith("[1/6]"):
            assert real[name] - lines == Counter(), f"not in the README, {name}"


def test_the_run_folder_holds_what_the_table_says(experiment: Door) -> None:
    sometimes = re.compile(r"in containers|with `")
    folder = run_folder(experiment.output)
    held = {
        name: sometimes.match(says) is None
        for row, says in re.findall(r"^\| (`[^|]+\.[^|]+) \| (.+) \|$", RUN_FOLDER, re.MULTILINE)
        for name in re.findall(r"`([^`]+)`", row)
    }
    assert held["run.json"]
    for name in (name for name, always in held.items() if always):
        assert any(path.stat().st_size for path in folder.glob(name)), name
    table = {path.relative_to(folder) for name in held for path in folder.glob(name)}
    real = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    assert real - table == set(), "not in docs/run-folder.md"


def test_the_dialogue_is_a_real_one(loadgen: LoadgenStack) -> None:
    assert f"LOADGEN_PORT={NC.rsplit(maxsplit=1)[-1]}\n" in (REPO / ".env").read_text()
    shown = transcripts()[NC]
    typed = [line for line in shown if re.match(r"(set|get|quit|help|stats|flush)\b", line)]
    assert typed[-1] == "quit"
    nc = subprocess.run(
        ["nc", "localhost", str(loadgen.settings.loadgen_port)],
        input="".join(f"{line}\n" for line in typed),
        capture_output=True,
        text=True,
        timeout=10,
        check=True,
    )
    greeting, *answers = nc.stdout.splitlines()
    real = [greeting]
    for line, answer in zip(typed, answers, strict=True):
        real += [line, answer]
    assert [shape(line) for line in shown] == [shape(line) for line in real]


def test_every_setting_that_it_names_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    in_env_file = set(in_env_files())
    sources = [*REPO.glob("racetrack/**/*.py"), *REPO.glob("racetrack/**/*.sh")]
    code = "".join(path.read_text() for path in sources)
    named = {
        name
        for span in SPANS
        for name in re.findall(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]*[A-Z0-9]\b", span)
    }
    assert named
    for name in named - in_env_file:
        assert f'"{name}"' in code, f"{name} is neither in .env nor read anywhere"
    for name, value in re.findall(r"\b([A-Z0-9_]+)=(\S+)", "\n".join(SPANS)):
        monkeypatch.setenv(name, value)
        held = getattr(load(), name.lower())
        text = held.get_secret_value() if isinstance(held, SecretStr) else str(held)
        assert text.lower() == value.lower()


def test_every_command_that_it_names_is_one() -> None:
    named = {verb for span in SPANS for verb in re.findall(r"\./race (\w+)", span)}
    assert named == cli.race.commands.keys()


def test_every_path_that_it_names_exists() -> None:
    for span in SPANS:
        front_door = re.match(r"\./(\S+)", span)
        if front_door:
            assert os.access(REPO / front_door[1], os.X_OK), span
        elif re.fullmatch(r"(racetrack|engines|scripts|loadgen|docs|tests|bench)/\S*|\.env", span):
            assert (REPO / span).exists(), span
        elif re.fullmatch(r"\w+\.py", span):
            assert any(REPO.glob(f"[!.]*/**/{span}")), span


def test_every_link_leads_somewhere() -> None:
    pages = (*PAGES, *LINKED)
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)\s]+)\)", prose(page))]
    assert links
    for page, link in links:
        if not link.startswith("https://"):
            path, _, heading = link.partition("#")
            target = (REPO / page).parent / path if path else REPO / page
            assert target.exists(), link
            assert not heading or heading in _anchors(target.read_text()), link


def _anchors(text: str) -> set[str]:
    """The names that a page's headings are reached by."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
