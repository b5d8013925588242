"""Tests of the page that says which engine is for which job."""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from racetrack.report.choosing import choosing_page
from racetrack.report.pages import results_page
from racetrack.report.standings import standings
from tests.report.folders import PUBLISHED
from tests.report.made_up import SHARES, STEADY, SWIFT, Engine, result

KILL = "kill:engine@500k events at 50 % of capacity"
ENGINE, QUESTION = "engine", "which engine …"
AT_RATES = "view lag p99, ms / cost, CPU-s/million, at or near"
WITHIN_1_S, WITHIN_5_S = (f"view lag p99 within {limit} s up to, /s" for limit in (1, 5))
RECOVERY, FULL = "answers, and recovery from a kill", "heap full after"


def page_of(*engines: Engine, **changes: Any) -> str:
    """Return the page; `changes` are those of the results of SWIFT."""
    results = [result(of, **(changes if of.name == "swift" else {})) for of in engines]
    return choosing_page(standings(results), "../results", {"swift": "Swift", "other": "Other"})


def table_of(page: str, first: str) -> dict[str, dict[str, str]]:
    """Return the table whose heading begins with `first`: first cell of each row, without its link
    → heading → cell."""
    tables = re.findall(r"(?:^\|.*\|\n?)+", page, re.MULTILINE)
    (lines,) = (table.splitlines() for table in tables if table.startswith(f"| {first} |"))
    heading, _, *rows = ([cell.strip() for cell in line[2:-2].split(" | ")] for line in lines)
    unlinked = (re.sub(r"^\[(.+)\]\[\d+\]", r"\1", row[0]) for row in rows)
    return {
        name: dict(zip(heading[1:], row[1:], strict=True))
        for name, row in zip(unlinked, rows, strict=True)
    }


def answers_of(page: str) -> dict[str, str]:
    """Return question → answer."""
    return {question: row["answer"] for question, row in table_of(page, QUESTION).items()}


def column_of(page: str, heading: str) -> dict[str, str]:
    """Return engine → cell of a column of the overview, in its order."""
    return {name: row[heading] for name, row in table_of(page, ENGINE).items()}


def test_who_is_claimed_to_be_best_is_named_with_the_figures_of_both() -> None:
    rows = answers_of(page_of(STEADY, SWIFT))
    throughput = rows["has the highest throughput"]
    assert throughput.startswith("**[Steady Stream][1]** (9,000/s); ")
    assert throughput.endswith(" times the value of the next, [Swift <b>&][2] (3,000/s)")
    cost = rows["uses the least CPU time at 50 % of capacity, at different rates"]
    assert cost.startswith("**[Swift <b>&][2]** (40.0 CPU-s/million at 1,500/s); ")


def test_a_ratio_to_a_lower_bound_is_an_upper_bound() -> None:
    windows = replace(SWIFT, at_least=["capacity_per_s"]).windows()
    for window in windows:
        if "share" not in window:
            window["figures"]["saturated_cpu_s_per_million"] = 300.0  # at most 6,667/s on a core
    page = page_of(STEADY, SWIFT, windows=windows, settings={"engine_cpus": "1"})
    throughput = answers_of(page)["has the highest throughput"]
    assert "at most 3 times the value of the next" in throughput and "(≥ 3,000/s)" in throughput


def test_nobody_is_named_without_a_claim() -> None:
    page = page_of(replace(STEADY, repeats=1), replace(SWIFT, repeats=1))
    assert re.search(r"\nNot decided: which .* has the highest throughput \(only one run\)", page)
    assert "**[" not in page


def test_the_rates_within_a_limit_of_view_lag_are_those_that_were_measured() -> None:
    page = page_of(STEADY, SWIFT, replace(SWIFT, name="slow", lag_ms=6_000))
    # Lag is 300 ms and 90 ms at no load, and grows with the load.
    one, five = (column_of(page, heading) for heading in (WITHIN_1_S, WITHIN_5_S))
    assert one == {
        "Steady Stream": "4,500 to 7,200",
        "Swift <b>&": "2,400 to 2,850",
        "Slow": "none that was tried",
    }
    assert five["Steady Stream"] == "7,200 to 8,550" and five["Swift <b>&"] == "2,850 or more"


def test_the_throughput_at_saturation_is_beside_the_rates_within_a_limit() -> None:
    heading = "saturation throughput, /s"
    assert column_of(page_of(STEADY, SWIFT), heading) == {
        "Steady Stream": "9,000",
        "Swift <b>&": "3,000",
    }
    bounds = replace(SWIFT, at_least=["capacity_per_s"]).windows()
    assert column_of(page_of(SWIFT, windows=bounds), heading)["Swift <b>&"] == "≥ 3,000"


def test_engines_are_shown_at_a_rate_or_at_the_nearest_that_were_measured() -> None:
    windows = SWIFT.windows()
    for window in windows:
        if window.get("share") == 0.5:
            window["verdict"] = "fell behind"
    rows = table_of(page_of(STEADY, SWIFT, windows=windows), AT_RATES)
    assert rows == {
        "Steady Stream": {
            "1,000/s": "900/s: 333 / 80.0",
            "5,000/s": "4,500/s: 600 / 80.0",
            "10,000/s": "8,550/s: 6,000 / 80.0, not held in 3 of 3 runs",
        },
        "Swift <b>&": {
            "1,000/s": "750/s: 120 / 40.0; 1,500/s: 180 / 40.0, fell behind in 3 of 3 runs",
            "5,000/s": "2,850/s: 1,800 / 40.0",
            "10,000/s": "above capacity",
        },
    }


def test_a_figure_without_a_narrow_interval_is_marked() -> None:
    rows = table_of(page_of(replace(STEADY, repeats=1), SWIFT), AT_RATES)
    assert rows["Steady Stream"]["1,000/s"] == "891/s: ~330 / ~79.2; 2,230/s: ~396 / ~79.2"


def test_a_rate_is_shown_rather_than_a_share_of_capacity_that_is_about_the_same() -> None:
    shares = [window for window in SWIFT.windows() if window.get("share") == 0.25]
    alike = [
        {
            **window,
            "share": None,
            "per_s": 750,
            "figures": {**window["figures"], "view_lag_p99_ms": 99},
        }
        for window in shares
    ]
    rows = table_of(page_of(STEADY, SWIFT, windows=[*SWIFT.windows(), *alike]), AT_RATES)
    assert rows["Swift <b>&"]["1,000/s"] == "750/s: 99 / 40.0; 1,500/s: 180 / 40.0"


def test_an_engine_is_not_blamed_for_a_lag_while_the_harness_was_busy() -> None:
    windows = SWIFT.windows()
    for window in windows:
        if window.get("share") in (0.5, 0.8):
            window["figures"]["view_lag_p99_ms"] = 6_000.0
            window["remark"] = "core 0 had no idle time (broker 97 %)"
    page = page_of(STEADY, SWIFT, windows=windows)
    at_rates = table_of(page, AT_RATES)["Swift <b>&"]["1,000/s"]
    assert at_rates.endswith("6,000 / 40.0, not held in 3 of 3 runs, with the harness busy")
    assert column_of(page, WITHIN_5_S)["Swift <b>&"] == "2,850 or more"


def test_runs_at_lower_rates_above_the_limit_are_counted() -> None:
    windows = SWIFT.windows()
    at = {window["share"]: window for window in windows if "share" in window}
    at[0.25]["figures"]["view_lag_p99_ms"] = 1_400.0
    at[0.1]["verdict"] = "fell behind"
    reached = column_of(page_of(STEADY, SWIFT, windows=windows), WITHIN_1_S)["Swift <b>&"]
    assert reached == "2,400 to 2,850 (missed in 1 of 3 runs at 300/s, 1 of 3 runs at 750/s)"


def test_a_rate_above_one_that_is_mostly_above_the_limit_does_not_count() -> None:
    windows = SWIFT.windows()
    for window in windows:
        if window.get("share") == 0.5:
            window["figures"]["view_lag_p99_ms"] = 1_400.0
    page = page_of(STEADY, SWIFT, windows=windows)
    assert column_of(page, WITHIN_1_S)["Swift <b>&"] == "750 to 1,500"


def test_a_recovery_is_shown_with_what_was_to_restore_and_what_was_wrong_afterwards() -> None:
    windows = SWIFT.windows()
    whole = [window for window in windows if "share" not in window]
    for window, wrong in zip(whole, (0, 2, 0), strict=True):
        recovery = {
            "counted_before_events": 2e6,
            "rate_at_fault_events_per_s": 1_500.0,
            "wrong_views": wrong,
        }
        if wrong:
            recovery["normal_after_s"] = 30.0
        kill = {**window, "per_s": None, "share": None, "figures": recovery}
        windows = [*windows, kill if wrong else {**kill, "remark": "its lag was 9 s before"}]
    found = column_of(page_of(STEADY, SWIFT, windows=windows), RECOVERY)
    assert found == {
        "Steady Stream": "2 of 2 views right; not killed",
        "Swift <b>&": "not checked; wrong after 1 of 3 kills (2 views);"
        " normal in 30.0 s after 2,000,000 events, measured after 1 of 3 kills",
    }


def test_who_holds_no_rate_within_a_bound_is_named() -> None:
    results = []
    for engine, per_s in ((STEADY, 4_500.0), (SWIFT, None), (replace(SWIFT, name="slow"), 2_000.0)):
        whole = [window for window in engine.windows() if "share" not in window]
        figures = {} if per_s is None else {"sustained_1s_per_s": per_s}
        searches = [{**window, "window": "search", "figures": figures} for window in whole]
        results.append(result(engine, windows=[*engine.windows(), *searches]))
    page = choosing_page(standings(results), "../results", {})
    row = answers_of(page)["goes furthest within 1 s of view lag"]
    assert row.startswith("**[Steady Stream][1]** (4,500/s); ")
    assert row.endswith("; none, even at 5 % of capacity: [Swift <b>&][2]")
    assert column_of(page, WITHIN_1_S) == {
        "Steady Stream": "4,500",
        "Swift <b>&": "2,400 to 2,850",
        "Slow": "2,000 (met up to 2,400/s in shorter windows)",
    }
    assert "| none, even at 5 % of capacity |" in results_page(standings(results), "../results")


@pytest.mark.parametrize(
    ("lags_ms", "reason"),
    [
        ((100.0, 9_000.0, 9_000.0), "not held in 2 of 3 runs"),
        ((100.0, 100.0, 9_000.0), "not resolved: too few repeats"),
    ],
    ids=["by most", "by one that decides"],
)
def test_who_missed_a_load_and_has_no_place_is_named(
    lags_ms: tuple[float, ...], reason: str
) -> None:
    answer = freshest_with(lags_ms, STEADY, replace(STEADY, name="slow", lag_ms=800))
    assert answer.endswith(f"; {reason}: [Swift <b>&][3]")


def test_who_missed_a_load_in_one_run_is_compared_by_all() -> None:
    answer = freshest_with((4_900.0, 5_000.0, 5_100.0), STEADY)
    assert "5,000 ms at 1,500/s, not held in 1 of 3 runs)" in answer


def freshest_with(lags_ms: tuple[float, ...], *others: Engine) -> str:
    """Return who is the freshest at half of the capacity if SWIFT's runs have these lags."""
    windows = SWIFT.windows()
    halves = [window for window in windows if window.get("share") == 0.5]
    for window, lag_ms in zip(halves, lags_ms, strict=True):
        window["figures"]["view_lag_p99_ms"] = lag_ms
    page = page_of(*others, SWIFT, windows=windows)
    return answers_of(page)["is the freshest at 50 % of capacity, at different rates"]


def test_a_search_above_a_rate_that_most_runs_missed_does_not_count() -> None:
    windows = SWIFT.windows()
    whole = [window for window in windows if "share" not in window]
    for window in windows:
        if window.get("share") == 0.8:
            window["verdict"] = "fell behind"
    found = {"sustained_1s_per_s": 2_700.0}
    searches = [{**window, "window": "search", "figures": found} for window in whole]
    page = page_of(STEADY, SWIFT, windows=[*windows, *searches])
    reached = column_of(page, WITHIN_1_S)["Swift <b>&"]
    assert reached == "1,500 to 2,400 (2,700/s in a search)"


def test_who_was_only_killed_has_no_rates() -> None:
    whole = next(window for window in SWIFT.windows() if "share" not in window)
    kill = {**whole, "figures": {"normal_after_s": 30.0}, "window": KILL}
    page = page_of(STEADY, Engine("slow", 2_000, 300, 80), SWIFT, windows=[kill])
    assert column_of(page, WITHIN_1_S)["Swift <b>&"] == "not measured"
    assert "Swift" not in answers_of(page)["has the highest throughput"]


def test_who_recovers_with_wrong_views_is_not_compared() -> None:
    results = []
    slow = replace(SWIFT, name="slow")
    for engine, seconds, wrong in ((STEADY, 40.0, 0), (SWIFT, 30.0, 2), (slow, 60.0, 0)):
        figures = {"normal_after_s": seconds, "wrong_views": wrong}
        whole = [window for window in engine.windows() if "share" not in window]
        kills = [{**window, "figures": figures, "window": KILL} for window in whole]
        results.append(result(engine, windows=[*engine.windows(), *kills]))
    page = choosing_page(standings(results), "../results", {})
    row = answers_of(page)["recovers fastest from kill:engine@500k events"]
    assert row.startswith("**[Steady Stream][1]** (40.0 s); ")
    assert row.endswith(", [Slow][3] (60.0 s); views were wrong: [Swift <b>&][2]")


def test_a_full_heap_is_said_with_the_events_that_fill_it() -> None:
    windows = STEADY.windows()
    for window in windows:
        if "memory_full_after_min" in window["figures"]:
            window["figures"]["memory_full_after_min"] = math.inf
    assert column_of(page_of(STEADY, SWIFT, windows=windows), FULL) == {
        "Steady Stream": "8.1 million events (13 min at 10,000/s)",
        "Swift <b>&": "never",
    }
    windows[0]["figures"]["memory_full_after_min"] = 41.0
    sometimes = column_of(page_of(SWIFT, windows=windows), FULL)["Swift <b>&"]
    assert sometimes == "never in 2 of 3 runs, otherwise 41 min at 50 % of capacity"


def test_windows_that_were_left_out_are_counted_unless_they_had_a_fault() -> None:
    left_out = ["a_run, 1,000/s: the client broke", "b_run, 1,000/s: with the fault kill:engine@5s"]
    page = results_page(standings([result(STEADY), result(SWIFT, left_out=left_out)]), "")
    assert "- Swift <b>&: Windows left out, for the reasons in the result: 1.\n" in page


def test_a_result_of_another_experiment_is_said_to_be() -> None:
    apart = "- Swift <b>&: Measured apart from the others: "
    windows = [{**window, "experiment": "later"} for window in SWIFT.windows()]
    later, others = (
        result(SWIFT, windows=windows),
        [result(STEADY), result(replace(STEADY, name="slow"))],
    )
    assert apart in results_page(standings([*others, later]), "")
    assert "apart from the others" not in results_page(standings([*others, result(SWIFT)]), "")
    assert "apart from the others" not in results_page(standings([later]), "")


def test_of_experiments_with_as_many_results_the_last_counts() -> None:
    first, last = (
        result(engine, windows=[{**window, "experiment": name} for window in engine.windows()])
        for engine, name in ((STEADY, "2026.11.02_full"), (SWIFT, "2026.11.03_full"))
    )
    page = results_page(standings([first, last]), "")
    assert "- Steady Stream: Measured apart from the others: " in page
    assert "Swift <b>&: Measured apart" not in page


def test_engines_of_different_classes_are_told_apart() -> None:
    page = page_of(STEADY, SWIFT, classes=PUBLISHED.model_dump())
    assert column_of(page, "class") == {
        "Steady Stream": "served; reads all input again",
        "Swift <b>&": "published to Kafka; resumes",
    }


def test_who_is_not_tuned_or_was_measured_briefly_is_named() -> None:
    brief = [{**window, "experiment": "2026.11.28_quick"} for window in SWIFT.windows()]
    page = page_of(STEADY, SWIFT, windows=brief)
    assert "\nFrom short runs, soon after the start: Swift <b>&.\n" in page
    assert "No tuned" not in page
    assert "\nNo tuned results: Steady Stream.\n" in page_of(STEADY, SWIFT, variant="tuned")
    assert "From short runs" not in page_of(STEADY, SWIFT)


def test_whose_shares_were_not_measured_after_saturation_is_named() -> None:
    saturated, *shares = SWIFT.windows()[: 1 + len(SHARES)]
    sentence = "\nShares of capacity were measured after saturation"

    def page_with(*windows: Mapping[str, object]) -> str:
        return page_of(STEADY, SWIFT, windows=windows)

    assert f"{sentence}.\n" in page_with(saturated, *shares)
    but_swift = f"{sentence}, except those of Swift <b>&.\n"
    assert but_swift in page_with(*shares, saturated)
    some = f"{sentence}, except those of some of Swift <b>&.\n"
    assert some in page_with(shares[0], saturated, *shares[1:])
    on_another_stack = [{**share, "tag": "another"} for share in shares]
    assert but_swift in page_with(saturated, *on_another_stack)
    assert sentence not in page_of(SWIFT, windows=[*shares, saturated])


def test_who_was_measured_on_a_fresh_stack_is_not_compared_with_others_after_saturation() -> None:
    fresh = [{**each, "tag": f"fresh {at}"} for at, each in enumerate(SWIFT.windows())]
    others = STEADY, replace(STEADY, name="slow", lag_ms=800)
    answers = answers_of(page_of(*others, SWIFT, windows=fresh))
    answer = answers["is the freshest at 50 % of capacity, at different rates"]
    assert answer.startswith("**[Steady Stream][1]**")
    assert answer.endswith("; on a fresh stack, unlike those compared: [Swift <b>&][3]")


def test_each_query_has_a_row_with_who_is_best_in_bold() -> None:
    places = standings(
        [result(of, workload=f"nexmark {q}") for of in (STEADY, SWIFT) for q in ("q16", "q9")]
    )
    page = choosing_page(places, "../results", {})
    assert "No engine is tuned" in page
    rows = [line for line in page.splitlines() if line.startswith("| q")]
    asked = ["the winning bid of each auction", "bids, bidders and auctions per channel, day"]
    assert [row.split(": ")[0] for row in rows[1:]] == ["| q9", "| q16"]
    assert all(words in row for words, row in zip(asked, rows[1:], strict=True))
    assert re.search(r"\*\*Swift <b>&\*\* 180 ± [\d.]+, Steady Stream 600 ± ", rows[1])
    assert re.search(r" \*\*Steady Stream\*\* 9,000 ± \d+, Swift <b>& 3,000 ± ", rows[1])
    assert "Steady Stream: 8.1 million events (13 min at 10,000/s)" in rows[1]


def test_the_queries_of_a_workload_have_folders_of_their_own() -> None:
    assert result(SWIFT, workload="nexmark q0,q4").file_name.startswith("nexmark/q0-q4/")


def test_the_workload_with_the_most_engines_comes_first() -> None:
    places = standings([result(STEADY, workload="ads"), result(STEADY), result(SWIFT)])
    assert [standing.family[0] for standing in places] == ["shop", "ads"]
