"""Tests of a run's summary on the terminal: short, and only with measured values."""

from pathlib import Path
from typing import Any

import pytest

from racetrack.analysis import table
from racetrack.analysis.figures import spread, top_summary
from racetrack.metrics import significant
from racetrack.report.summary import describe_faults, describe_run
from racetrack.results.run import RunRecord
from tests.records import COST, NOISE_FIGURES, VIEW, record
from tests.report import folders
from tests.run_json import read_run

REASON = (
    "Kept up: lag is steady (grows by −0.85 to 0.39 % of real time; limit 1 %), judged over 78 s"
)
VERDICT: dict[str, Any] = {
    "reason": REASON,
    "measured": {
        "lag_p50_ms": 612.4,
        "lag_p99_ms": 1012.4,
        "lag_max_ms": None,
        "more_than_ms": {"lag_max_ms": 5_012},
        "processing_lag_p50_ms": 92.4,
    },
    "warnings": ["the window is short"],
    "shortest_window_s": 42,
}
ENGINE: dict[str, Any] = {
    **COST,
    "cpu_mean_pct": 60.04,
    "cpu_s_per_million": 123.45,
    "rss_max": {"gib": 2.3333, "at_s": 71.2},
    "live_heap_gib": 0.75,
}
TOP: dict[str, Any] = {
    "steadyd": {
        "cpu_pct": spread([50.0, 70.0]),
        "rss_gib": spread([1.5, 2.5]),
        "kernel_cpu_pct": 60.0,
    }
}
RESULTS: dict[str, Any] = {
    "verdict": VERDICT,
    "achieved_events_per_s": 5003.14,
    "published_events": 123456,
    "processed_events": 123400,
    "dt_ms": {"mean": 612.34, "p50": 600.0, "max": 1100.0, "updates": 10},
    "engine": ENGINE,
    "processes": {"steadyd": ENGINE},
    "top": TOP,
}


READ: dict[str, Any] = {
    "query": "a by b",
    "due": 20,
    "answered": 18,
    "errors": 2,
    "first_error": "it is gone",
    "rows_max": 6,
    "time": {"p50_ms": 12.0, "p99_ms": None},
    "service_time": {"p50_ms": 11.0, "p99_ms": 14.0},
    "age": {"p50_ms": 1_234.0, "p99_ms": 2_345.0},
}


def run_with(results: dict[str, Any], **more: Any) -> RunRecord:
    return record({"results": results, "engine_services": ["steadyd"], **more})


def summary(results: dict[str, Any], **more: Any) -> list[str]:
    return describe_run(run_with({**RESULTS, **results}, **more), Path("logs/x"))


def test_the_sample_lines_are_the_published_ones() -> None:
    results = run_with(RESULTS).results
    assert results
    cpu, memory = top_summary(results)
    assert cpu == "name=steadyd, tag=CPU_PCT, mean=60.0, sd=14.1, sem=10.0, samples=[50.0, 70.0]"
    assert memory.endswith("sd=0.707, sem=0.500, max=2.500, samples=[1.500, 2.500]")


def test_the_summary_has_one_line_for_each_part() -> None:
    names = ("broker", "loadgen", "mysql", "registry", "debezium")
    noise = {**NOISE_FIGURES, "core": {"mib_per_s": 760.0, "fastest_mib_per_s": 800.0}}
    verdict = {**VERDICT, "warnings": [], "shortest_window_s": None}
    processes = {"steadyd": ENGINE, **dict.fromkeys(names, COST)}
    lines = summary({"verdict": verdict, "processes": processes, "noise": noise})
    assert lines[0] == "steady at 5,000 events/s (native): ok"
    labels = "verdict lag delay rate steady broker loadgen support noise logs"
    assert [line.split()[0] for line in lines[1:]] == labels.split()
    parts = (
        REASON,
        "p50 612 ms, p99 1,012 ms, max more than 5,012 ms",
        "median 600, mean 612",
        "5,003 of 5,000",
        "CPU 60.0 % of a core (123 CPU-s/million events)",
    )
    for line, part in zip(lines[1:], parts, strict=False):
        assert part in line


@pytest.mark.parametrize(
    ("results", "parts"),
    [
        ({}, ["the window is short", "42 s"]),
        (
            {"dt_ms": {"mean": None, "p50": None, "max": None, "updates": 0, "next_update_s": 3}},
            ["dt_ms n/a"],
        ),
        ({"reads": [READ]}, ["a by b: 18 of 20", "p50 1,234 ms", "2 errors: it is gone"]),
        (
            {
                "cdc": {
                    "inserts_per_s": 15.0,
                    "in_database": {"p50_ms": 0.0, "p99_ms": 101.0},
                    "sent": {"p50_ms": 402.0, "p99_ms": 800.0},
                    "in_topic": {"p50_ms": 502.0, "p99_ms": None},
                }
            },
            ["15/s", "p50 0 ms", "p50 502 ms, p99 infinite"],
        ),
        ({"views": [VIEW]}, ["item_summary.orders: p50 430 ms", "fell behind"]),
    ],
    ids=["warnings", "no update", "reads", "cdc", "views"],
)
def test_optional_results_have_lines(results: dict[str, Any], parts: list[str]) -> None:
    shown = "\n".join(summary(results))
    assert [part for part in parts if part not in shown] == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [(23_733.91, "23,700"), (76.03, "76.0"), (9.996, "10.00"), (0.04567, "0.0457"), (0.0, "0")],
)
def test_a_cost_has_three_digits_that_mean_something(value: float, shown: str) -> None:
    assert significant(value) == shown


def test_services_that_a_cpu_limit_stopped_are_reported() -> None:
    engine, broker = {**ENGINE, "throttled_pct": 12.34}, {**COST, "throttled_pct": 2.0}
    processes = {"steadyd": engine, "broker": broker, "mysql": {**COST, "throttled_pct": 0.9}}
    shown = "\n".join(summary({"engine": engine, "processes": processes}))
    assert "limit of steadyd: it was used up in 12.3 %" in shown
    assert "limit of broker: it was used up in 2.0 %" in shown
    assert "limit of mysql" not in shown  # it hardly reached its limit
    assert "CPU limit" not in "\n".join(summary({}))


def test_a_fault_is_a_line_with_restart_reload_and_recovery() -> None:
    done: dict[str, Any] = {"fault": "kill:engine@10s", "how": "kill", "services": []}
    done |= {"at_ms": 1, "restart_s": 6.25, "reload_s": 4.0}
    calm = {"normal_ms": 2000.0, "worst_ms": 400.0, "after_s": 0}
    lost = {"normal_ms": 2000.0, "worst_ms": None, "after_s": None}
    back = {"normal_ms": 2000.0, "worst_ms": 8123.4, "after_s": 12.34}
    recovered = [
        {"fault": "", "events": back, "purchases": calm},
        {"fault": "", "events": lost},
    ]
    run = run_with({"faults": recovered}, faults={"from_ms": 0, "done": [done, done]})
    first, second = describe_faults(run)
    for part in ("kill:engine@10s", "6.2 s", "4.0 s", "12.3 s (at most 8,123 ms)", "400 ms"):
        assert part in first
    assert "lag of events never normal again" in second


def with_load(effect: dict[str, Any], profile: str) -> list[str]:
    load = {"profile": profile, "from_ms": 0}
    arguments = {"load": profile, "events_per_s": 5_000}
    results = {"load": effect, "offered_events_per_s": 5_100.0}
    return summary(results, load=load, arguments=arguments)


@pytest.mark.parametrize(
    ("after_s", "after_peak_s", "says"),
    [
        (None, None, "never normal again"),
        (0.0, 0.0, "never above normal"),
        (6.0, 0.0, "during the spike"),
        (13.24, 3.24, "3.2 s after the spike"),
    ],
)
def test_the_recovery_from_a_spike_is_reported_with_the_backlog(
    after_s: float | None, after_peak_s: float | None, says: str
) -> None:
    recovery = {"normal_ms": 2000.0, "worst_ms": 8123.4, "after_s": after_s}
    effect = {"max_backlog_events": 123_456, "recovery": recovery, "after_peak_s": after_peak_s}
    lines = with_load({**effect, "max_backlog_before_events": 2_100}, "spike 2k 20k 10s")
    (line,) = [line for line in lines if line.startswith("  recovery")]
    assert says in line and ("at most 8,123 ms" in line) == (after_s is not None)
    assert "  backlog     at most 123,456 events (2,100 before the spike)" in lines


def test_without_a_spike_there_is_nothing_to_recover_from() -> None:
    lines = with_load({"max_backlog_events": 9}, "sine 2k 8k 60s")
    assert "  backlog     at most 9 events" in lines
    assert not any(line.startswith("  recovery") for line in lines)


@pytest.mark.slow
def test_a_run_at_rate_0_has_no_verdict_and_no_cost_of_an_event(tmp_path: Path) -> None:
    folder = folders.run(tmp_path, folders.RunSpec(rate=0))
    shown = "\n".join(describe_run(RunRecord.model_validate(read_run(folder)), folder))
    assert "No verdict at rate 0" in shown and "CPU 40.0 % of a core" in shown
    assert "per million" not in shown and "would probably decide" not in shown
    (row,) = table.read([folder]).rows
    assert (row.outcome, row.verdict) == ("ok", "none")
