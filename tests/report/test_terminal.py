"""The last lines of a run: the published format, and nothing that was not measured."""

from pathlib import Path
from typing import Any

from racetrack.analysis.figures import spread
from racetrack.report import terminal
from racetrack.run_record import RunRecord
from tests.records import COST, NOISE_FIGURES, VIEW, record

VERDICT: dict[str, Any] = {
    "reason": "Kept up: the processing lag's slope is 0.01 %",
    "measured": {
        "lag_p50_ms": 612.4,
        "lag_p99_ms": 1012.4,
        "lag_max_ms": None,
        "processing_lag_p50_ms": 92.4,
    },
    "warnings": ["the window is short"],
    "shortest_window_s": 42,
}
RESULTS: dict[str, Any] = {
    "verdict": VERDICT,
    "achieved_pageviews_per_s": 5003.14,
    "published_pageviews": 123456,
    "processed_pageviews": 123400,
    "dt_ms": {"mean": 612.34, "p50": 600.0, "max": 1100.0, "updates": 10},
    "processes": {
        "steadyd": {
            **COST,
            "cpu_pct": spread([50.0, 70.0]),
            "rss_gib": spread([1.5, 2.5]),
            "cpu_s_per_million": 12.345,
        }
    },
    "harness": {"cpu_pct": 1.26, "cpu_s": 0.1},
}


def run_with(results: dict[str, Any], **more: Any) -> RunRecord:
    return record({"results": results, **more})


def sample_lines(results: dict[str, Any]) -> list[str]:
    found = run_with(results).results
    assert found
    return terminal.sample_lines(found)


def test_the_sample_lines_are_the_published_ones() -> None:
    assert sample_lines(RESULTS) == [
        "name=steadyd, tag=CPU_PCT, mean=60.0, sd=14.1, sem=10.0, samples=[50.0, 70.0]",
        (
            "name=steadyd, tag=RES_GiB, mean=2.000, sd=0.707, sem=0.500, max=2.500,"
            " samples=[1.500, 2.500]"
        ),
    ]


def test_memory_is_shown_with_each_page_once() -> None:
    held = {"pss_gib": spread([1.25, 1.5]), "tmpfs_gib": spread([0.125]), "live_heap_gib": 0.75}
    known = {**COST, **held}
    lines = terminal.summary(run_with({"processes": {"a": known, "b": COST}}), Path("logs/x"))
    shown = [line.strip() for line in lines if "PSS" in line]
    assert shown == [
        "PSS max 1.50 GiB, tmpfs max 0.12 GiB, live heap 0.75 GiB",
        "PSS max n/a GiB, tmpfs max n/a GiB",
    ]


def test_one_sample_has_no_deviation() -> None:
    one = {"processes": {"x": {**COST, "cpu_pct": spread([50.0]), "rss_gib": spread([1.0])}}}
    assert "sd=n/a, sem=n/a" in sample_lines(one)[0]


def test_the_summary_says_it_at_a_glance() -> None:
    run = run_with(RESULTS)
    text = "\n".join(terminal.summary(run, Path("logs/x_steady_5000")))
    assert "steady at 5,000 pageviews/s (native): ok" in text
    assert "asked 5,000/s, achieved 5,003.1/s" in text
    assert "verdict     Kept up: the processing lag's slope is 0.01 %" in text
    assert "lag         p50 612 ms, p99 1,012 ms, max n/a ms over time;" in text
    assert "over time; processing lag p50 92 ms" in text
    assert "a window of 42 s would decide" in text
    assert "warning     the window is short" in text
    assert "published 123,456, seen by the engine 123,400" in text
    assert "CPU mean 60.0 % of a core, memory max 2.50 GiB, 12.35 CPU-s per million" in text
    assert "logs/x_steady_5000" in text


def test_what_supports_every_engine_alike_is_one_line() -> None:
    def cost(pct: float, gib: float) -> dict[str, Any]:
        return {**COST, "cpu_pct": spread([pct]), "rss_gib": spread([gib])}

    support = {"mysql": cost(1.25, 0.5), "debezium": cost(3.0, 0.375)}
    results = {**RESULTS, "processes": {**RESULTS["processes"], **support}}
    assert sample_lines(results) == sample_lines(RESULTS)
    told = terminal.summary(run_with(results), Path("x"))
    line = "  support     mysql 1.2 % of a core, 0.50 GiB; debezium 3.0 % of a core, 0.38 GiB"
    assert [one for one in told if one not in terminal.summary(run_with(RESULTS), Path("x"))] == [
        line
    ]


def test_a_void_run_says_what_to_do_next() -> None:
    outcome = "Void: other programs used 12.0 % of a core (more than 5 %) while samples were taken."
    core = {"mib_per_s": 600.0, "fastest_mib_per_s": 800.0}
    figures = {**NOISE_FIGURES, "foreign_cpu_pct": 12.0, "core": core}
    results = {**RESULTS, "noise": {"sampled": figures}}
    spin = {"before_mib_per_s": 384.2, "after_mib_per_s": 380.0}
    lines = terminal.summary(run_with(results, outcome=outcome, spin=spin), Path("x"))
    assert lines[0].endswith(f": {outcome}")
    assert (
        "  noise       other programs 12.0 % of a core, stolen 0.2 % of all CPU time;"
        " a core at 75 % of its fastest; a core did 384 MiB/s before, 380 after"
    ) in lines
    assert any(line.startswith("  next        Stop what else runs here") for line in lines)
    fine = terminal.summary(run_with({**RESULTS, "noise": {"sampled": NOISE_FIGURES}}), Path("x"))
    assert not any(line.startswith("  next") for line in fine)


def test_a_window_without_an_update_has_no_delay() -> None:
    none = {"mean": None, "p50": None, "max": None, "updates": 0, "next_update_s": 3.5}
    run = run_with({**RESULTS, "dt_ms": none})
    lines = terminal.summary(run, Path("logs/x_steady_5000"))
    assert "  delay       dt_ms n/a: no update in the window" in lines


def test_an_engine_that_ran_elsewhere_has_no_cost_and_its_caveats_are_said() -> None:
    results = {**RESULTS, "processes": {"broker": RESULTS["processes"]["steadyd"]}}
    told = {"engine": "swift", "caveats": ["It ran who knows where."]}
    run = run_with(results, **told)
    lines = terminal.summary(run, Path("logs/x_swift_5000"))
    assert [line for line in lines if line.startswith("  swift ")] == [
        (
            "  swift       The engine's CPU and memory were not measured: none of its processes is"
            " known to be here."
        )
    ]
    assert any(line.startswith("  broker      CPU mean 60.0 %") for line in lines)
    assert "  caveat      It ran who knows where." in lines
    assert not any(
        "not measured" in line for line in terminal.summary(run_with(RESULTS, **told), Path("x"))
    )


def test_a_fault_is_a_line_that_says_what_it_took() -> None:
    done = {
        "fault": "kill:engine@10s",
        "how": "kill",
        "services": [],
        "at_ms": 1,
        "restart_s": 6.25,
        "reload_s": 4.0,
    }
    calm = {"normal_ms": 2000.0, "worst_ms": 400.0, "after_s": 0}
    lost = {"normal_ms": 2000.0, "worst_ms": None, "after_s": None}
    back = {"normal_ms": 2000.0, "worst_ms": 8123.4, "after_s": 12.34}
    recovered = [
        {"fault": "", "pageviews": back, "purchases": calm},
        {"fault": "", "pageviews": lost},
    ]
    run = run_with({"faults": recovered}, faults={"from_ms": 0, "done": [done, done]})
    assert terminal.fault_lines(run) == [
        (
            "  fault       kill:engine@10s: up again in 6.2 s, demo loaded again in 4.0 s,"
            " lag of pageviews normal again after 12.3 s (at most 8,123 ms),"
            " lag of purchases never above normal (at most 400 ms)"
        ),
        (
            "  fault       kill:engine@10s: up again in 6.2 s, demo loaded again in 4.0 s,"
            " lag of pageviews never normal again while it was watched"
        ),
    ]


def test_the_answers_to_each_question_have_a_line() -> None:
    read = {
        "question": "a by b",
        "due": 20,
        "answered": 18,
        "errors": 2,
        "first_error": "it is gone",
        "rows_max": 6,
        "time": {"p50_ms": 12.0, "p99_ms": None},
        "service_time": {"p50_ms": 11.0, "p99_ms": 14.0},
        "age": {"p50_ms": 1_234.0, "p99_ms": 2_345.0},
    }
    whole = {**read, "question": "all", "errors": 0, "first_error": None, "age": None}
    shown = terminal.summary(run_with({**RESULTS, "reads": [read, whole]}), Path("x"))
    assert (
        "  read        a by b: 18 of 20 answered with up to 6 rows, time p50 12 ms, p99 without"
        " end, age p50 1,234 ms, p99 2,345 ms; 2 errors: it is gone"
    ) in shown
    assert (
        "  read        all: 18 of 20 answered with up to 6 rows, time p50 12 ms, p99 without end"
    ) in shown


def test_the_stages_of_cdc_have_a_line() -> None:
    way = {
        "inserts_per_s": 15.0,
        "in_database": {"p50_ms": 0.0, "p99_ms": 101.0},
        "sent": {"p50_ms": 402.0, "p99_ms": 800.0},
        "in_topic": {"p50_ms": 502.0, "p99_ms": None},
    }
    shown = terminal.summary(run_with({**RESULTS, "cdc": way}), Path("x"))
    assert (
        "  inserts     15/s; age of the oldest not in the database p50 0 ms, p99 101 ms, not sent"
        " by CDC p50 402 ms, p99 800 ms, not in the topic p50 502 ms, p99 without end"
    ) in shown


def test_what_yahoo_would_publish_stands_beside_what_it_hides() -> None:
    told = {
        "length_ms": 10_000,
        "windows": 3,
        "after_end_p50_ms": 40.0,
        "after_end_max_ms": None,
        "lag_max_ms": 8_012.0,
    }
    shown = terminal.summary(run_with({**RESULTS, "window_writes": told}), Path("x"))
    assert (
        "  windows     3 of 10 s: last written p50 40 ms, max without end after the end; lag"
        " meanwhile up to 8,012 ms"
    ) in shown


def test_the_lag_of_each_followed_view_has_a_line() -> None:
    shown = terminal.summary(run_with({**RESULTS, "views": [VIEW]}), Path("x"))
    assert (
        "  view lag    item_summary.orders: p50 430 ms, p99 1,925 ms, max n/a ms, by 12 purchases a"
        " second; fell behind"
    ) in shown
