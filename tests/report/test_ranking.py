"""Tests of the page with the matrix of results, in a real browser: cells, order, marks and how sure
they are; on a phone, in both themes, with the keyboard, and without loading any other file. Several
tests run on two pages: one of results that were made up, and the committed one."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from racetrack.config import REPO
from racetrack.report.ranking import ranking_page
from racetrack.report.standings import standings
from racetrack.results.classes import Classes
from tests.report.browser import chromium, contrast, look, needs_chromium
from tests.report.folders import PUBLISHED, SERVED, WHEN_READ
from tests.report.made_up import SHARES, STEADY, SWIFT, UNVERIFIED, Engine, result

pytestmark = [pytest.mark.slow, needs_chromium]

MOST_WITHOUT_DATA = 300_000
FRESHNESS, COST = "view_lag_p99_ms@0.5", "cpu_s_per_million@0.5"
THROUGHPUT = "capacity_per_s"

# Reads the matrix: the text of each cell, by its column, of each engine.
MATRIX = """const read = () => {
  const keys = [...page.querySelectorAll("#matrix thead th")].map((head) => head.dataset.key);
  return [...page.querySelectorAll("#matrix tbody tr")].map((row) => Object.fromEntries(
    [...row.children].map((cell, at) => [keys[at], cell.textContent.trim()])));
};
const text = (of) => [...page.querySelectorAll(of)].map((one) => one.textContent.trim());
const choose = (name, value) => {
  const select = page.getElementById(name);
  select.value = value;
  select.dispatchEvent(new view.Event("change"));
};"""
READ = f"""async (page, view) => {{
  {MATRIX}
  return {{ rows: read(), answers: text("#answers li"), facts: text("#records .pairs").join(" ") }};
}}"""
# Sorts by a column in both directions, opens everything, and moves over the charts.
PROBE = f"""async (page, view) => {{
  {MATRIX}
  const names = () => read().map((row) => row.engine);
  const heads = text("#matrix thead th"), first = read();
  const button = () => page.querySelector("#matrix th[data-key=engine] button");
  button().click();
  const rising = names();
  const isFocused = page.activeElement === button();
  button().click();
  const falling = names();
  const sorted = page.querySelector("#matrix th[data-key=engine]").getAttribute("aria-sort");
  page.querySelectorAll("details").forEach((one) => {{ one.open = true; }});
  const shown = [...page.querySelectorAll(".chart")].filter((chart) => !chart.hidden);
  const isDrawn = (chart) => chart.querySelector(".u-over") && chart.querySelector(".behind td");
  await until(() => shown.every(isDrawn));
  const filled = (cell) => cell.textContent;
  const charts = shown.map((chart) => {{
    const over = chart.querySelector(".u-over"), box = over.getBoundingClientRect();
    const at = {{ clientX: box.left + box.width / 2, clientY: box.top + 20, bubbles: true }};
    over.dispatchEvent(new view.MouseEvent("mousemove", at));
    return {{ title: chart.querySelector("h3").textContent, width: chart.clientWidth,
      label: chart.querySelector("canvas").getAttribute("aria-label"),
      cells: [...chart.querySelectorAll(".behind tbody td")].filter(filled).length }};
  }});
  await until(() => text(".u-legend .u-value").some((value) => /\\d/.test(value)));
  return {{ heads, first, rising, falling, isFocused, sorted, charts, answers: text("#answers li"),
    legend: text(".u-legend .u-value"), commands: text("#records pre"),
    links: [...page.querySelectorAll("#matrix a")].map((one) => one.getAttribute("href")),
    width: page.documentElement.scrollWidth,
    paper: view.getComputedStyle(page.body).backgroundColor,
    ink: view.getComputedStyle(page.body).color }};
}}"""


def page_of(changes: Mapping[str, Mapping[str, Any]] | None = None) -> str:
    """Return the page of both engines, with changes of their results."""
    given = changes or {}
    return ranking_page(standings([result(of, **given.get(of.name, {})) for of in (STEADY, SWIFT)]))


def seen(page: str, tmp_path: Path, probe: str = READ) -> Any:
    return look(page, probe, tmp_path, 1200).result


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    for made in (result(STEADY), result(SWIFT)):
        path = folder / made.file_name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made.as_text())
    return folder


@dataclass(frozen=True)
class Site:
    """A page, and the folder of its results."""

    page: str
    root: Path


@pytest.fixture(scope="module", params=["made up", "committed"])
def site(request: pytest.FixtureRequest, root: Path) -> Site:
    if request.param == "made up":
        return Site(page_of(), root)
    return Site((REPO / "docs" / "index.html").read_text(), REPO / "results")


@pytest.fixture(scope="module")
def wide(site: Site, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Look at the page in the light theme, at the width of a desktop screen."""
    return look(site.page, PROBE, tmp_path_factory.mktemp("wide"), 1200, "light").result


def test_it_fits_a_phone_and_sorts_there(site: Site, tmp_path: Path) -> None:
    phone = look(site.page, PROBE, tmp_path, 390)
    assert phone.console == []
    assert phone.result["width"] <= 390
    assert phone.result["isFocused"] and phone.result["sorted"] == "descending"
    rising = phone.result["rising"]
    assert rising == sorted(rising) == phone.result["falling"][::-1]


KEY = "document.activeElement.closest('th')?.dataset.key"
NAMES = "[...document.querySelectorAll('#matrix tbody th')].map((one) => one.textContent)"
SORTED = "document.querySelector('#matrix th[data-key=engine]').getAttribute('aria-sort')"


def test_the_keyboard_alone_sorts(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(site.page)
    with chromium() as browser:
        opened = browser.new_page()
        opened.goto(file.as_uri())
        for _ in range(50):
            opened.keyboard.press("Tab")
            if opened.evaluate(KEY) == "engine":
                break
        assert opened.evaluate(KEY) == "engine"
        names = sorted(opened.evaluate(NAMES))
        for order, expected in (("ascending", names), ("descending", names[::-1])):
            opened.keyboard.press("Enter")
            assert opened.evaluate(SORTED) == order
            assert opened.evaluate(NAMES) == expected
            assert opened.evaluate(KEY) == "engine"


def test_each_cell_has_its_figure_and_how_sure_it_is(tmp_path: Path) -> None:
    found = seen(page_of(), tmp_path)
    swift, steady = found["rows"]  # the freshest first
    assert swift["engine"].startswith("Swift <b>&") and steady["engine"].startswith("Steady")
    # Truths: a p99 of 90 / 0.5 and of 300 / 0.5 ms; costs of 40 and 80; capacities as given.
    assert re.fullmatch(r"★ 180 ± \d %", swift[FRESHNESS])
    assert re.fullmatch(r"600 ± \d %", steady[FRESHNESS])
    assert re.fullmatch(r"★ 40\.0 ± \d %", swift[COST])
    assert re.fullmatch(r"★ 9,000 ± \d %", steady[THROUGHPUT])
    assert "★" not in swift[THROUGHPUT] + steady[COST]
    assert steady["answers"] == "2 of 2 views right" and swift["answers"] == "not checked"
    freshest = "`Swift <b>&` is the freshest at 50 % of capacity"
    assert any(line.startswith(freshest) for line in found["answers"])


def test_no_engine_is_marked_where_no_difference_is_claimed(tmp_path: Path) -> None:
    twin = Engine("swift", STEADY.capacity_per_s, STEADY.lag_ms, STEADY.cost, [THROUGHPUT])
    rows = seen(page_of({"swift": {"windows": twin.windows()}}), tmp_path)["rows"]
    assert not any("★" in text for row in rows for text in row.values())
    assert sum(row[THROUGHPUT].startswith("≥ ") for row in rows) == 1


def test_a_figure_of_one_run_says_so(tmp_path: Path) -> None:
    once = Engine("swift", 3_000, 90, 40, repeats=1)
    swift, _ = seen(page_of({"swift": {"windows": once.windows()}}), tmp_path)["rows"]
    assert swift[FRESHNESS] == "178 only one run"  # 1 % below 180


def test_an_infinite_figure_says_in_how_many_runs(tmp_path: Path) -> None:
    windows = SWIFT.windows()
    whole = [window for window in windows if "share" not in window]
    whole[0]["figures"]["memory_full_after_min"] = math.inf
    swift, _ = seen(page_of({"swift": {"windows": windows}}), tmp_path)["rows"]
    assert swift["memory_full_after_min"] == "infinite in 1 of 3 runs"


def test_each_row_leads_to_its_record_and_its_command(wide: dict[str, Any], site: Site) -> None:
    assert len(wide["links"]) == len(wide["first"])
    for address in wide["links"]:
        path = site.root / unquote(address.removeprefix("../results/"))
        commands = json.loads(path.read_text(encoding="utf-8"))["commands"]
        assert commands and set(commands) <= set(wide["commands"])


def test_charts_have_tables_and_values_under_the_pointer(tmp_path: Path) -> None:
    found = seen(page_of(), tmp_path, PROBE)
    assert [chart["title"] for chart in found["charts"]] == [
        "View lag against load",
        "Cost against load",
    ]
    for chart in found["charts"]:
        assert "table" in chart["label"] and chart["width"] > 300
        assert chart["cells"] == 2 * len(SHARES)
    assert sum(bool(re.search(r"\d", value)) for value in found["legend"]) > 4


# Chooses each class in turn, and reads the rows and the answers.
BY_CLASS = f"""async (page, view) => {{
  {MATRIX}
  const found = {{}};
  for (const option of [...page.getElementById("class").options].map((one) => one.value)) {{
    choose("class", option);
    found[option] = {{ answers: text("#answers li"), hash: view.location.hash, rows: read() }};
  }}
  return found;
}}"""
SERVED_ONLY = "where results live: served"


def with_classes(steady: Classes, swift: Classes) -> str:
    own = {"steady": steady, "swift": swift}
    return page_of({name: {"classes": of.model_dump()} for name, of in own.items()})


def test_a_class_can_be_chosen_and_answers_name_those_that_differ(tmp_path: Path) -> None:
    found = seen(with_classes(SERVED, PUBLISHED), tmp_path, BY_CLASS)
    of_kill = [f"after a kill: {of.after_a_kill}" for of in (SERVED, PUBLISHED)]
    assert [*found] == ["", SERVED_ONLY, "where results live: published to Kafka", *of_kill]
    mixed = [line for line in found[""]["answers"] if "different classes" in line]
    assert mixed and "where results live" in mixed[0] and "how views" not in mixed[0]
    (row,) = found[SERVED_ONLY]["rows"]
    assert row["engine"].startswith("Steady") and row["classes"].startswith("served; reads all")
    assert not any("`Swift <b>&`" in line for line in found[SERVED_ONLY]["answers"])
    assert "class=where+results+live" in found[SERVED_ONLY]["hash"]


def test_who_computes_when_read_is_below_and_not_ranked(tmp_path: Path) -> None:
    steady, swift = seen(with_classes(SERVED, WHEN_READ), tmp_path)["rows"]  # swift is fresher
    assert steady["engine"].startswith("Steady")
    assert "not ranked: computes when read" in swift["engine"] and "180" in swift[FRESHNESS]


def test_missing_views_are_a_class(tmp_path: Path) -> None:
    less = {**UNVERIFIED, "absent": ["users"]}
    found = seen(page_of({"swift": {"views": less}}), tmp_path, BY_CLASS)
    assert {"number of views: all views", "number of views: 1 of 2 views"} <= {*found}
    assert found[""]["rows"][0]["classes"].endswith("1 of 2 views")


def test_every_caveat_is_shown(tmp_path: Path) -> None:
    caveats = {"steady": ["The first.", "The second."], "swift": ["The second."]}
    page = page_of({name: {"caveats": texts} for name, texts in caveats.items()})
    answers = seen(page, tmp_path)["answers"]
    assert "Steady Stream: The first." in answers
    assert "Steady Stream, Swift <b>&: The second." in answers
    assert any("Swift <b>& were not verified" in line for line in answers)


def test_a_disturbed_result_is_marked(tmp_path: Path) -> None:
    noise = {"foreign_cpu_max_pct": 80.7, "steal_max_pct": 0.2}
    rows = seen(page_of({"steady": {"noise": noise}}), tmp_path)["rows"]
    assert "disturbed: other programs used up to 80.7 % of a core" in rows[1]["engine"]
    assert "disturbed" not in rows[0]["engine"]


def test_who_fell_behind_is_below_who_did_not(tmp_path: Path) -> None:
    late = Engine("swift", 3_000, 9_000, 40)
    steady, swift = seen(page_of({"swift": {"windows": late.windows()}}), tmp_path)["rows"]
    assert steady["engine"].startswith("Steady")
    assert "did not hold this load" in swift[FRESHNESS]


# Reads the table of all queries, chooses another figure and the second query.
QUERIES = f"""async (page, view) => {{
  {MATRIX}
  const cells = (row) => [...row.children].map((cell) => cell.textContent.trim());
  const rows = () => [...page.querySelectorAll("#queries tbody tr")].map(cells);
  const found = {{ isHidden: page.getElementById("queries").hidden, freshness: rows() }};
  choose("figure", "{THROUGHPUT}");
  found.throughput = rows();
  page.querySelectorAll("#queries tbody button")[1].click();
  found.chosen = page.getElementById("workload").value;
  return found;
}}"""


def test_all_queries_of_a_workload_stand_in_one_table_with_their_own_stars(tmp_path: Path) -> None:
    fast = {"windows": replace(SWIFT, capacity_per_s=20_000).windows()}
    results = [
        result(STEADY, workload="nexmark q0"),
        result(SWIFT, workload="nexmark q0"),
        result(STEADY, workload="nexmark q17"),
        result(STEADY, workload="nexmark q2"),
        result(SWIFT, workload="nexmark q2", **fast),
    ]
    found = seen(ranking_page(standings(results)), tmp_path, QUERIES)
    assert not found["isHidden"]
    assert [row[0] for row in found["freshness"]] == ["q0", "q2", "q17"]
    q0, q2, q17 = found["throughput"]
    assert q0[1].startswith("★ 9,000") and q0[2].startswith("3,000")
    assert q2[1].startswith("9,000") and q2[2].startswith("★ 20,000")
    assert q17[1].startswith("9,000") and q17[2] == ""
    assert found["chosen"] == "nexmark q2"


def test_a_workload_without_queries_has_no_table_of_them(tmp_path: Path) -> None:
    probe = "async (page) => page.getElementById('queries').hidden"
    assert seen(page_of(), tmp_path, probe)


def test_light_and_dark_are_both_readable(site: Site, wide: dict[str, Any], tmp_path: Path) -> None:
    dark = look(site.page, PROBE, tmp_path, 1200, "dark").result
    assert wide["paper"] == "rgb(255, 255, 255)" != dark["paper"]
    assert all(contrast(each["ink"], each["paper"]) >= 4.5 for each in (wide, dark))


def test_it_needs_no_other_file_and_is_small(site: Site) -> None:
    without_comments = re.sub(r"/\*!.*?\*/", "", site.page)
    loads = r"https?://|@import|<link|<img|<iframe|\ssrc=|fetch\(|XMLHttpRequest"
    assert re.findall(loads, without_comments) == []
    without_data = re.sub(r'(?<=id="data">).*?(?=</script>)', "", site.page)
    assert len(without_data.encode()) < MOST_WITHOUT_DATA
    assert "Leon Sorokin" in site.page  # uPlot's licence
