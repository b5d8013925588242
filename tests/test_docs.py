"""Tests that pages stay within their word budgets, and that links work."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from racetrack.config import REPO

# Highest number of words, without code → pages; of other pages it is MOST.
MOST = 900
BUDGETS = {
    300: ("docs/results.md", "results/README.md"),
    400: ("CONTRIBUTING.md", "docs/ci.md"),
    450: ("docs/choosing.md",),
    500: ("docs/live.md",),
    600: ("docs/adding-a-workload.md", "docs/compare.md", "docs/noise.md"),
    650: ("docs/own-parts.md",),
    700: ("README.md", "docs/faults.md", "docs/workloads.md"),
    740: ("docs/views.md",),
    800: ("docs/engines.md", "docs/limit.md"),
    1_000: ("docs/verdict-appendix.md", "loadgen/README.md"),
    1_500: ("docs/measured.md",),
}
BUDGET_OF = {page: most for most, pages in BUDGETS.items() for page in pages}
PAGES = sorted({*BUDGET_OF, *(str(path.relative_to(REPO)) for path in REPO.glob("docs/*.md"))})
# Without its tables, which are references; and up to the first heading, after which the pages grow
# with the results.
TABLES_APART = "README.md"
GENERATED = ("docs/choosing.md", "docs/results.md")
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


@pytest.mark.parametrize("page", PAGES)
def test_a_page_keeps_to_its_budget_and_every_link_leads_somewhere(page: str) -> None:
    path = REPO / page
    text = without_code(path.read_text())
    if page == TABLES_APART:
        text = without_tables(text)
    elif page in GENERATED:
        text, _, _ = text.partition("\n## ")
    assert words(text) <= BUDGET_OF.get(page, MOST)
    links = [link for link in LINK.findall(path.read_text()) if not link.startswith("https://")]
    assert broken(path, links) == []
