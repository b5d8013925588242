"""Tests of the page that says which engine is for which job."""

from dataclasses import replace
from typing import Any

from racetrack.report.choosing import choosing_page
from racetrack.report.standings import standings
from tests.report.folders import PUBLISHED
from tests.report.made_up import STEADY, SWIFT, Engine, result


def page_of(*engines: Engine, **changes: Any) -> str:
    """Return the page; `changes` are those of the results of SWIFT."""
    results = [result(of, **(changes if of.name == "swift" else {})) for of in engines]
    return choosing_page(standings(results), "../results", {"swift": "Swift", "other": "Other"})


def rows_of(page: str) -> dict[str, str]:
    """Return the first cell of each row of the page's tables → the second one."""
    cells = (line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("|"))
    return {row[0]: row[1] for row in cells if len(row) == 2}


def test_who_is_claimed_to_be_best_is_named_with_the_figures_of_both() -> None:
    rows = rows_of(page_of(STEADY, SWIFT))
    throughput = rows["has the highest throughput"]
    assert throughput.startswith("**[Steady Stream][1]** (9,000/s); ")
    assert throughput.endswith(" of [Swift <b>&][2] (3,000/s)")
    assert rows["uses the least CPU time at 50 % of capacity"].startswith("**[Swift <b>&][2]**")


def test_nobody_is_named_without_a_claim() -> None:
    page = page_of(replace(STEADY, repeats=1), replace(SWIFT, repeats=1))
    assert rows_of(page)["has the highest throughput"].startswith("not decided (only one run): ")
    assert "**[" not in page


def test_the_rates_within_a_limit_of_view_lag_are_those_that_were_measured() -> None:
    rows = rows_of(page_of(STEADY, SWIFT, replace(SWIFT, name="slow", lag_ms=6_000)))
    # Lag is 300 ms and 90 ms at no load, and grows with the load.
    none = "[Slow][3]: no measured rate"
    assert rows["1 s"] == f"[Steady Stream][1] 4,500/s; [Swift <b>&][2] 2,400/s; {none}"
    assert rows["5 s"] == f"[Steady Stream][1] 7,200/s; [Swift <b>&][2] 2,850/s; {none}"


def test_a_lower_rate_above_the_limit_is_named() -> None:
    windows = STEADY.windows()
    for window in windows:
        if window.get("share") == 0.25:
            window["figures"]["view_lag_p99_ms"] = 1_400.0
    assert "4,500/s, but not at 2,250/s" in rows_of(page_of(STEADY, SWIFT, windows=windows))["1 s"]


def test_engines_of_different_classes_are_told_apart() -> None:
    rows = rows_of(page_of(STEADY, SWIFT, classes=PUBLISHED.model_dump()))
    assert rows["where results live: served"] == "[Steady Stream][1]"
    assert rows["where results live: published to Kafka"] == "[Swift <b>&][2]"


def test_the_queries_of_a_workload_have_folders_of_their_own() -> None:
    assert result(SWIFT, workload="nexmark q0,q4").file_name.startswith("nexmark/q0-q4/")
