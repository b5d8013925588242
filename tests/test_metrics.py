"""Tests of the registry of figures, and of the pages that quote it."""

import pytest

from racetrack.config import REPO
from racetrack.metrics import CORE_SPEED, FOREIGN_CPU, QUESTIONS, STEAL, Metric


def test_the_page_on_comparisons_names_the_questions_and_what_is_resolved() -> None:
    page = (REPO / "docs" / "compare.md").read_text()
    for metric in QUESTIONS:
        resolves = f"{100 * metric.within:g} %" if metric.within else metric.text(metric.within_abs)
        assert f"| {metric.best} | {metric.title}, {metric.unit} | {resolves} |" in page


@pytest.mark.parametrize("metric", [FOREIGN_CPU, STEAL, CORE_SPEED], ids=lambda of: of.key)
def test_the_page_on_noise_quotes_the_meanings(metric: Metric) -> None:
    page = (REPO / "docs" / "noise.md").read_text()
    assert f"| {metric.title}, {metric.unit} | {metric.means} |" in page
