"""Tests of the page that ranks engines, in a real browser: order, factors, intervals and marks; on
a phone, in both themes, with the keyboard, and without loading any other file. Several tests run on
two pages: one made from synthetic results, and the committed one."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from racetrack.config import REPO
from racetrack.metrics import CAPACITY
from racetrack.report.publish import EngineName, publish
from racetrack.report.ranking import ranking_page, read_results, results_page, standings
from racetrack.results.classes import Classes
from racetrack.results.published import EngineResult
from tests.records import verified
from tests.report.browser import chromium, contrast, look, needs_chromium
from tests.report.folders import (
    PUBLISHED,
    RIGHT,
    SERVED,
    WHEN_READ,
    RunSpec,
    run,
    search,
)

pytestmark = [pytest.mark.slow, needs_chromium]

ENGINES = {
    "steady": EngineName("Steady Stream", "racetrack"),
    "swift": EngineName("Swift <b>&", "racetrack"),
}
MOST_WITHOUT_DATA = 300_000
# Reads the table, sorts it, and moves over the first chart.
PROBE = """async (page, view) => {
  const text = (of) => [...page.querySelectorAll(of)].map((one) => one.textContent.trim());
  const rows = () => [...page.querySelectorAll("#ranking tbody tr:not(.record)")].map((row) =>
    [...row.children].map((cell) => cell.textContent.trim()));
  const choose = (name, value) => {
    const select = page.getElementById(name);
    select.value = value;
    select.dispatchEvent(new view.Event("change"));
  };
  const first = rows(), answers = text("#answers li");
  const button = page.querySelector("#ranking th[data-key=engine] button");
  button.focus();
  const isFocused = page.activeElement === button;
  button.click();
  const byName = rows().map((row) => row[0]);
  button.click();
  const byNameDown = rows().map((row) => row[0]);
  const sorted = page.querySelector("#ranking th[data-key=engine]").getAttribute("aria-sort");
  choose("metric", "capacity_per_s");
  const capacity = rows();
  choose("metric", "cpu_s_per_million");
  choose("load", "1,000/s");
  const slow = rows();
  page.querySelectorAll("details").forEach((one) => { one.open = true; });
  const places = [...page.querySelectorAll(".chart")];
  const isDrawn = (chart) => chart.querySelector(".u-over") && chart.querySelector("details td");
  await until(() => places.every(isDrawn));
  const charts = places.map((chart) => {
    const over = chart.querySelector(".u-over"), box = over.getBoundingClientRect();
    const at = { clientX: box.left + box.width / 2, clientY: box.top + 20, bubbles: true };
    over.dispatchEvent(new view.MouseEvent("mousemove", at));
    return { title: chart.querySelector("h3").textContent, width: chart.clientWidth,
      label: chart.querySelector("canvas").getAttribute("aria-label"),
      cells: [...chart.querySelectorAll("details td")].filter((cell) => cell.textContent).length };
  });
  await until(() => text(".u-legend .u-value").some((value) => /\\d/.test(value)));
  const box = page.querySelector("#engines input");
  const before = rows().length;
  const read = { legend: text(".u-legend .u-value"), records: text("#ranking .record pre"),
    links: [...page.querySelectorAll("#ranking a")].map((one) => one.getAttribute("href")) };
  box.click();
  return { ...read, first, answers, isFocused, byName, byNameDown, sorted, capacity, slow, charts,
    after: rows().length, before,
    width: page.documentElement.scrollWidth,
    paper: view.getComputedStyle(page.body).backgroundColor,
    ink: view.getComputedStyle(page.body).color };
}"""


RANKS = """async (page, view) => {
  const read = () => [...page.querySelectorAll("#ranking tbody tr:not(.record)")]
    .map((row) => [...row.children].map((cell) => cell.textContent.trim()));
  const rows = read(), select = page.getElementById("metric");
  select.value = "capacity_per_s";
  select.dispatchEvent(new view.Event("change"));
  return { rows, ranked: read(), facts: page.querySelector("#ranking .pairs").textContent,
    answers: [...page.querySelectorAll("#answers li")].map((one) => one.textContent.trim()) };
}"""


def changed(root: Path, tmp_path: Path, changes: Mapping[str, Mapping[str, Any]]) -> str:
    """The page of the results of some engines, with changes of each."""
    for engine, values in changes.items():
        for file in root.rglob(f"{engine}@*.json"):
            record = json.loads(file.read_text())
            copy = tmp_path / "results" / file.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(json.dumps({**record, **values}))
    return ranking_page(standings(read_results(tmp_path / "results")))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write results of two engines: one has less CPU and lag, the other is verified and faster."""
    logs = tmp_path_factory.mktemp("logs")
    check = verified(users=RIGHT, items=RIGHT)
    for seed in (1, 2, 3):
        for rate in (1_000, 4_000):
            slow = RunSpec(rate=rate, seed=seed, cpu_pct=80, view_delay_ms=600, verified=check)
            swift = replace(slow, engine="swift", cpu_pct=30, delay_ms=50, view_delay_ms=90)
            run(logs, slow)
            run(logs, replace(swift, verified=None))
    for engine, per_s in (("steady", 9_000), ("swift", 3_000)):
        search(logs, engine, per_s, view_delay_ms=90)
        search(logs, engine, 1.02 * per_s, view_delay_ms=90)
    results = tmp_path_factory.mktemp("results")
    publish([logs], results, ENGINES)
    return results


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return ranking_page(standings(read_results(root)))


@dataclass(frozen=True)
class Site:
    """A page, and the folder of its results."""

    page: str
    root: Path


@pytest.fixture(scope="module", params=["synthetic", "committed"])
def site(request: pytest.FixtureRequest, page: str, root: Path) -> Site:
    if request.param == "synthetic":
        return Site(page, root)
    return Site((REPO / "docs" / "index.html").read_text(), REPO / "results")


@pytest.fixture(scope="module")
def wide(site: Site, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Look at the page in the light theme, at the width of a desktop screen."""
    return look(site.page, PROBE, tmp_path_factory.mktemp("wide"), 1200, "light").result


def test_it_fits_a_phone_and_sorts_there(site: Site, tmp_path: Path) -> None:
    seen = look(site.page, PROBE, tmp_path, 390)
    assert seen.console == []
    found = seen.result
    assert found["width"] <= 390
    assert found["isFocused"] and found["sorted"] == "descending"
    assert found["byName"] == sorted(found["byName"]) == found["byNameDown"][::-1]
    assert found["first"][0][2].partition(":")[0] in ("best", "not ranked")
    assert found["capacity"][0][2] == "best"
    assert any(": not decided" in line or "`" in line for line in found["answers"])
    assert found["after"] == found["before"] - 1


KEY = "document.activeElement.closest('th')?.dataset.key"
NAMES = "[...document.querySelectorAll('#ranking tbody th')].map((one) => one.textContent)"
SORTED = "document.querySelector('#ranking th[data-key=engine]').getAttribute('aria-sort')"


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


def test_it_ranks_and_shows_how_sure_that_is(page: str, tmp_path: Path) -> None:
    found = look(page, PROBE, tmp_path, 390).result
    swift, steady = found["first"]
    assert swift[0].startswith("Swift <b>&") and steady[0].startswith("Steady Stream")
    assert re.search(r"^[\d,]+ ± \S+ ms [\d,.]+ to [\d,.]+$", swift[1])
    assert (swift[2], swift[3], swift[6]) == ("best", "not checked", "3")
    assert swift[5].startswith("served; reads all input again; as events arrive")
    assert re.fullmatch(r"[1-9][\d.]+ \([\d.]+ to [\d.]+\) ×", steady[2])
    assert steady[3] == "✓ 2 verified"
    (standing,) = json.loads(re.findall(r'id="data">(.*?)</script>', page)[0])["standings"]
    answers = standing["answers"][""]
    assert found["answers"][: len(answers)] == answers
    assert any(
        line.startswith("`Swift <b>&` is the freshest at 4,000/s") for line in found["answers"]
    )
    assert any("were not verified" in line for line in found["answers"])
    best, other = found["capacity"]
    assert best[0].startswith("Steady") and re.match(r"0\.33 ", other[2])
    assert found["slow"][0][0].startswith("Swift")


def test_each_row_leads_to_its_record_and_its_command(wide: dict[str, Any], site: Site) -> None:
    assert len(wide["links"]) == wide["before"]
    for link in wide["links"]:
        record = json.loads(
            (site.root / unquote(link.removeprefix("../results/"))).read_text(encoding="utf-8")
        )
        assert record["commands"] and set(record["commands"]) <= set(wide["records"])


def test_charts_have_tables_and_values_under_the_pointer(wide: dict[str, Any]) -> None:
    titles = [chart["title"] for chart in wide["charts"]]
    assert titles == ["Lag against rate", "CPU against rate"]
    for chart in wide["charts"]:
        assert "table" in chart["label"] and chart["cells"] > 3 and chart["width"] > 300
    assert sum(bool(re.search(r"\d", value)) for value in wide["legend"]) > 4


# Chooses each class in turn, and reads the rows and the answers.
BY_CLASS = """async (page, view) => {
  const text = (of) => [...page.querySelectorAll(of)].map((one) => one.textContent.trim());
  const select = page.getElementById("class"), found = {};
  for (const option of [...select.options].map((one) => one.value)) {
    select.value = option;
    select.dispatchEvent(new view.Event("change"));
    found[option] = { answers: text("#answers li"), hash: view.location.hash,
      rows: [...page.querySelectorAll("#ranking tbody tr:not(.record)")].map((row) =>
        [...row.children].map((cell) => cell.textContent.trim())) };
  }
  return found;
}"""
SERVED_ONLY = "where results live: served"


def with_classes(root: Path, tmp_path: Path, of: Mapping[str, Classes]) -> str:
    """Return the page of results with these classes."""
    return changed(
        root, tmp_path, {name: {"classes": own.model_dump()} for name, own in of.items()}
    )


def test_a_class_can_be_chosen_and_answers_name_those_that_differ(
    root: Path, tmp_path: Path
) -> None:
    page = with_classes(root, tmp_path, {"steady": SERVED, "swift": PUBLISHED})
    found = look(page, BY_CLASS, tmp_path, 1200).result
    of_kill = [f"after a kill: {of.after_a_kill}" for of in (SERVED, PUBLISHED)]
    assert [*found] == ["", SERVED_ONLY, "where results live: published to Kafka", *of_kill]
    mixed = [line for line in found[""]["answers"] if "different classes" in line]
    assert mixed and "where results live" in mixed[0] and "how views" not in mixed[0]
    assert [row[5] for row in found[""]["rows"]] == [
        "published to Kafka; resumes; as events arrive; declarative; follows changes",
        "served; reads all input again; as events arrive; declarative; follows changes",
    ]
    (row,) = found[SERVED_ONLY]["rows"]
    assert row[0].startswith("Steady") and row[2] == "best"
    assert not any("`Swift <b>&`" in line for line in found[SERVED_ONLY]["answers"])
    assert "class=where+results+live" in found[SERVED_ONLY]["hash"]


def test_equal_classes_need_no_word(page: str, tmp_path: Path) -> None:
    found = look(page, BY_CLASS, tmp_path, 1200).result
    assert [*found] == [""]
    assert not any("different classes" in line for line in found[""]["answers"])


def test_who_computes_when_read_is_below_and_not_ranked(root: Path, tmp_path: Path) -> None:
    page = with_classes(root, tmp_path, {"steady": SERVED, "swift": WHEN_READ})
    found = look(page, BY_CLASS, tmp_path, 1200).result[""]
    steady, swift = found["rows"]  # though swift is fresher
    assert steady[0].startswith("Steady") and steady[2] == "best"
    assert swift[2] == "not ranked: computes when read" and "ms" in swift[1]
    assert not any("is the freshest" in line for line in found["answers"])
    assert any(line.startswith("`Swift <b>&` is not ranked") for line in found["answers"])
    text = results_page(standings(read_results(tmp_path / "results")), "results")
    assert "| Swift <b>& (not ranked) |" in text and "| Steady Stream |" in text


def test_missing_views_are_a_class(root: Path, tmp_path: Path) -> None:
    views = {"runs": 0, "of_workload": 17, "right": [], "wrong": [], "absent": ["hvu_test"]}
    whole = {**views, "absent": []}
    page = changed(root, tmp_path, {"steady": {"views": whole}, "swift": {"views": views}})
    found = look(page, BY_CLASS, tmp_path, 1200).result
    assert {"number of views: all views", "number of views: 16 of 17 views"} <= {*found}
    assert found[""]["rows"][0][5].endswith("16 of 17 views")


def test_every_caveat_is_shown(root: Path, tmp_path: Path) -> None:
    caveats = {"caveats": ["The first.", "The second."]}
    page = changed(root, tmp_path, {"steady": caveats, "swift": {"caveats": ["The second."]}})
    answers = look(page, BY_CLASS, tmp_path, 1200).result[""]["answers"]
    assert "Steady Stream: The first." in answers
    assert "Steady Stream and Swift <b>&: The second." in answers


def test_a_disturbed_result_is_marked(root: Path, tmp_path: Path) -> None:
    noise = {"foreign_cpu_max_pct": 80.7, "steal_max_pct": 0.2}
    page = changed(root, tmp_path, {"steady": {"noise": noise}})
    (row,) = look(page, RANKS, tmp_path, 1200).result["rows"]
    assert "disturbed: other programs used up to 80.7 % of a core" in row[0]


def with_capacity(root: Path, engine: str, per_s: float, *, bound: bool) -> dict[str, Any]:
    """Return the windows of an engine with other capacities."""
    (file,) = root.rglob(f"{engine}@*.json")
    windows = json.loads(file.read_text())["windows"]
    capacities = [window for window in windows if "capacity_per_s" in window["figures"]]
    for window in capacities:
        change = 0.001 * (window["experiment"] == capacities[-1]["experiment"])
        window["figures"]["capacity_per_s"] = per_s * (1 + change)
        window["at_least"] = ["capacity_per_s"] if bound else []
    return {"windows": windows}


@pytest.mark.parametrize(
    ("steady", "swift", "is_claimed"),
    [((9_000, True), (3_000, False), True), ((9_000, False), (3_000, True), False)],
)
def test_a_lower_bound_wins_only_clearly_and_never_loses_for_certain(
    root: Path,
    tmp_path: Path,
    steady: tuple[float, bool],
    swift: tuple[float, bool],
    is_claimed: bool,
) -> None:
    changes = {
        engine: with_capacity(root, engine, per_s, bound=bound)
        for engine, (per_s, bound) in {"steady": steady, "swift": swift}.items()
    }
    found = look(changed(root, tmp_path, changes), RANKS, tmp_path, 1200).result
    at_least = "at least " if steady[1] else ""
    answer = f"`Steady Stream` {CAPACITY.best}: {CAPACITY.title} {at_least}9,0"
    assert any(line.startswith(answer) for line in found["answers"]) == is_claimed
    assert found["ranked"][0][2] == "best"
    assert ("lower bound" in found["ranked"][1][2]) == (not is_claimed)


def test_a_machine_has_the_same_memory_in_both_pages(root: Path, tmp_path: Path) -> None:
    machine = {"cpu_model": "M", "cores": 2, "memory_gib": 23.54, "kernel": "6"}
    records = [json.loads(file.read_text()) for file in root.rglob("steady@*.json")]
    result = EngineResult.model_validate({**records[0], "machine": machine})
    found = standings([result])
    facts = look(ranking_page(found), RANKS, tmp_path, 1200).result["facts"]
    assert "M, 2 cores, 23.54 GiB, native" in facts
    assert ": M, 2 cores, 24 GiB\n" in results_page(found, "results")


def test_who_fell_behind_ranks_after_who_did_not(tmp_path: Path) -> None:
    for spec in (RunSpec(), RunSpec(engine="swift", delay_ms=9_000, leak=0.5)):
        run(tmp_path / "logs", spec)
    publish([tmp_path / "logs"], tmp_path / "results", ENGINES)
    first, second = look(
        ranking_page(standings(read_results(tmp_path / "results"))), RANKS, tmp_path, 1200
    ).result["rows"]
    assert first[0].startswith("Steady") and first[2] == "best"
    assert second[0].startswith("Swift") and second[2] == "did not hold the load"


def test_light_and_dark_are_both_readable(site: Site, wide: dict[str, Any], tmp_path: Path) -> None:
    dark = look(site.page, PROBE, tmp_path, 1200, "dark").result
    assert wide["paper"] == "rgb(255, 255, 255)" != dark["paper"]
    assert all(contrast(seen["ink"], seen["paper"]) >= 4.5 for seen in (wide, dark))


def test_it_needs_no_other_file_and_is_small(site: Site) -> None:
    without_comments = re.sub(r"/\*!.*?\*/", "", site.page)
    loads = r"https?://|@import|<link|<img|<iframe|\ssrc=|fetch\(|XMLHttpRequest"
    assert re.findall(loads, without_comments) == []
    without_data = re.sub(r'(?<=id="data">).*?(?=</script>)', "", site.page)
    assert len(without_data.encode()) < MOST_WITHOUT_DATA
    assert "Leon Sorokin" in site.page  # uPlot's licence
