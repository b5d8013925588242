"""Tests that pages stay within their word budgets, and that links work."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from racetrack.config import REPO

# Highest number of words, without code.
BUDGETS = {
    "README.md": 700,
    "CONTRIBUTING.md": 400,
    "docs/adding-a-workload.md": 600,
    "docs/adding-an-engine.md": 900,
    "docs/choosing.md": 400,
    "docs/ci.md": 400,
    "docs/cluster.md": 900,
    "docs/compare.md": 600,
    "docs/plans.md": 900,
    "docs/engines.md": 800,
    "docs/faults.md": 700,
    "docs/limit.md": 800,
    "docs/live.md": 500,
    "docs/measured.md": 1_500,
    "docs/nexmark.md": 900,
    "docs/noise.md": 600,
    "docs/own-parts.md": 650,
    "docs/results.md": 500,
    "docs/run-folder.md": 900,
    "docs/running.md": 900,
    "docs/verdict-appendix.md": 1_000,
    "docs/verdict.md": 900,
    "docs/views.md": 740,
    "docs/workloads.md": 700,
    "loadgen/README.md": 1_000,
    "results/README.md": 300,
}
# Pages without their tables, which are references or grow with the results.
TABLES_APART = ("README.md", "docs/choosing.md", "docs/results.md")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def without_code(text: str) -> str:
    """Return a page without fenced and indented code blocks."""
    unfenced = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^ {4}.*$", "", unfenced, flags=re.MULTILINE)


def without_tables(text: str) -> str:
    return re.sub(r"^\|.*$", "", text, flags=re.MULTILINE)


def words(text: str) -> int:
    return sum(bool(re.search(r"\w", word)) for word in text.split())


def anchors(text: str) -> set[str]:
    """Return the names by which links refer to a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken(path: Path, links: Iterable[str]) -> list[str]:
    """Return those links of the page at `path` whose target does not exist."""
    found = []
    for link in links:
        target, _, heading = link.partition("#")
        file = (path.parent / target).resolve() if target else path
        if not file.exists() or (heading and heading not in anchors(file.read_text())):
            found.append(link)
    return found


def test_each_page_has_a_budget() -> None:
    pages = {str(path.relative_to(REPO)) for path in REPO.glob("docs/*.md")}
    assert pages == {page for page in BUDGETS if page.startswith("docs/")}


@pytest.mark.parametrize(("page", "most"), BUDGETS.items())
def test_a_page_keeps_to_its_budget(page: str, most: int) -> None:
    text = without_code((REPO / page).read_text())
    assert words(without_tables(text) if page in TABLES_APART else text) <= most


@pytest.mark.parametrize("page", BUDGETS)
def test_every_link_leads_somewhere(page: str) -> None:
    path = REPO / page
    links = [link for link in LINK.findall(path.read_text()) if not link.startswith("https://")]
    assert broken(path, links) == []
