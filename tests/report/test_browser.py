"""Tests of the report's page in a real browser: no error, no sideways scrolling on a phone, values
under the pointer and in tables, both themes. Needs Chromium (Debian: `apt-get install
chromium`)."""

from pathlib import Path

import pytest

from racetrack.analysis import table
from racetrack.report.html import write
from racetrack.report.runs import read_runs
from racetrack.report.sheet import sheet
from tests.report.browser import contrast, look, needs_chromium
from tests.report.folders import RunSpec, run, search

pytestmark = [pytest.mark.slow, needs_chromium]
# Opens all details of the page, points at the middle of each chart, and returns what is shown.
PROBE = """async (page, view) => {
  page.querySelectorAll("details").forEach((part) => { part.open = true; });
  const figures = [...page.querySelectorAll("[data-chart]")];
  const isDrawn = (chart) => chart.querySelector(".u-over") && chart.querySelector("details td");
  await until(() => figures.every(isDrawn));
  for (const chart of figures) {
    const over = chart.querySelector(".u-over"), box = over.getBoundingClientRect();
    const at = { clientX: box.left + box.width / 2, clientY: box.top + 20, bubbles: true };
    over.dispatchEvent(new view.MouseEvent("mousemove", at));
  }
  const values = (chart) =>
    [...chart.querySelectorAll(".u-legend .u-value")].map((one) => one.textContent);
  await until(() => figures.every((chart) => values(chart).some((text) => /\\d/.test(text))));
  const charts = figures.map((chart) => ({
    title: chart.querySelector("h4").textContent,
    width: chart.querySelector("canvas").getBoundingClientRect().width,
    names: [...chart.querySelectorAll(".u-legend .u-label")].map((one) => one.textContent),
    values: values(chart),
    cells: [...chart.querySelectorAll("details td")].filter((cell) => cell.textContent).length }));
  const pixel = () => {
    const canvas = page.querySelector("canvas"), ink = canvas.getContext("2d");
    const all = ink.getImageData(0, 0, canvas.width, canvas.height).data, seen = {};
    for (let at = 0; at < all.length; at += 4) {
      if (all[at + 3] === 255) {
        const colour = `rgb(${all[at]}, ${all[at + 1]}, ${all[at + 2]})`;
        seen[colour] = (seen[colour] || 0) + 1;
      }
    }
    return seen;
  };
  const style = view.getComputedStyle(page.documentElement);
  return { charts, width: page.documentElement.scrollWidth, drawn: pixel(),
    line: style.getPropertyValue("--s0").trim(),
    paper: view.getComputedStyle(page.body).backgroundColor,
    ink: view.getComputedStyle(page.body).color };
}"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the page of two engines, one with a long label, at two rates."""
    logs = tmp_path_factory.mktemp("logs")
    for spec in (
        RunSpec(rate=100),
        RunSpec(),
        RunSpec(engine="swift"),
        RunSpec(engine="swift", leak=0.05),
    ):
        run(logs, spec)
    run(logs, RunSpec(settings={"UPDATES_PER_SECOND": "250"}))
    for number in range(3):
        search(logs, "steady", 40_000 + 1_000 * number)
    rows = table.read([logs])
    write(logs / "out", rows, sheet(rows), read_runs(rows), lambda *_: None)
    return (logs / "out" / "report.html").read_text()


def test_a_phone_needs_no_sideways_scrolling_and_shows_values(page: str, tmp_path: Path) -> None:
    seen = look(page, PROBE, tmp_path, 390)
    assert seen.console == []
    assert seen.result["width"] <= 390
    charts = seen.result["charts"]
    assert len(charts) == page.count("data-chart>")
    for chart in charts:
        assert 300 < chart["width"] <= 390
        assert len(chart["values"]) == len(chart["names"]) > 1
        assert all(any(of.isdigit() for of in value) for value in chart["values"]), chart
        assert chart["cells"] >= len(chart["names"]) - 1


def test_light_and_dark_are_both_drawn(page: str, tmp_path: Path) -> None:
    light = look(page, PROBE, tmp_path, 1200, "light").result
    dark = look(page, PROBE, tmp_path, 1200, "dark").result
    assert light["paper"] == "rgb(255, 255, 255)"
    for name in ("paper", "ink", "line"):
        assert light[name] != dark[name]
    for seen in (light, dark):
        assert contrast(seen["ink"], seen["paper"]) >= 4.5
        most = max(seen["drawn"], key=lambda colour: contrast(colour, seen["paper"]))
        assert contrast(most, seen["paper"]) >= 3
