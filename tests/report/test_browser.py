"""Tests of the report's page in a real browser: no error, no sideways scrolling on a phone, values
under the pointer and in tables, both themes. Needs Chromium (Debian: `apt-get install
chromium`)."""

from pathlib import Path

import pytest

from tests.report.browser import contrast, look, needs_chromium
from tests.report.folders import RunSpec, run, search
from tests.report.test_report import report_on

pytestmark = [pytest.mark.slow, needs_chromium]
# Opens all details of the page, points at the middle of each chart, and returns what is shown.
PROBE = """async () => {
  document.querySelectorAll("details").forEach((part) => { part.open = true; });
  const figures = [...document.querySelectorAll("[data-chart]")];
  await until(() => figures.every(isDrawn));
  figures.forEach(pointAt);
  const values = (chart) => text(".u-legend .u-value", chart);
  await until(() => figures.every((chart) => values(chart).some((one) => /\\d/.test(one))));
  const canvas = document.querySelector("canvas"), colours = new Set();
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  for (let at = 0; at < pixels.length; at += 4) {
    if (pixels[at + 3] === 255) colours.add(`rgb(${pixels.slice(at, at + 3).join(", ")})`);
  }
  return { colours: [...colours], charts: figures.map((chart) => ({
    width: chart.querySelector("canvas").getBoundingClientRect().width,
    names: text(".u-legend .u-label", chart), values: values(chart),
    cells: text("details td", chart).filter((cell) => cell).length })) };
}"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the page of two engines, one with a long label, at two rates."""
    logs = tmp_path_factory.mktemp("logs")
    for spec in (RunSpec(rate=100), RunSpec(), RunSpec("swift"), RunSpec("swift", leak=0.05)):
        run(logs, spec)
    run(logs, RunSpec(settings={"UPDATES_PER_SECOND": "250"}))
    for number in range(3):
        search(logs, "steady", 40_000 + 1_000 * number)
    return report_on([logs], logs / "out").html


def test_a_phone_needs_no_sideways_scrolling_and_shows_values(page: str, tmp_path: Path) -> None:
    seen = look(page, PROBE, tmp_path, 390)
    assert seen.console == []
    assert seen.width <= 390
    charts = seen.result["charts"]
    assert len(charts) == page.count("data-chart>")
    for chart in charts:
        assert 300 < chart["width"] <= 390
        assert len(chart["values"]) == len(chart["names"]) > 1
        assert all(any(of.isdigit() for of in value) for value in chart["values"]), chart
        assert chart["cells"] >= len(chart["names"]) - 1


def test_light_and_dark_are_both_drawn(page: str, tmp_path: Path) -> None:
    light = look(page, PROBE, tmp_path, 1200, "light")
    dark = look(page, PROBE, tmp_path, 1200, "dark")
    assert light.paper == "rgb(255, 255, 255)" != dark.paper
    for seen in (light, dark):
        assert contrast(seen.ink, seen.paper) >= 4.5
        assert max(contrast(colour, seen.paper) for colour in seen.result["colours"]) >= 3
