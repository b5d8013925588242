"""Tests that keys, titles and units of figures are spelled in `racetrack/metrics.py` only.

The rule, for the code of the harness in Python, JavaScript and templates:

- A literal that equals a key, a title or a unit is a violation; so is one that equals a title with
  its unit (`lag, ms`), or begins with a key and a slash, as the id of a live series does. In
  JavaScript and templates a key is one anywhere, also as an attribute.
- A title or a unit of one plain word (`memory`, `ms`) is a violation only if both stand side by
  side, as in `("memory", "GiB")`.

Code that needs a certain figure uses the name of its entry (`LAG_P99.key`).
"""

import ast
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from racetrack.config import REPO
from racetrack.metrics import (
    CORE_SPEED,
    FOREIGN_CPU,
    LIVE,
    MEMORY_READ,
    METRICS,
    QUESTIONS,
    STEAL,
    Metric,
)

ALL = [*METRICS.values(), *(metric for metric, _ in LIVE.values())]
KEYS = {metric.key for metric in ALL}
TITLES, UNITS = {metric.title for metric in ALL}, {metric.unit for metric in ALL}
PLAIN = re.compile(r"/?\w+")
SPELLED = KEYS | {text for text in TITLES | UNITS if not PLAIN.fullmatch(text)}
SPELLED |= {f"{metric.title}, {metric.unit}" for metric in ALL}
Find = Callable[[str], Iterator[str]]
HARNESS = REPO / "racetrack"
FILES = [
    path
    for suffix in ("py", "js", "html", "j2")
    for path in sorted(HARNESS.rglob(f"*.{suffix}"))
    if not {"tests", "uplot"}.intersection(path.parts) and path != HARNESS / "metrics.py"
]
LITERAL = re.compile(r""""([^"\n]*)"|'([^'\n]*)'|`([^`]*)`|>([^<>{}]+)(?=<)""")
COMMENT = re.compile(r"^\s*//.*$|\{#.*?#\}", re.MULTILINE)


def in_python(code: str) -> Iterator[str]:
    """Yield the literals in Python code that spell a figure."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Constant) and isinstance(text := node.value, str):
            yield from {text, text.partition("/")[0]} & SPELLED
        beside = [of.value if isinstance(of, ast.keyword) else of for of in children(node)]
        yield from pairs([of.value if isinstance(of, ast.Constant) else "" for of in beside])


def children(node: ast.AST) -> list[ast.AST | None]:
    """Return the parts of a node in the order of the code."""
    if isinstance(node, ast.Dict):
        return [part for item in zip(node.keys, node.values, strict=True) for part in item]
    return [*ast.iter_child_nodes(node)]


def in_page(code: str) -> Iterator[str]:
    """Yield the texts in JavaScript or a template that spell a figure."""
    code = COMMENT.sub("", code)
    yield from KEYS.intersection(re.findall(r"\w+", code))
    texts = ["".join(match).strip() for match in LITERAL.findall(code)]
    yield from (text for text in texts if text in SPELLED)
    yield from pairs(texts)


def pairs(texts: list[Any]) -> Iterator[str]:
    """Yield neighbours that are a title and a unit."""
    for one, other in pairwise(texts):
        if (one in TITLES and other in UNITS) or (one in UNITS and other in TITLES):
            yield f"{one}, {other}"


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HARNESS)))
def test_figures_are_spelled_in_the_registry_only(path: Path) -> None:
    code = path.read_text()
    assert list(in_python(code) if path.suffix == ".py" else in_page(code)) == []


@pytest.mark.parametrize(
    ("found_in", "code", "violations"),
    [
        (in_python, 'row.values["lag_p99_ms"]', ["lag_p99_ms"]),
        (in_python, 'f"lag_ms/{engine}"', ["lag_ms"]),
        (in_python, '{"cost": "CPU-s/million"}', ["CPU-s/million", "cost, CPU-s/million"]),
        (in_python, 'Metric(title="memory", unit="GiB")', ["memory, GiB"]),
        (in_python, 'limits = {"memory": 3}; wait(5, "ms"); say("lag p99 is high")', []),
        (in_page, "latest.offered_per_s", ["offered_per_s"]),
        (in_page, "<th>lag p50<br><small>ms</small></th>", ["lag p50", "lag p50, ms"]),
        (in_page, "// the lag_p99_ms of a run\nbegin();", []),
    ],
)
def test_a_spelled_figure_is_found(found_in: Find, code: str, violations: list[str]) -> None:
    assert sorted(found_in(code)) == sorted(violations)


def test_every_figure_has_a_key_of_its_own_that_ends_with_its_unit() -> None:
    assert len(METRICS) == len({metric.title for metric in METRICS.values()})
    endings = r"_(pct|gib|ms|ns|s|min|events|views|per_s|per_million)$"
    assert [key for key in KEYS if not re.search(endings, key)] == []


def test_the_page_on_comparisons_names_the_questions_and_what_is_resolved() -> None:
    page = (REPO / "docs" / "compare.md").read_text()
    for metric in QUESTIONS:
        resolves = f"{100 * metric.within:g} %" if metric.within else metric.text(metric.within_abs)
        assert f"| {metric.best} | {metric.title}, {metric.unit} | {resolves} |" in page


@pytest.mark.parametrize(
    "metric", [FOREIGN_CPU, STEAL, MEMORY_READ, CORE_SPEED], ids=lambda of: of.key
)
def test_the_page_on_noise_quotes_the_meanings(metric: Metric) -> None:
    page = (REPO / "docs" / "noise.md").read_text()
    assert f"| {metric.title}, {metric.unit} | {metric.means} |" in page
