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
from tests.report.browser import Seen, chromium, contrast, loaded_by, look, needs_chromium
from tests.report.folders import PUBLISHED, SERVED, WHEN_READ
from tests.report.made_up import SHARES, STEADY, SWIFT, UNVERIFIED, result

pytestmark = [pytest.mark.slow, needs_chromium]

MOST_WITHOUT_DATA = 300_000
FRESHNESS, COST = "view_lag_p99_ms@0.5", "cpu_s_per_million@0.5"
THROUGHPUT = "capacity_per_s"

# Reads the matrix: the text of each cell, by its column, of each engine.
MATRIX = """const read = () => {
  const keys = [...document.querySelectorAll("#matrix thead th")].map((head) => head.dataset.key);
  return [...document.querySelectorAll("#matrix tbody tr")].map((row) => Object.fromEntries(
    [...row.children].map((cell, at) => [keys[at], cell.textContent.trim()])));
};
const choose = (name, value) => {
  const select = document.getElementById(name);
  select.value = value;
  select.dispatchEvent(new Event("change"));
};"""
READ = f"""async () => {{
  {MATRIX}
  return {{ rows: read(), answers: text("#answers li"),
    hasQueries: !document.getElementById("queries").hidden }};
}}"""
# Opens everything, and moves over the charts.
PROBE = """async () => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  const shown = [...document.querySelectorAll(".chart")].filter((chart) => !chart.hidden);
  await until(() => shown.every(isDrawn));
  shown.forEach(pointAt);
  const values = () => text(".u-legend .u-value").filter((value) => /\\d/.test(value));
  await until(() => values().length);
  const links = [...document.querySelectorAll("#matrix a")].map((one) => one.getAttribute("href"));
  return { links, rows: text("#matrix tbody tr").length, commands: text("#records pre"),
    labels: shown.map((chart) => chart.querySelector("canvas").getAttribute("aria-label")),
    values: values(), titles: shown.map((chart) => text("h3", chart)[0]),
    cells: shown.map((chart) => text("details tbody td", chart).filter((one) => one).length) };
}"""


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
def wide(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """Look at the page in the light theme, at the width of a desktop screen."""
    return look(site.page, PROBE, tmp_path_factory.mktemp("wide"), 1200)


def test_it_fits_a_phone(site: Site, tmp_path: Path) -> None:
    phone = look(site.page, PROBE, tmp_path, 390)
    assert phone.console == []
    assert phone.width <= 390


KEY = "document.activeElement.closest('th')?.dataset.key"
NAMES = "[...document.querySelectorAll('#matrix tbody th a')].map((one) => one.textContent)"
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
        names = opened.evaluate(f"{NAMES}.sort(new Intl.Collator().compare)")  # as people sort
        for order, expected in (("ascending", names), ("descending", names[::-1])):
            opened.keyboard.press("Enter")
            assert opened.evaluate(SORTED) == order
            assert opened.evaluate(NAMES) == expected
            assert opened.evaluate(KEY) == "engine"


def test_each_cell_has_its_figure_and_how_sure_it_is(tmp_path: Path) -> None:
    found = seen(page_of(), tmp_path)
    assert not found["hasQueries"]
    swift, steady = found["rows"]  # the freshest first
    assert swift["engine"].startswith("Swift <b>&") and steady["engine"].startswith("Steady")
    # Truths: a p99 of 90 / 0.5 and of 300 / 0.5 ms; costs of 40 and 80; capacities as given.
    assert re.fullmatch(r"★ 180 ± \d %, at 1,500/s", swift[FRESHNESS])
    assert re.fullmatch(r"600 ± \d %, at 4,500/s", steady[FRESHNESS])
    assert re.fullmatch(r"★ 40\.0 ± \d %, at 1,500/s", swift[COST])
    assert re.fullmatch(r"★ 9,000 ± \d %", steady[THROUGHPUT])
    assert "★" not in swift[THROUGHPUT] + steady[COST]
    assert steady["answers"] == "2 of 2 views right" and swift["answers"] == "not checked"
    freshest = "`Swift <b>&` is the freshest at 50 % of capacity"
    assert any(line.startswith(freshest) for line in found["answers"])


def test_no_engine_is_marked_where_no_difference_is_claimed(tmp_path: Path) -> None:
    twin = replace(STEADY, name="swift", at_least=[THROUGHPUT])
    rows = seen(page_of({"swift": {"windows": twin.windows()}}), tmp_path)["rows"]
    assert not any("★" in text for row in rows for text in row.values())
    assert sum(row[THROUGHPUT].startswith("≥ ") for row in rows) == 1


def test_a_heap_that_is_never_full_is_the_best(tmp_path: Path) -> None:
    windows = STEADY.windows()
    for window in windows:
        if "memory_full_after_min" in window["figures"]:
            window["figures"]["memory_full_after_min"] = math.inf
    click = f"""async () => {{
      {MATRIX}
      document.querySelector("#matrix th[data-key=memory_full_after_min] button").click();
      return read().map((row) => row.memory_full_after_min);
    }}"""
    found = seen(page_of({"steady": {"windows": windows}}), tmp_path, click)
    assert [text.split()[0] for text in found] == ["never", "30.0"]


def test_a_figure_of_one_run_and_an_infinite_one_say_so(tmp_path: Path) -> None:
    steady = STEADY.windows()
    steady[0]["figures"]["memory_full_after_min"] = math.inf
    for window in steady:
        if "capacity_per_s" in window["figures"]:
            window["at_least"] = ["capacity_per_s"]
    once = replace(SWIFT, repeats=1).windows()
    rows = seen(page_of({"steady": {"windows": steady}, "swift": {"windows": once}}), tmp_path)
    swift, infinite = rows["rows"]
    assert swift[FRESHNESS] == "178 only one run, at 1,490/s"  # 1 % below 180
    assert infinite["memory_full_after_min"] == "never in 1 of 3 runs"
    assert infinite["capacity_per_s"] == "≥ 9,000 in 3 of 3 runs"  # without an interval


def test_each_row_leads_to_its_record_and_its_command(wide: Seen, site: Site) -> None:
    assert len(wide.result["links"]) == wide.result["rows"]
    for address in wide.result["links"]:
        path = site.root / unquote(address.removeprefix("../results/"))
        commands = json.loads(path.read_text(encoding="utf-8"))["commands"]
        assert commands and set(commands) <= set(wide.result["commands"])


def test_charts_have_tables_and_values_under_the_pointer(tmp_path: Path) -> None:
    found = seen(page_of(), tmp_path, PROBE)
    assert found["titles"] == ["View lag against share of capacity", "Cost against load"]
    assert all("table" in label for label in found["labels"])
    assert found["cells"] == [2 * len(SHARES)] * 2
    assert len(found["values"]) > 4


# Chooses each class in turn, and reads the rows and the answers.
BY_CLASS = f"""async () => {{
  {MATRIX}
  const found = {{}};
  for (const option of [...document.getElementById("class").options].map((one) => one.value)) {{
    choose("class", option);
    found[option] = {{ answers: text("#answers li"), hash: location.hash, rows: read() }};
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


def test_caveats_and_disturbances_are_shown(tmp_path: Path) -> None:
    noise = {"foreign_cpu_max_pct": 80.7, "steal_max_pct": 0.2}
    steady = {"caveats": ["The first.", "The second."], "noise": noise}
    found = seen(page_of({"steady": steady, "swift": {"caveats": ["The second."]}}), tmp_path)
    answers, (of_swift, of_steady) = found["answers"], found["rows"]
    assert "Steady Stream: The first." in answers
    assert "Steady Stream, Swift <b>&: The second." in answers
    assert any("Swift <b>& were not verified" in line for line in answers)
    assert "disturbed: other programs used up to 80.7 % of a core" in of_steady["engine"]
    assert "disturbed" not in of_swift["engine"]


def test_who_fell_behind_is_below_who_did_not(tmp_path: Path) -> None:
    late = replace(SWIFT, lag_ms=9_000)
    steady, swift = seen(page_of({"swift": {"windows": late.windows()}}), tmp_path)["rows"]
    assert steady["engine"].startswith("Steady")
    assert "not held in 3 of 3 runs" in swift[FRESHNESS]


# Reads the table of all queries, chooses another figure and the second query.
QUERIES = f"""async () => {{
  {MATRIX}
  const cells = (row) => [...row.children].map((cell) => cell.textContent.trim());
  const rows = () => [...document.querySelectorAll("#queries tbody tr")].map(cells);
  const found = {{ isHidden: document.getElementById("queries").hidden, freshness: rows() }};
  choose("figure", "{THROUGHPUT}");
  found.throughput = rows();
  document.querySelectorAll("#queries tbody button")[1].click();
  found.chosen = document.getElementById("workload").value;
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


def test_light_and_dark_are_both_readable(site: Site, wide: Seen, tmp_path: Path) -> None:
    dark = look(site.page, PROBE, tmp_path, 1200, "dark")
    assert wide.paper == "rgb(255, 255, 255)" != dark.paper
    assert all(contrast(each.ink, each.paper) >= 4.5 for each in (wide, dark))


def test_no_number_depends_on_the_machine_that_makes_the_page(site: Site) -> None:
    assert not re.findall(r"\d\.\d{7}", site.page)


def test_it_needs_no_other_file_and_is_small(site: Site) -> None:
    assert loaded_by(site.page) == []
    without_data = re.sub(r'(?<=id="data">).*?(?=</script>)', "", site.page)
    assert len(without_data.encode()) < MOST_WITHOUT_DATA
    assert "Leon Sorokin" in site.page  # uPlot's licence
