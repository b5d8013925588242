"""Tests of a report on many runs: numbers are those of the run folders; unrelated runs are kept
apart."""

import csv
import io
import json
import re
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from racetrack.cli import race
from racetrack.errors import UsageError
from racetrack.report import searches
from racetrack.report.charts import limits_chart
from racetrack.report.collect import Collection, Table, collect, tables
from racetrack.report.export import flat_record
from racetrack.report.figures import Grade
from racetrack.report.html import write
from racetrack.report.publish import gather
from racetrack.report.recorded import groups_of
from racetrack.report.tables import describe_answer, show
from racetrack.results.run import Machine, Window
from racetrack.results.search import LimitRun, RateTrial, SustainableRate
from tests.report.folders import RunSpec, edit, run, search
from tests.run_json import read_run

pytestmark = pytest.mark.slow

STEADY, SWIFT = RunSpec(cpu_pct=40), RunSpec(engine="swift", cpu_pct=80, rss_gib=3.0)
HOSTILE = '<script>alert("x")</script>&$\\alpha_{'


@dataclass(frozen=True)
class Report:
    """A report as a user gets it: printed tables and files."""

    folder: Path
    collection: Collection
    tables: tuple[Table, ...]
    printed: str

    @property
    def html(self) -> str:
        return (self.folder / "report.html").read_text()

    def charts(self, title: str) -> list[dict[str, Any]]:
        """Return the data of all charts with this title."""
        data = r'<script type="application/json">(.*?)</script>'
        charts = map(json.loads, re.findall(data, self.html, re.DOTALL))
        return [chart for chart in charts if chart["title"] == title]

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
        records: list[dict[str, Any]] = json.loads((self.folder / "report.json").read_text())[
            "runs"
        ]
        return records


def report_on(folders: Path | Sequence[Path], out: Path) -> Report:
    """Report on these folders, or on everything in one folder."""
    chosen = sorted(folders.iterdir()) if isinstance(folders, Path) else list(folders)
    collection = collect(chosen)
    made = tables(collection.runs)
    text = io.StringIO()
    show(Console(file=text, width=160), collection, made)
    write(out, collection, made)
    return Report(out, collection, made, text.getvalue())


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write two engines' runs, twice at two rates, and one run that lost pageviews."""
    folder = tmp_path_factory.mktemp("logs")
    for seed in (1, 2):
        for spec in (STEADY, SWIFT):
            for rate in (1_000, 4_000):
                run(folder, RunSpec(**{**vars(spec), "rate": rate, "seed": seed}))
    run(folder, RunSpec(lost=1, cpu_pct=500), "2026.03.22.06.00.00_UTC_lost")
    return folder


@pytest.fixture(scope="module")
def report(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Report:
    return report_on(logs, tmp_path_factory.mktemp("out"))


def tables_of(folder: Path) -> tuple[Table, ...]:
    return tables(collect(sorted(folder.iterdir())).runs)


def test_a_void_run_is_named_as_such_and_in_no_mean(tmp_path: Path) -> None:
    gate = {"NOISE_GATE": "true"}
    for foreign_pct, cpu_pct in ((1.0, 40.0), (30.0, 90.0)):
        run(tmp_path / "logs", RunSpec(foreign_pct=foreign_pct, cpu_pct=cpu_pct, settings=gate))
    report = report_on(tmp_path / "logs", tmp_path / "out")
    (table,) = report.tables
    (group,) = table.groups
    mean = group.means["cpu_mean_pct"]
    assert mean and mean.mean == pytest.approx(40, abs=2)
    (void,) = table.failed
    why = "Void: in the measured window other programs used 30.0 % of a core (more than 5 %)."
    assert void.why_not == why
    assert f"{void.tag}: {why}" in report.printed


def test_means_are_those_of_the_raw_files(logs: Path, report: Report) -> None:
    """Compute the means again from the kernel's account, without the report's code."""
    means = []
    for folder in sorted(logs.iterdir()):
        record = read_run(folder)
        if (record["engine"], record["arguments"]["pageviews_per_s"]) == ("swift", 4_000):
            window = record["measured"]["window"]
            found = re.findall(r"(\d+),swiftd,([\d.]+)", (folder / "usage.csv").read_text())
            used = {int(at_ms): float(cpu_s) for at_ms, cpu_s in found}
            seconds = (window["end_ms"] - window["start_ms"]) / 1000
            means.append(100 * (used[window["end_ms"]] - used[window["start_ms"]]) / seconds)
    assert len(means) == 2
    # Two repeats: t(0.975, 1 degree of freedom) = 12.706, standard error = half their distance.
    mean, half = statistics.fmean(means), 12.7062 * abs(means[0] - means[1]) / 2
    (group,) = [g for g in report.tables[0].groups if (g.label, g.rate) == ("swift", 4_000)]
    found_mean = group.means["cpu_mean_pct"]
    assert found_mean and found_mean.mean == pytest.approx(mean, abs=0.01)
    assert found_mean.half == pytest.approx(half, abs=0.1)
    assert f"{mean:,.1f} ± " in report.printed
    assert f"{mean:,.1f} ± " in report.words


def test_csv_and_json_hold_the_same_numbers_with_units(logs: Path, report: Report) -> None:
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
    plain = {"run_id", "tag", "engine", "replicas", "beside", "workload", "runtime", "machine"}
    plain |= {"load", "samples", "outcome", "verdict"}
    unit = re.compile(
        r".*_(s|ms|pct|gib|events|per_s|per_million)$|^views_(right|wrong|there|of_workload)$"
    )
    columns = rows[record["tag"]]
    assert [key for key in columns if key not in plain and not unit.match(key)] == []


def test_a_failed_run_is_listed_with_its_reason_and_in_no_mean(report: Report) -> None:
    table = report.tables[0]
    assert [r.tag for r in table.failed] == ["2026.03.22.06.00.00_UTC_lost"]
    assert all(len(group.runs) == 2 for group in table.groups)
    outcome = report.rows["2026.03.22.06.00.00_UTC_lost"]["outcome"]
    for text in (report.printed, report.html, outcome):
        assert "published pageviews differ" in text


def test_cpu_is_split_into_base_and_work(report: Report) -> None:
    """These engines use the same CPU at every rate, so all of it is base load."""
    for label, cpu_pct in (("steady", STEADY.cpu_pct), ("swift", SWIFT.cpu_pct)):
        cost = report.tables[0].costs[label]
        assert abs(cost.base_pct - cpu_pct) <= cost.base_half_pct
        assert abs(cost.per_million_s) <= cost.per_million_half_s
        base = f"{cost.base_pct:,.1f} ± {cost.base_half_pct:,.1f} % of a core"
        assert f"CPU of {label}: {base} at rate 0 (extrapolated), plus" in report.printed
        assert f"CPU of {label}: " in report.html


def test_engines_are_compared_at_the_same_rate_and_the_answer_comes_first(report: Report) -> None:
    cpu = [c for c in report.tables[0].comparisons if c.key == "cpu_mean_pct"]
    assert [(c.rate, c.of, c.to) for c in cpu] == [
        (1_000, "swift", "steady"),
        (4_000, "swift", "steady"),
    ]
    assert all(c.ratio and 1.8 < c.ratio.ratio < 2.2 for c in cpu)
    best = "By CPU mean, steady was the cheapest (% of a core): steady"
    first = "At 4,000 pageviews/s steady and swift kept up."
    assert report.words.index(first) < report.words.index(best) < report.words.index("warning")


def test_an_engine_that_fell_behind_is_not_compared_and_in_no_ranking(tmp_path: Path) -> None:
    for seed in (1, 2):
        run(tmp_path, RunSpec(seed=seed))
        run(tmp_path, RunSpec(engine="swift", cpu_pct=1.0, seed=seed, leak=0.05))
    (table,) = tables_of(tmp_path)
    assert table.comparisons and all(c.ratio is None for c in table.comparisons)
    assert {c.why_not for c in table.comparisons} == {"swift: fell behind in 2 of 2"}
    (answer,) = describe_answer(table)
    assert answer.startswith("At 4,000 pageviews/s steady kept up; swift: fell behind")


def test_runtimes_and_machines_have_tables_of_their_own(tmp_path: Path) -> None:
    run(tmp_path, RunSpec())
    run(tmp_path, RunSpec(runtime="compose", engine="swift"))
    run(tmp_path, RunSpec(runtime="compose", settings={"AIRGAP": "true"}))
    edit(run(tmp_path, RunSpec()), machine={"cpu_model": "other", "cores": 1, "memory_gib": 1})
    edit(run(tmp_path, RunSpec()), data_in_memory=False)
    assert [(t.runtime, len(t.groups), len(t.comparisons)) for t in tables_of(tmp_path)] == [
        ("native", 1, 0),
        ("compose", 1, 0),
        ("compose, images made here", 1, 0),
        ("native", 1, 0),
        ("native, data on disk", 1, 0),
    ]


def test_engines_that_shared_the_machine_have_a_table_of_their_own(tmp_path: Path) -> None:
    for spec in (STEADY, SWIFT):
        run(tmp_path, spec)
        other = {"steady": "swift", "swift": "steady"}[spec.engine]
        edit(run(tmp_path, spec), beside=[other])
    collection = collect(sorted(tmp_path.iterdir()))
    alone, together = tables(collection.runs)
    assert [table.labels for table in (alone, together)] == [("steady", "swift")] * 2
    assert "steady+swift on one machine" in together.runtime
    assert "on one machine" not in alone.runtime
    (caveat,) = [w for w in together.groups[0].runs[0].warnings if "read the same input" in w]
    assert "swift" in caveat
    groups = groups_of([flat_record(run) for run in collection.runs])
    assert {engine for engine, _ in groups} == {
        *("steady", "swift", "steady beside swift", "swift beside steady")
    }
    used = [run.tag for of in gather(collect([tmp_path])) for run in of.runs]
    assert used == [run.tag for run in collection.runs if not run.record.beside]


def test_only_runs_with_the_same_settings_windows_load_and_faults_are_repeats(
    tmp_path: Path,
) -> None:
    """Runs are still repeats if they differ in ports, or if windows at other rates have other
    lengths."""
    run(tmp_path, RunSpec())
    run(tmp_path, RunSpec(settings={"KAFKA_HEAP": "8g"}))
    run(tmp_path, RunSpec(settings={"CONNECT_PORT": "10001"}))
    labels = {group.label: len(group.runs) for group in tables_of(tmp_path)[0].groups}
    assert labels == {"steady [kafka_heap 1g]": 2, "steady [kafka_heap 8g]": 1}
    run(tmp_path, RunSpec(rate=100, window_s=12.0))
    variants: list[dict[str, Any]] = [
        {"wait_s": 99.0},
        {"warm_up_s": 60.0},
        {"load": "spike 4k 8k 5s"},
        {"faults": ("kill:debezium@15s",)},
    ]
    for number, arguments in enumerate(variants, start=4):
        run(tmp_path, RunSpec(arguments=arguments))
        assert len(tables_of(tmp_path)[0].groups) == number


def test_a_changing_load_and_a_fault_are_in_the_report(tmp_path: Path) -> None:
    spike = run(tmp_path / "logs", RunSpec(arguments={"load": "spike 4k 8k 5s"}))
    fault = run(tmp_path / "logs", RunSpec(arguments={"faults": ("kill:debezium@15s",)}))
    (back,) = read_run(fault)["results"]["faults"]
    assert back["purchases"]["after_s"] == pytest.approx(5.0, abs=0.2)
    assert back["purchases"]["worst_ms"] == pytest.approx(4_700, abs=400)
    assert back["pageviews"]["after_s"] == 0
    assert read_run(spike)["results"]["load"]["max_backlog_events"] > 0
    report = report_on(tmp_path / "logs", tmp_path / "out")
    assert report.rows[spike.name]["load"] == "spike 4k 8k 5s"
    assert float(report.rows[spike.name]["after_peak_s"]) == 0
    marks = [mark["name"] for chart in report.charts("Lag") for mark in chart["marks"]]
    assert marks == ["spike 4k 8k 5s", "kill:debezium@15s"]


def test_a_sweep_brings_its_runs_its_missing_ones_and_a_chart(tmp_path: Path) -> None:
    sweep = tmp_path / "s_UTC_sweep"
    sweep.mkdir()
    tags = {
        value: run(tmp_path, RunSpec(settings={"UPDATES_PER_SECOND": value})).name
        for value in ("500", "1000")
    }
    planned = {"engine": "steady", "pageviews_per_s": 4_000, "repeat": 1}
    runs = [{**planned, "value": value, "tag": tag} for value, tag in tags.items()]
    runs += [{**planned, "value": "9", "tag": tag} for tag in (None, "../../etc")]
    plan = {"schema_version": 1, "kind": "sweep", "vary": "UPDATES_PER_SECOND", "values": []}
    (sweep / "sweep.json").write_text(json.dumps({**plan, "runs": runs}))
    report = report_on([sweep, tmp_path / tags["500"]], tmp_path / "out")
    assert {r.tag for r in report.collection.runs} == set(tags.values())
    assert len(report.collection.missing) == 2
    for title in ("CPU user", "Lag p99"):
        (chart,) = report.charts(f"{title} against updates_per_second")
        assert [line["x"] for line in chart["lines"]] == [[500.0, 1000.0]]


def test_searches_have_a_table_for_each_place_and_say_how_far_they_agree(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    for per_s in (95, 105):
        search(logs, "steady", per_s)
    other = Machine(cpu_model="A", cores=4, memory_gib=8)
    out_of_time = "no time for more rate trials within 15 min"
    search(logs, "steady", 50_000, machine=other, outcome=out_of_time)
    report = report_on(sorted(logs.glob("*_limit")), tmp_path / "out")
    assert "Limits: native: A, 4 cores, 8 GiB" in report.printed
    agreement = "steady: 2 searches: capacity 95 to 105, half-range 5.0 % of midpoint"
    for text in (report.printed, report.words):
        assert agreement in text
        assert all(
            each in text
            for each in ("50,000 (47,500 to 52,500)", "45,000 (not 47,500)", "no time for more")
        )
    assert report.html.count('<figure class="dots">') == 2


def test_every_search_has_a_point_of_its_own_and_engines_are_ranked(tmp_path: Path) -> None:
    capacities = {"steady": (41_000, 46_000, 43_000), "swift": (118_000, 121_000, 113_000)}
    for engine, of in capacities.items():
        for per_s in of:
            search(tmp_path, engine, per_s)
        search(tmp_path, engine, 1_000, capacity=None, sustainable=(), outcome="its heap is full")
    collection = collect([tmp_path])
    (limits,) = collection.limits_by_place.values()
    chart = limits_chart(limits)
    assert chart and chart.rows == ("steady", "swift")
    assert [line.name for line in chart.lines] == [
        "capacity (95 % interval)",
        "sustained within 2 s",
        "sustained within 5 s",
    ]
    assert sorted(chart.lines[0].x) == sorted(x for each in capacities.values() for x in each)
    for line in chart.lines:
        assert len(set(line.y)) == len(line.y) == 6
        assert [round(y) for y in line.y] == [0, 0, 0, 1, 1, 1]
    ranking = searches.describe_ranking(collection.limits)
    assert "swift 117,333 ± " in ranking and "swift goes furthest" in ranking


def test_capacities_that_overlap_have_no_winner(tmp_path: Path) -> None:
    for engine, of in {"steady": (40_000, 44_000), "swift": (41_000, 45_000)}.items():
        for per_s in of:
            search(tmp_path, engine, per_s)
    answer = searches.describe_ranking(collect([tmp_path]).limits)
    assert answer.startswith("None clearly goes furthest. Capacity, pageviews/s: swift 43,000 ± ")


def test_a_bound_shorter_than_two_update_intervals_is_reported_as_the_effective_one(
    tmp_path: Path,
) -> None:
    rows = [
        SustainableRate(bound_ms=bound_ms, sustained_per_s=40_000, failed_per_s=57_000)
        for bound_ms in (1_000, 2_000)
    ]
    trial = RateTrial(
        window=Window(start_ms=1_000, end_ms=91_000),
        counted_before=9,
        bound_ms=2_020,
        per_s=40_000,
        lag_p50_ms=530,
        lag_p99_ms=1_060,
        handed_over_per_s=40_000,
        ended_early=False,
    )
    runs = (LimitRun(tag="one", update_interval_ms=1_010, trials=(trial,)),)
    folder = search(tmp_path, "steady", 60_000, sustainable=tuple(rows), runs=runs)
    (found,) = (limit.record for limit in collect([folder]).limits)
    assert (
        "within 2.0 s, two update intervals (requested: 1 s), at 40,000 ("
        in (searches.describe_search(found)[-2])
    )
    assert searches.describe_sustained(found, 1_000) == "40,000 (not 57,000), within 2.0 s"
    assert searches.describe_sustained(found, 2_000) == "40,000 (not 57,000)"
    assert searches.describe_sustained(found, 5_000) == "n/a"


def test_a_search_of_another_schema_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "old_limit").mkdir()
    (tmp_path / "old_limit" / "limit.json").write_text('{"schema_version": 1, "kind": "limit"}')
    with pytest.raises(UsageError, match=r"has schema version 1; this Racetrack reads \d+\."):
        collect([tmp_path / "old_limit"])


def test_a_search_with_another_load_than_pageviews_is_refused(tmp_path: Path) -> None:
    folder = search(tmp_path, "steady", 50_000)
    record = json.loads((folder / "limit.json").read_text())
    (folder / "limit.json").write_text(json.dumps({**record, "of": "purchases"}))
    with pytest.raises(UsageError, match="of: "):
        collect([folder])


def test_runs_in_a_folder_are_collected_without_copies_and_other_schema_versions(
    tmp_path: Path,
) -> None:
    logs = tmp_path / "logs"
    made = [run(logs, RunSpec(seed=seed)) for seed in (1, 2)]
    other_version = run(logs, RunSpec(seed=3))
    edit(other_version, schema_version=2)
    (logs / "notes").mkdir()
    copy = logs / "a copy"
    shutil.copytree(made[0], copy)
    report = report_on([made[0], logs], tmp_path / "out")
    assert [one.path for one in report.collection.runs] == made
    assert f"left out: {copy} is a copy of {made[0]}" in report.printed
    assert f"{copy} is a copy of" in report.words
    assert any(
        str(other_version) in why and "schema version 2" in why
        for why in report.collection.left_out
    )
    with pytest.raises(UsageError, match="schema version 2"):
        collect([other_version])


def test_only_changed_settings_are_shown(tmp_path: Path) -> None:
    report = report_on([run(tmp_path, RunSpec(settings={"KAFKA_HEAP": "8g"}))], tmp_path / "out")
    assert "Changed settings kafka_heap 8g" in report.words
    assert "loadgen_acks" not in report.words


def test_missing_raw_files_are_named_with_the_figures_that_need_them(tmp_path: Path) -> None:
    folder = run(tmp_path, RunSpec())
    for name in ("curves.csv", "usage.csv", "steady_sample_dt.log"):
        (folder / name).unlink()
    report = report_on([folder], tmp_path / "out")
    assert "curves.csv (lag, throughput and verdict)" in report.printed
    assert "usage.csv (CPU and memory)" in report.printed
    assert "arrivals.csv" not in report.printed
    assert "Raw files are missing: curves.csv" in report.words


def test_an_unfinished_run_is_read(tmp_path: Path) -> None:
    folder = run(tmp_path, RunSpec())
    kept = {key: read_run(folder)[key] for key in ("schema_version", "run_id", "tag", "engine")}
    (folder / "run.json").write_text(json.dumps(kept))
    assert "unfinished" in report_on([folder], tmp_path / "out").words


def test_warnings_come_from_the_data(tmp_path: Path) -> None:
    short = run(tmp_path, RunSpec(window_s=8.0))
    other = RunSpec(
        engine="swift",
        runtime="compose",
        caveats=("Only an image.",),
        busy_cores=1.9,
        foreign_pct=0.0,
    )
    extended = RunSpec(
        window_s=26.0, arguments={"decide_within_s": 60.0}
    )  # judged over more than 30 s
    first, second, third = (
        collect([path]).runs[0] for path in (short, run(tmp_path, other), run(tmp_path, extended))
    )
    assert any("Short window, 8 s: under 30 s it may not" in each for each in first.warnings)
    assert any("Apache Kafka stands in for Redpanda" in each for each in first.warnings)
    assert "more than 90 % of all cores' time was used" in " ".join(second.warnings)
    assert "Short window" in " ".join(first.graded[Grade.DOUBTFUL])
    assert "Apache Kafka" in " ".join(first.graded[Grade.COMPARING])
    assert "Only an image." in second.warnings and "Only an image." not in first.warnings
    assert not any("Apache Kafka" in each for each in second.warnings)
    for found in (second, third):
        assert not any("Short window" in each for each in found.warnings)


@pytest.mark.parametrize(("top_share", "warns"), [(0.5, True), (0.9, False), (1.3, True)])
def test_top_is_compared_with_the_kernels_account(
    tmp_path: Path, top_share: float, warns: bool
) -> None:
    (found,) = collect([run(tmp_path, RunSpec(top_share=top_share))]).runs
    warnings = [w for w in found.graded[Grade.WRONG] if w.startswith("CPU of steadyd: top shows")]
    assert bool(warnings) is warns
    if warns:
        shown = re.search(r"([\d.]+) % of a core, the kernel's account 40\.0 %", warnings[0])
        assert shown and float(shown[1]) == pytest.approx(40 * top_share, rel=0.05)


def test_an_engine_that_ran_elsewhere_has_no_cost(tmp_path: Path) -> None:
    """Figures that are unknown for such an engine are blank, and it is not compared by them."""
    logs = tmp_path / "logs"
    for seed in (1, 2):
        run(logs, RunSpec(seed=seed))
        run(logs, RunSpec(engine="swift", elsewhere=True, seed=seed))
        run(logs, RunSpec(engine="swift", elsewhere=True, seed=seed, rate=1_000))
    report = report_on(logs, tmp_path / "out")
    for one in (r for r in report.collection.runs if r.engine == "swift"):
        for key in ("cpu_mean_pct", "rss_max_gib", "cpu_s_per_million", "cpu_user_pct"):
            assert one.figures[key] is None
        assert one.figures["lag_p50_ms"] is not None
        assert one.figures["broker_cpu_mean_pct"] is not None
        assert any("CPU and memory were not measured" in warning for warning in one.warnings)
    (table,) = report.tables
    compared = {c.key: (c.ratio, c.why_not) for c in table.comparisons}
    assert compared["cpu_mean_pct"] == (None, "not measured in every run")
    assert compared["lag_p50_ms"][0] is not None
    assert "not compared (not measured in every run)" in report.printed
    costs = {row["cpu_mean_pct"] for row in report.rows.values() if row["engine"] == "swift"}
    assert costs == {""}


def test_a_window_without_an_update_leaves_figures_blank_but_has_a_verdict(tmp_path: Path) -> None:
    folder = run(tmp_path / "logs", RunSpec(silent=True))
    record = read_run(folder)
    assert (record["outcome"], record["results"]["verdict"]["kind"]) == ("ok", "fell behind")
    report = report_on([folder], tmp_path / "out")
    (row,), (as_json,) = report.rows.values(), report.records
    for key in ("dt_p50_ms", "processed_pageviews_per_s", "cpu_s_per_million"):
        assert (row[key], as_json[key]) == ("", None), key
    assert float(row["lag_p50_ms"]) > 10_000
    assert "fell behind" in report.printed
    assert "Fell behind: no update of the engine in 30 s" in report.words
    assert "nan" not in report.words.lower().split()


def test_view_lags_and_answers_to_reads_are_shown(tmp_path: Path) -> None:
    path = run(tmp_path / "logs", RunSpec(view_delay_ms=1_250, read_ms=300))
    report = report_on([path], tmp_path / "out")
    names = ("item_summary.orders", "profile_views_enriched.received_at")
    for name in (*names, "top_viewed_items", "item_summary by item_id"):
        assert f'<th scope="row">{name}</th>' in report.html
    row = report.rows[path.name]
    assert float(row["view_lag_p99_ms"]) == pytest.approx(1_250, abs=20)
    assert float(row["read_time_p99_ms"]) == pytest.approx(300, abs=2)
    # An age may be too low by up to 200 ms, the interval between the tracer events of one view.
    assert 1_340 <= float(row["read_age_p99_ms"]) <= 1_552


def test_the_page_needs_no_other_file(report: Report) -> None:
    own = re.sub(r"/\*!.*?\*/", "", report.html)  # uPlot's licence has a URL
    assert re.findall(r"https?://|@import|<link|<img|<iframe|\ssrc=|fetch\(", own) == []
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


def test_the_command_writes_its_files_and_refuses_other_folders(tmp_path: Path) -> None:
    folder = run(tmp_path, RunSpec())
    done = CliRunner().invoke(race, ["report", str(folder)])
    assert done.exit_code == 0, done.output
    assert "kept up" in done.output
    made = {path.name for path in (folder / "report").iterdir()}
    assert made == {"report.html", "report.csv", "report.json"}
    refused = CliRunner().invoke(race, ["report", str(folder / "stack")])
    assert refused.exit_code == 2 and "no folder with one" in refused.output
