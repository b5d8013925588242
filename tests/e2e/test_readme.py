"""End-to-end tests that the output of the README's commands looks as in the README."""

import re
from collections import Counter

from racetrack.config import REPO
from tests.e2e.loadgen_stack import LoadgenStack
from tests.e2e.shared import EXPERIMENT, Door, nc

README = (REPO / "README.md").read_text()
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NC = "nc localhost 8090"
# Beginnings of lines that only some runs print.
DEPENDS_ON_FIGURES = ("  lag ", "  warning ")
STEP = re.compile(r"\[[1-6]/6\] ")


def transcripts() -> dict[str, list[str]]:
    """Return the README's output of each command of its console blocks."""
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
    """Return a line without the parts that differ between runs."""
    line = re.sub(r"\S*logs/\S+", "FOLDER", line)
    line = re.sub(r"(the data in) \S+", r"\1 FOLDER", line)
    line = re.sub(r"samples=\[.*\]", "samples=[N]", line)
    # The wording of outcome and verdict depends on the figures.
    line = re.sub(r"^(\w+ at \S+ events/s \(\w+\):) .*", r"\1 WORDS", line)
    line = re.sub(r"^(  verdict) .*", r"\1 WORDS", line)
    step = STEP.match(line)
    kept = step[0] if step else ""
    return kept + re.sub(r"(?<![\w.])-?\d+(,\d{3})*(\.\d+)?|n/a", "N", line[len(kept) :]).rstrip()


def test_the_experiment_prints_what_the_readme_shows(experiment: Door) -> None:
    """The README leaves out lines, and services become ready in any order."""
    shown = [line for line in transcripts()[EXPERIMENT] if not line.startswith(DEPENDS_ON_FIGURES)]
    not_printed = Counter(map(shape, shown)) - Counter(map(shape, experiment.lines))
    assert list(not_printed) == []
    steps = [shape(line) for line in experiment.lines if STEP.match(line)]
    assert [shape(line) for line in shown if STEP.match(line)] == steps


def test_the_dialogue_is_a_real_one(loadgen: LoadgenStack) -> None:
    assert f"LOADGEN_PORT={NC.rsplit(maxsplit=1)[-1]}\n" in (REPO / ".env").read_text()
    shown = transcripts()[NC]
    typed = [line for line in shown if re.match(r"(set|get|quit|help|stats|flush)\b", line)]
    assert typed[-1] == "quit"
    greeting, *answers = nc(loadgen.settings, *typed[:-1])
    real = [greeting]
    for line, answer in zip(typed, answers, strict=True):
        real += [line, answer]
    assert [shape(line) for line in shown] == [shape(line) for line in real]
