"""Tests of a report on many runs: numbers are those of the run folders; unrelated runs are kept
apart."""

import csv
import io
import json
import re
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import unescape
from itertools import product
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from racetrack.analysis import table
from racetrack.analysis.claims import estimates
from racetrack.analysis.table import Load, Row, Table
from racetrack.analysis.warnings import Grade
from racetrack.report.html import MOST_INLINE, write
from racetrack.report.render import show
from racetrack.report.runs import notes_of, read_runs, warnings_by_grade
from racetrack.report.sheet import Sheet, sheet
from tests.report.browser import loaded_by
from tests.report.folders import PlannedRun, RunSpec, edit, experiment, run
from tests.run_json import read_run

pytestmark = pytest.mark.slow

STEADY, SWIFT = RunSpec(cpu_pct=40), RunSpec(engine="swift", cpu_pct=80, rss_gib=3.0)
HOSTILE = '<script>alert("x")</script>&$\\alpha_{'


@dataclass(frozen=True)
class Report:
    """A report as a user gets it: printed tables and files."""

    folder: Path
    table: Table
    sheet: Sheet
    printed: str

    @property
    def html(self) -> str:
        return (self.folder / "report.html").read_text()

    @property
    def words(self) -> str:
        """The visible text of the page, without charts and scripts."""
        body = re.sub(r"<(script|svg|style).*?</\1>", " ", self.html, flags=re.DOTALL)
        return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", body)))

    @property
    def rows(self) -> dict[str, dict[str, str]]:
        with (self.folder / "report.csv").open() as file:
            return {row["tag"]: row for row in csv.DictReader(file)}

    @property
    def records(self) -> list[dict[str, Any]]:
        content = json.loads((self.folder / "report.json").read_text())
        return cast(list[dict[str, Any]], content["records"])


def report_on(folders: Path | Sequence[Path], out: Path) -> Report:
    """Report on these folders, or on everything in one folder."""
    chosen = sorted(folders.iterdir()) if isinstance(folders, Path) else list(folders)
    rows = table.read(chosen)
    runs = read_runs(rows)
    made = sheet(rows, notes=notes_of(runs, rows.rows))
    text = io.StringIO()
    show(Console(file=text, width=200), made)
    write(out, rows, made, runs, lambda *_: None)
    return Report(out, rows, made, text.getvalue())


def warnings_of(path: Path) -> dict[Grade, list[str]]:
    (made,) = read_runs(table.read([path]))
    return warnings_by_grade(made)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write two engines' runs, twice at two rates, and one run that lost events."""
    folder = tmp_path_factory.mktemp("logs")
    for seed, spec, rate in product((1, 2), (STEADY, SWIFT), (1_000, 4_000)):
        run(folder, replace(spec, rate=rate, seed=seed))
    run(folder, RunSpec(lost=1, cpu_pct=500), "2026.03.22.06.00.00_UTC_lost")
    return folder


@pytest.fixture(scope="module")
def report(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Report:
    return report_on(logs, tmp_path_factory.mktemp("out"))


def rows_in(folder: Path) -> tuple[Row, ...]:
    return table.read(sorted(folder.iterdir())).rows


def test_means_are_those_of_the_raw_files(logs: Path, report: Report) -> None:
    """Compute the means again from the kernel's account, without the report's code."""
    means = []
    for folder in sorted(logs.iterdir()):
        record = read_run(folder)
        if (record["engine"], record["arguments"]["events_per_s"]) == ("swift", 4_000):
            window = record["measured"]["window"]
            found = re.findall(r"(\d+),swiftd,([\d.]+)", (folder / "usage.csv").read_text())
            used = {int(at_ms): float(cpu_s) for at_ms, cpu_s in found}
            seconds = (window["end_ms"] - window["start_ms"]) / 1000
            means.append(100 * (used[window["end_ms"]] - used[window["start_ms"]]) / seconds)
    assert len(means) == 2
    mean = statistics.geometric_mean(means)
    estimate = estimates(report.table.rows)["swift", "cpu_mean_pct", Load(4_000)]
    assert estimate.values == pytest.approx(means, abs=0.01)
    assert estimate.mean == pytest.approx(mean, abs=0.01)
    assert estimate.low and estimate.high and estimate.low < mean < estimate.high
    assert f"{mean:,.1f} " in report.printed and f"{mean:,.1f} " in report.words


def test_csv_and_json_hold_the_same_numbers(logs: Path, report: Report) -> None:
    rows = report.rows
    assert len(rows) == len(report.records) == 9
    for record in report.records:
        results = read_run(logs / record["tag"])["results"]
        process = results["processes"]["swiftd" if record["engine"] == "swift" else "steadyd"]
        for one in (rows[record["tag"]], record):
            assert float(one["cpu_mean_pct"]) == process["cpu_mean_pct"]
            assert float(one["rss_max_gib"]) == process["rss_max"]["gib"]
            assert float(one["cpu_s_per_million"]) == process["cpu_s_per_million"]
            assert float(one["lag_p50_ms"]) == results["verdict"]["measured"]["lag_p50_ms"]


def test_a_failed_run_is_listed_with_its_reason_and_in_no_mean(report: Report) -> None:
    made = estimates(report.table.rows)["steady", "cpu_mean_pct", Load(4_000)]
    assert made.n == 2
    assert report.rows["2026.03.22.06.00.00_UTC_lost"]["outcome"] != "ok"
    assert "published events differ" in report.printed


def test_an_engine_that_did_not_hold_a_rate_is_not_compared_there(tmp_path: Path) -> None:
    for seed in (1, 2):
        run(tmp_path / "logs", RunSpec(seed=seed))
        behind = RunSpec(engine="swift", cpu_pct=1.0, seed=seed, leak=0.5, delay_ms=9_000)
        run(tmp_path / "logs", behind)
    report = report_on(tmp_path / "logs", tmp_path / "out")
    assert report.sheet.sections[0].answers == ("`swift` did not hold 4,000/s.",)


def test_a_machine_that_was_slower_in_some_windows_is_reported(tmp_path: Path) -> None:
    speeds = (1_000.0, 920.0, 850.0, 890.0)
    for seed, speed in enumerate(speeds):
        run(tmp_path / "logs", RunSpec(seed=seed, foreign_pct=0.0, core_mib_per_s=speed))
    section, *_ = report_on(tmp_path / "logs", tmp_path / "out").sheet.sections
    warning = "In 2 of 4 windows cores ran at 85 to 89 % of their speed in the fastest"
    assert any(note.text.startswith(warning) for note in section.notes)
    shutil.rmtree(tmp_path / "logs")
    for seed, speed in enumerate(speeds[:2]):
        run(tmp_path / "logs", RunSpec(seed=seed, foreign_pct=0.0, core_mib_per_s=speed))
    section, *_ = report_on(tmp_path / "logs", tmp_path / "out").sheet.sections
    assert not any("of their speed" in note.text for note in section.notes)


@pytest.mark.parametrize(("read_ns", "is_slow"), [(28.0, True), (24.0, False)])
def test_windows_in_which_memory_was_slow_are_reported(
    tmp_path: Path, read_ns: float, is_slow: bool
) -> None:
    for seed, ns in enumerate((20.0, read_ns)):
        run(tmp_path / "logs", RunSpec(seed=seed, foreign_pct=0.0, memory_read_ns=ns))
    section, *_ = report_on(tmp_path / "logs", tmp_path / "out").sheet.sections
    warning = (
        "In 1 of 2 windows a read from memory took up to 1.4 times as long as in the quietest:"
    )
    assert any(note.text.startswith(warning) for note in section.notes) == is_slow


def test_only_runs_with_the_same_settings_windows_load_and_faults_are_repeats(
    tmp_path: Path,
) -> None:
    """Runs are still repeats if they differ in ports, or if windows at other rates have other
    lengths."""
    run(tmp_path, RunSpec())
    run(tmp_path, RunSpec(settings={"KAFKA_HEAP": "8g"}))
    run(tmp_path, RunSpec(settings={"CONNECT_PORT": "10001"}))
    labels = [(row.variant, row.repeat) for row in rows_in(tmp_path)]
    assert labels == [
        ("steady[KAFKA_HEAP=1g]", 1),
        ("steady[KAFKA_HEAP=8g]", 1),
        ("steady[KAFKA_HEAP=1g]", 2),
    ]
    run(tmp_path, RunSpec(rate=100, window_s=12.0))
    others: tuple[dict[str, Any], ...] = (
        {"wait_s": 99.0},
        {"load": "spike 4k 8k 5s"},
        {"faults": ("kill:debezium@15s",)},
    )
    for number, arguments in enumerate(others, start=4):
        run(tmp_path, RunSpec(arguments=arguments))
        groups = {(row.variant, row.load) for row in rows_in(tmp_path) if row.load}
        assert len(groups) == number


def test_an_experiment_brings_its_runs_its_missing_ones_and_a_chart(tmp_path: Path) -> None:
    settings = [{"UPDATES_PER_SECOND": value} for value in ("500", "1000")]
    runs = [PlannedRun(RunSpec(settings=of), variant=f"{of}", settings=of) for of in settings]
    gone = PlannedRun(RunSpec(), variant="steady[9]")
    not_begun = replace(gone, begun=False, repeat=2, outcome=None)
    folder = experiment(tmp_path, "vary", [*runs, gone, not_begun])
    *made, last = sorted(tmp_path.glob("*_run"))
    shutil.rmtree(last)
    report = report_on([folder, made[0]], tmp_path / "out")
    assert {row.folder for row in report.table.rows} == set(made)
    assert {row.experiment for row in report.table.rows} == {folder.name}
    assert len(report.table.missing) == 2 and last.name in report.table.missing[0]
    assert "Lag p99 against updates_per_second" in report.html


def test_missing_raw_files_are_named_and_an_unfinished_run_is_read(tmp_path: Path) -> None:
    folder, unfinished = run(tmp_path, RunSpec()), run(tmp_path, RunSpec())
    (folder / "curves.csv").unlink()
    kept = {key: read_run(unfinished)[key] for key in ("schema_version", "run_id", "tag", "engine")}
    (unfinished / "run.json").write_text(json.dumps(kept))
    report = report_on([folder, unfinished], tmp_path / "out")
    assert "curves.csv" in report.printed and "arrivals.csv" not in report.printed
    assert "unfinished" in report.words


def test_warnings_come_from_the_data(tmp_path: Path) -> None:
    busy = RunSpec("swift", runtime="compose", caveats=("Only an image.",))
    specs = (
        RunSpec(window_s=8.0),
        replace(busy, busy_cores=1.9, foreign_pct=0.0),
        # Judged over more than 30 s.
        RunSpec(window_s=26.0, arguments={"decide_within_s": 60.0}),
    )
    first, second, third = (warnings_of(run(tmp_path, spec)) for spec in specs)
    assert "Short window, 8 s" in " ".join(first[Grade.DOUBTFUL])
    assert "90 % of all cores' time" in " ".join(second[Grade.DOUBTFUL])
    assert "Short window" not in " ".join(second[Grade.DOUBTFUL] + third[Grade.DOUBTFUL])
    assert "Only an image." in second[Grade.COMPARING]
    brokers = ["Apache Kafka" in " ".join(of[Grade.COMPARING]) for of in (first, second)]
    assert brokers == [True, False]


@pytest.mark.parametrize(("top_share", "warns"), [(0.5, True), (0.9, False), (1.3, True)])
def test_top_is_compared_with_the_kernels_account(
    tmp_path: Path, top_share: float, warns: bool
) -> None:
    graded = warnings_of(run(tmp_path, RunSpec(top_share=top_share)))
    warnings = [w for w in graded[Grade.WRONG] if w.startswith("CPU of steadyd: top shows")]
    assert bool(warnings) is warns
    if warns:
        shown = re.search(r"([\d.]+) % of a core, the kernel's account 40\.0 %", warnings[0])
        assert shown and float(shown[1]) == pytest.approx(40 * top_share, rel=0.05)


def test_an_engine_that_ran_elsewhere_has_no_cost(tmp_path: Path) -> None:
    """Figures that are unknown for such an engine are blank, and it is not compared by them."""
    logs, elsewhere = tmp_path / "logs", RunSpec("swift", elsewhere=True, view_delay_ms=90)
    for seed in (1, 2):
        for spec in (RunSpec(view_delay_ms=90), elsewhere, replace(elsewhere, rate=1_000)):
            run(logs, replace(spec, seed=seed))
    report = report_on(logs, tmp_path / "out")
    for one in (row for row in report.table.rows if row.engine == "swift"):
        for key in ("cpu_mean_pct", "rss_max_gib", "cpu_s_per_million", "cpu_user_pct"):
            assert key not in one.values
        assert {"lag_p50_ms", "broker_cpu_mean_pct"} <= set(one.values)
    assert {claim.metric.key for claim in report.sheet.sections[0].claims} == {"view_lag_p99_ms"}
    costs = {row["cpu_mean_pct"] for row in report.rows.values() if row["engine"] == "swift"}
    assert costs == {""}


def test_a_window_without_an_update_leaves_figures_blank_but_has_a_verdict(tmp_path: Path) -> None:
    folder = run(tmp_path / "logs", RunSpec(silent=True))
    record = read_run(folder)
    assert (record["outcome"], record["results"]["verdict"]["kind"]) == ("ok", "fell behind")
    report = report_on([folder], tmp_path / "out")
    (row,), (as_json,) = report.rows.values(), report.records
    for key in ("dt_p50_ms", "processed_events_per_s", "cpu_s_per_million"):
        assert (row[key], as_json[key]) == ("", None), key
    assert float(row["lag_p50_ms"]) > 10_000
    assert "nan" not in report.words.lower().split()


def test_view_lags_and_answers_to_reads_are_shown(tmp_path: Path) -> None:
    path = run(tmp_path / "logs", RunSpec(view_delay_ms=1_250, read_ms=300))
    report = report_on([path], tmp_path / "out")
    for name in ("item_summary.orders", "item_summary by item_id"):
        assert f'<th scope="row">{name}</th>' in report.html
    row = report.rows[path.name]
    assert float(row["view_lag_p99_ms"]) == pytest.approx(1_250, abs=20)
    assert float(row["read_time_p99_ms"]) == pytest.approx(300, abs=2)
    # An age may be too low by up to 200 ms, the interval between the tracer events of one view.
    assert 1_340 <= float(row["read_age_p99_ms"]) <= 1_552


def test_the_page_needs_no_other_file(report: Report) -> None:
    assert loaded_by(report.html) == []
    links = set(re.findall(r'href="([^"#]+)"', report.html))
    assert all((report.folder / link).is_file() for link in links)
    ids = re.findall(r'\sid="([^"]+)"', report.html)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(|href=")#([^)"]+)', report.html)) <= set(ids)


def test_hostile_names_are_only_text(tmp_path: Path) -> None:
    folder = run(tmp_path, RunSpec())
    results = read_run(folder)["results"]
    results["verdict"]["reason"] = HOSTILE
    results["processes"][HOSTILE] = results["processes"].pop("steadyd")
    usage = (folder / "usage.csv").read_text()
    quoted = f',"{HOSTILE}",'.replace('"x"', '""x""')
    (folder / "usage.csv").write_text(usage.replace(",steadyd,", quoted))
    edit(folder, results=results, engine=HOSTILE, runtime=HOSTILE, outcome="ok")
    edit(folder, settings={HOSTILE: HOSTILE}, machine={"cpu_model": "[bold]x[/bold]"})
    report = report_on([folder], tmp_path / "out")
    assert "[bold]x[/bold]" in report.printed
    assert "<script>alert" not in report.html
    assert HOSTILE in report.words


def test_with_many_runs_each_has_a_page_of_its_own(tmp_path: Path) -> None:
    made = [run(tmp_path / "logs", RunSpec(seed=seed, window_s=5.0)) for seed in (1, 2)]
    for number in range(MOST_INLINE):
        copy = tmp_path / "logs" / f"copy{number}"
        shutil.copytree(made[0], copy)
        edit(copy, run_id=f"another {number}")
    report = report_on(tmp_path / "logs", tmp_path / "out")
    links = re.findall(r'href="(runs/[^"]+)"', report.html)
    assert len(links) == MOST_INLINE + 2
    assert all("data-chart" in (report.folder / link).read_text() for link in links)
    assert len(report.html) < 500_000
