"""Tests of a run's summary on the terminal: short, and only with measured values."""

from pathlib import Path
from typing import Any

import pytest

from racetrack.analysis import table
from racetrack.analysis.figures import spread, top_summary
from racetrack.metrics import significant
from racetrack.report.summary import describe_faults, describe_run
from racetrack.results.run import RunRecord
from tests.records import COST, NOISE_FIGURES, record
from tests.report import folders
from tests.run_json import read_run

ENGINE: dict[str, Any] = {
    **COST,
    "cpu_mean_pct": 60.04,
    "cpu_s_per_million": 123.45,
    "rss_max": {"gib": 2.3333, "at_s": 71.2},
}
LAG: dict[str, Any] = {
    "lag_p50_ms": 612.4,
    "lag_p99_ms": 1012.4,
    "lag_max_ms": None,
    "more_than_ms": {"lag_max_ms": 5_012},
}
RESULTS: dict[str, Any] = {
    "verdict": {"measured": LAG},
    "dt_ms": {"mean": 612.34, "p50": 600.0, "max": 1100.0, "updates": 10},
    "engine": ENGINE,
    "processes": {"steadyd": ENGINE},
}


def run_with(results: dict[str, Any], **more: Any) -> RunRecord:
    return record({"results": {**RESULTS, **results}, "engine_services": ["steadyd"], **more})


def summary(results: dict[str, Any], **more: Any) -> list[str]:
    return describe_run(run_with(results, **more), Path("logs/x"))


def test_the_sample_lines_are_the_published_ones() -> None:
    samples = {"cpu_pct": spread([50.0, 70.0]), "rss_gib": spread([1.5, 2.5])}
    results = run_with({"top": {"steadyd": {**samples, "kernel_cpu_pct": 60.0}}}).results
    assert results
    cpu, memory = top_summary(results)
    assert cpu == "name=steadyd, tag=CPU_PCT, mean=60.0, sd=14.1, sem=10.0, samples=[50.0, 70.0]"
    assert memory.endswith("sd=0.707, sem=0.500, max=2.500, samples=[1.500, 2.500]")


def test_the_summary_has_one_line_for_each_part() -> None:
    support = dict.fromkeys(("broker", "loadgen", "mysql", "registry", "debezium"), COST)
    lines = summary({"processes": {"steadyd": ENGINE, **support}, "noise": NOISE_FIGURES})
    assert lines[0] == "steady at 5,000 events/s (native): ok"
    labels = "verdict lag delay rate steady broker loadgen support noise logs"
    assert [line.split()[0] for line in lines[1:]] == labels.split()
    for line, part in zip(
        lines[1:],
        (
            "Kept up: lag is steady",
            "p50 612 ms, p99 1,012 ms, max more than 5,012 ms",
            "median 600, mean 612",
            "5,003 of 5,000",
            "CPU 60.0 % of a core (123 CPU-s/million events)",
        ),
        strict=False,
    ):
        assert part in line


@pytest.mark.parametrize(
    ("value", "shown"),
    [(23_733.91, "23,700"), (76.03, "76.0"), (9.996, "10.00"), (0.04567, "0.0457"), (0.0, "0")],
)
def test_a_cost_has_three_digits_that_mean_something(value: float, shown: str) -> None:
    assert significant(value) == shown


def test_services_that_a_cpu_limit_stopped_are_reported() -> None:
    throttled = {"steadyd": 12.34, "broker": 2.0, "mysql": 0.9}  # in percent of the periods
    costs = {name: {**COST, "throttled_pct": share} for name, share in throttled.items()}
    shown = "\n".join(summary({"engine": costs["steadyd"], "processes": costs}))
    assert "limit of steadyd: it was used up in 12.3 %" in shown
    assert "limit of broker: it was used up in 2.0 %" in shown
    assert "limit of mysql" not in shown  # it hardly reached its limit


def test_a_fault_is_a_line_with_restart_reload_and_recovery() -> None:
    done: dict[str, Any] = {"fault": "kill:engine@10s", "how": "kill", "services": []}
    done |= {"at_ms": 1, "restart_s": 6.25, "reload_s": 4.0}
    calm = {"normal_ms": 2000.0, "worst_ms": 400.0, "after_s": 0}
    lost = {"normal_ms": 2000.0, "worst_ms": None, "after_s": None}
    back = {"normal_ms": 2000.0, "worst_ms": 8123.4, "after_s": 12.34}
    recovered = [{"fault": "", "events": back, "purchases": calm}, {"fault": "", "events": lost}]
    run = run_with({"faults": recovered}, faults={"from_ms": 0, "done": [done, done]})
    first, second = describe_faults(run)
    for part in ("kill:engine@10s", "6.2 s", "4.0 s", "12.3 s (at most 8,123 ms)", "400 ms"):
        assert part in first
    assert "lag of events never normal again" in second


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
    effect = {"max_backlog_events": 123_456, "max_backlog_before_events": 2_100}
    effects = {**effect, "recovery": recovery, "after_peak_s": after_peak_s}
    load = {"profile": "spike 2k 20k 10s", "from_ms": 0}
    lines = summary({"load": effects}, load=load, arguments={"load": load["profile"]})
    (line,) = [line for line in lines if line.startswith("  recovery")]
    assert says in line and ("at most 8,123 ms" in line) == (after_s is not None)
    assert "  backlog     at most 123,456 events (2,100 before the spike)" in lines
    without_a_spike = summary({"load": effect}, load=load, arguments={"load": "sine 2k 8k 60s"})
    assert "  backlog     at most 123,456 events" in without_a_spike


@pytest.mark.slow
def test_a_run_at_rate_0_has_no_verdict_and_no_cost_of_an_event(tmp_path: Path) -> None:
    folder = folders.run(tmp_path, folders.RunSpec(rate=0))
    shown = "\n".join(describe_run(RunRecord.model_validate(read_run(folder)), folder))
    assert "No verdict at rate 0" in shown and "CPU 40.0 % of a core" in shown
    assert "per million" not in shown
    (row,) = table.read([folder]).rows
    assert (row.outcome, row.verdict) == ("ok", "none")
