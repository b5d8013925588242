"""A report of many runs: its numbers are those of the run folders, and what does not belong
together is kept apart."""

import csv
import io
import json
import re
import shutil
import statistics
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from racetrack.cli import race
from racetrack.errors import UsageError
from racetrack.report import searches
from racetrack.report.baseline import groups_of
from racetrack.report.charts import limits_chart, run_charts
from racetrack.report.collect import Table, collect, tables
from racetrack.report.export import flat_record
from racetrack.report.figures import Grade
from racetrack.report.material import gather
from racetrack.report.tables import describe_answer, show
from racetrack.report.write import write
from racetrack.results.reference import published
from racetrack.results.search import LimitRecord
from tests.report.folders import RunSpec, edit, run, search
from tests.run_json import read_run

pytestmark = pytest.mark.slow

STEADY, SWIFT = RunSpec(cpu_pct=40), RunSpec(engine="swift", cpu_pct=80, rss_gib=3.0)
HOSTILE = '<script>alert("x")</script>&$\\alpha_{'


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two engines, two rates, two repeats; and one run that lost pageviews."""
    folder = tmp_path_factory.mktemp("logs")
    for seed in (1, 2):
        for spec in (STEADY, SWIFT):
            for rate in (1_000, 4_000):
                run(folder, RunSpec(**{**vars(spec), "rate": rate, "seed": seed}))
    run(folder, RunSpec(lost=1, cpu_pct=500), "2026.03.22.06.00.00_UTC_lost")
    return folder


@pytest.fixture(scope="module")
def out(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("out")
    collection = collect(sorted(logs.iterdir()))
    write(where, collection, tables(collection.runs), published())
    return where


def test_a_void_run_is_named_as_such_and_in_no_mean(tmp_path: Path) -> None:
    gate = {"NOISE_GATE": "true"}
    for foreign_pct, cpu_pct in ((1.0, 40.0), (30.0, 90.0)):
        run(tmp_path, RunSpec(foreign_pct=foreign_pct, cpu_pct=cpu_pct, settings=gate))
    folders = sorted(tmp_path.iterdir())
    (table,) = tables(collect(folders).runs)
    (group,) = table.groups
    mean = group.means["cpu_mean_pct"]
    assert mean and mean.mean == pytest.approx(40, abs=2)
    assert group.runs[0].figures["foreign_cpu_pct"] == pytest.approx(1.0, abs=0.05)
    (void,) = table.failed
    why = "Void: in the measured window other programs used 30.0 % of a core (more than 5 %)."
    assert void.why_not == why
    assert void.record.results
    assert f"{void.tag}: {why}" in text_of((table,), folders)


def test_with_the_gate_off_the_noise_is_a_warning(tmp_path: Path) -> None:
    path = run(tmp_path, RunSpec(foreign_pct=30.0, settings={"NOISE_GATE": "false"}))
    (found,) = collect([path]).runs
    assert found.outcome == "ok"
    assert any("other programs used 30.0 % of a core" in told for told in found.warnings)


def text_of(made: tuple[Table, ...], folders: list[Path], with_2022: bool = False) -> str:
    screen = Console(file=io.StringIO(), width=160)
    show(screen, collect(folders), made, published() if with_2022 else None)
    told = screen.file
    assert isinstance(told, io.StringIO)
    return told.getvalue()


def of(folder: Path) -> tuple[Table, ...]:
    return tables(collect(sorted(folder.iterdir())).runs)


def words(page: str) -> str:
    """What a reader of the page sees, without charts and script."""
    body = re.sub(r"<(script|svg|style).*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", body)))


def test_means_are_those_of_the_raw_files(logs: Path, out: Path) -> None:
    """Once more from the kernel's account, past all code that the report uses."""
    means = []
    for folder in sorted(logs.iterdir()):
        told = read_run(folder)
        if (told["engine"], told["asked"]["pageviews_per_s"]) == ("swift", 4_000):
            window = told["measured"]["window"]
            lines = (folder / "usage.csv").read_text()
            found = re.findall(r"(\d+),swiftd,([\d.]+)", lines)
            used = {int(at_ms): float(cpu_s) for at_ms, cpu_s in found}
            first, last = used[window["start_ms"]], used[window["end_ms"]]
            seconds = (window["end_ms"] - window["start_ms"]) / 1000
            means.append(100 * (last - first) / seconds)
    assert len(means) == 2
    # Two repeats: t(0.975, 1 degree of freedom) = 12.706, standard error = half their distance.
    mean, half = statistics.fmean(means), 12.7062 * abs(means[0] - means[1]) / 2
    (group,) = [g for g in of(logs)[0].groups if (g.label, g.rate) == ("swift", 4_000)]
    found_mean = group.means["cpu_mean_pct"]
    assert found_mean and found_mean.mean == pytest.approx(mean, abs=0.01)
    assert found_mean.half == pytest.approx(half, abs=0.1)
    cell = f"{mean:,.1f} ± "
    assert cell in text_of(of(logs), sorted(logs.iterdir()))
    assert cell in words((out / "report.html").read_text())


def test_csv_and_json_hold_the_same_numbers_with_units(logs: Path, out: Path) -> None:
    rows = list(csv.DictReader((out / "report.csv").open()))
    told = json.loads((out / "report.json").read_text())["runs"]
    assert len(rows) == len(told) == 9
    for row, held in zip(rows, told, strict=True):
        results = read_run(logs / row["tag"])["results"]
        engine = "swiftd" if row["engine"] == "swift" else "steadyd"
        process = results["processes"][engine]
        for one in (row, held):
            assert float(one["cpu_mean_pct"]) == process["cpu_mean_pct"]
            assert float(one["rss_max_gib"]) == process["rss_max"]["gib"]
            assert float(one["cpu_s_per_million"]) == process["cpu_s_per_million"]
            assert float(one["lag_p50_ms"]) == results["verdict"]["measured"]["lag_p50_ms"]
    plain = {"run_id", "tag", "engine", "beside", "workload", "runtime", "machine"}
    plain |= {"load", "samples", "outcome", "verdict"}
    unit = re.compile(
        r".*_(s|ms|pct|gib|events|per_s|per_million)$|^views_(right|wrong|there|of_workload)$"
    )
    assert [key for key in rows[0] if key not in plain and not unit.match(key)] == []


def test_a_run_that_is_not_ok_is_told_apart_and_in_no_mean(logs: Path, out: Path) -> None:
    table = of(logs)[0]
    assert [r.tag for r in table.failed] == ["2026.03.22.06.00.00_UTC_lost"]
    assert all(len(group.runs) == 2 for group in table.groups)
    for told in (text_of(of(logs), sorted(logs.iterdir())), (out / "report.html").read_text()):
        assert "published pageviews differ" in told
    rows = {row["tag"]: row for row in csv.DictReader((out / "report.csv").open())}
    assert "published pageviews differ" in rows["2026.03.22.06.00.00_UTC_lost"]["outcome"]


def test_base_load_and_work_are_told_apart(logs: Path, out: Path) -> None:
    """Made-up engines use the same CPU at every rate: all of it is base load."""
    (table,) = of(logs)
    text = text_of((table,), sorted(logs.iterdir()))
    for label, cpu_pct in (("steady", STEADY.cpu_pct), ("swift", SWIFT.cpu_pct)):
        cost = table.costs[label]
        assert abs(cost.base_pct - cpu_pct) <= cost.base_half_pct
        assert abs(cost.per_million_s) <= cost.per_million_half_s
        base = f"{cost.base_pct:,.1f} ± {cost.base_half_pct:,.1f} % of a core"
        assert f"CPU of {label}: {base} at rate 0 (extrapolated), plus" in text
        assert f"CPU of {label}: " in (out / "report.html").read_text()


def test_two_engines_are_compared_where_both_can_be(logs: Path) -> None:
    cpu = [c for c in of(logs)[0].comparisons if c.key == "cpu_mean_pct"]
    assert [(c.rate, c.of, c.to) for c in cpu] == [
        (1_000, "swift", "steady"),
        (4_000, "swift", "steady"),
    ]
    assert all(c.ratio and 1.8 < c.ratio.ratio < 2.2 for c in cpu)


def test_who_fell_behind_is_not_compared(tmp_path: Path) -> None:
    for seed in (1, 2):
        run(tmp_path, RunSpec(seed=seed))
        run(tmp_path, RunSpec(engine="swift", seed=seed, leak=0.05))
    told = of(tmp_path)[0].comparisons
    assert told and all(c.ratio is None for c in told)
    assert {c.why_not for c in told} == {"swift: fell behind in 2 of 2"}


def test_alike_engines_show_no_difference(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        run(tmp_path, RunSpec(seed=seed))
        run(tmp_path, RunSpec(engine="swift", seed=seed + 10))
    assert "no difference shown" in text_of(of(tmp_path), sorted(tmp_path.iterdir()))


def test_runtimes_and_machines_have_tables_of_their_own(tmp_path: Path) -> None:
    run(tmp_path, RunSpec())
    run(tmp_path, RunSpec(runtime="compose", engine="swift"))
    run(tmp_path, RunSpec(runtime="compose", settings={"AIRGAP": "true"}))
    edit(run(tmp_path, RunSpec()), machine={"cpu_model": "other", "cores": 1, "memory_gib": 1})
    edit(run(tmp_path, RunSpec()), data_in_memory=False)
    made = of(tmp_path)
    assert [(t.runtime, len(t.groups), len(t.comparisons)) for t in made] == [
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
    used = [run.tag for of in gather([tmp_path]) for run in of.runs]
    assert used == [run.tag for run in collection.runs if not run.record.beside]


def test_runs_of_other_settings_or_windows_are_no_repeats(tmp_path: Path) -> None:
    run(tmp_path, RunSpec())
    run(tmp_path, RunSpec(settings={"KAFKA_HEAP": "8g"}))
    run(tmp_path, RunSpec(settings={"CONNECT_PORT": "10001"}))
    labels = {group.label: len(group.runs) for group in of(tmp_path)[0].groups}
    assert labels == {"steady [kafka_heap 1g]": 2, "steady [kafka_heap 8g]": 1}
    run(tmp_path, RunSpec(asked={"wait_s": 99.0}))
    assert len(of(tmp_path)[0].groups) == 3
    run(tmp_path, RunSpec(asked={"warm_up_s": 60.0}))
    assert len(of(tmp_path)[0].groups) == 4


def test_other_windows_at_another_rate_are_no_other_engine(tmp_path: Path) -> None:
    run(tmp_path, RunSpec())
    run(tmp_path, RunSpec(rate=100, window_s=12.0))
    run(tmp_path, RunSpec())
    groups = [(group.label, group.rate, len(group.runs)) for group in of(tmp_path)[0].groups]
    assert groups == [("steady", 100, 1), ("steady", 4_000, 2)]


def _sweep(folder: Path, runs: list[dict[str, Any]], **more: Any) -> Path:
    (folder / "s_UTC_sweep").mkdir()
    plan = {"schema_version": 1, "kind": "sweep", "vary": None, "values": [], "runs": runs}
    (folder / "s_UTC_sweep" / "sweep.json").write_text(json.dumps({**plan, **more}))
    return folder / "s_UTC_sweep"


def _planned(tag: str | None, value: str | None = None) -> dict[str, Any]:
    return {"engine": "steady", "pageviews_per_s": 4_000, "repeat": 1, "value": value, "tag": tag}


def test_a_sweep_brings_its_runs_and_tells_what_is_missing(tmp_path: Path) -> None:
    done = run(tmp_path, RunSpec())
    sweep = _sweep(tmp_path, [_planned(done.name), _planned(None), _planned("../../etc")])
    collection = collect([sweep, done])
    assert [r.tag for r in collection.runs] == [done.name]
    assert len(collection.missing) == 2


def test_what_a_sweep_varied_is_charted(tmp_path: Path) -> None:
    runs = [
        _planned(run(tmp_path, RunSpec(settings={"UPDATES_PER_SECOND": value})).name, value)
        for value in ("500", "1000")
    ]
    collection = collect([_sweep(tmp_path, runs, vary="UPDATES_PER_SECOND")])
    write(tmp_path / "out", collection, tables(collection.runs), None)
    plots = {path.name for path in (tmp_path / "out" / "plots").iterdir()}
    assert "table1_cpu_user_pct_against_updates_per_second.svg" in plots


def test_limits_stand_with_their_outcome(tmp_path: Path) -> None:
    window = {"start_ms": 1_000, "end_ms": 151_000}
    for runtime, cores in (("native", 2), ("native", 4), ("../compose", 2)):
        folder = tmp_path / f"{len(runtime)}{cores}_UTC_steady_limit"
        folder.mkdir()
        limit = {
            "schema_version": 4,
            "kind": "limit",
            "engine": "steady",
            "runtime": runtime,
            "machine": {"cpu_model": "A", "cores": cores, "memory_gib": 8},
            "outcome": "no time for more rate trials within 15 min",
            "capacity": {"per_s": 50_000.4, "low": 48_000, "high": 52_000},
            "sustainable": [
                {
                    "bound_ms": 2_000,
                    "held_per_s": 41_000,
                    "failed_per_s": 45_000,
                },
                {
                    "bound_ms": 5_000,
                    "held_per_s": None,
                    "failed_per_s": 40_000,
                },
            ],
            "runs": [
                {
                    "tag": "gone",
                    "warm_up_s": 31.0,
                    "is_warm": False,
                    "update_interval_ms": 1_000,
                    "saturation": [
                        {
                            "window": window,
                            "counted_before": 20_000_000,
                            "batches_per_s": [49_000, 51_000],
                            "backlog_min_s": 9,
                            "backlog_max_s": 21,
                            "idle_share": 0,
                            "handed_over_per_s": 50_500,
                            "cpu_s_per_million": {"mysql": 0.1, "steady": 24.0, "broker": 6.04},
                        }
                    ],
                    "trials": [
                        {
                            "window": window,
                            "counted_before": 9_000_000,
                            "bound_ms": 5_000,
                            "per_s": 45_000,
                            "lag_p50_ms": 700,
                            "lag_p99_ms": 6_543,
                            "handed_over_per_s": 45_000,
                            "ended_early": True,
                        }
                    ],
                }
            ],
            "minutes": 12.5,
        }
        (folder / "limit.json").write_text(json.dumps(limit))
    folders = sorted(tmp_path.glob("*_limit"))
    collection = collect(folders)
    told = text_of(tables(collection.runs), folders)
    for place in ("native: A, 2 cores", "native: A, 4 cores", "../compose: A, 2 cores"):
        assert f"Limits: {place}, 8 GiB" in told
    found = ("50,000 (48,000 to 52,000)", "41,000 (not 45,000)", "below 40,000", "no time for more")
    assert all(words in told for words in found), told
    write(tmp_path / "out", collection, tables(collection.runs), None)
    page = words((tmp_path / "out" / "report.html").read_text())
    assert all(
        words in page
        for words in (
            *found,
            "p99 6,543 ms",
            "9 to 21 s; CPU-s per million: steady 24.0, broker 6.04; all 1.5 cores",
            "warmed up for 31 s, CPU per event not flat",
        )
    )
    assert len(list((tmp_path / "out" / "plots").glob("limits*.svg"))) == 3


def test_how_far_searches_agree_stands_below_them(tmp_path: Path) -> None:
    limit = {
        "schema_version": 4,
        "kind": "limit",
        "engine": "steady",
        "runtime": "native",
        "machine": {"cpu_model": "A", "cores": 2, "memory_gib": 8},
        "outcome": "ok",
    }
    for number, per_s in enumerate((95, 105)):
        folder = tmp_path / f"{number}_limit"
        folder.mkdir()
        capacity = {"per_s": per_s, "low": per_s, "high": per_s}
        (folder / "limit.json").write_text(json.dumps({**limit, "capacity": capacity}))
    folders = sorted(tmp_path.glob("*_limit"))
    collection = collect(folders)
    write(tmp_path / "out", collection, tables(collection.runs), None)
    agreement = "steady: 2 searches: capacity 95 to 105, half-range 5.0 % of midpoint"
    assert agreement in text_of(tables(collection.runs), folders)
    assert agreement in words((tmp_path / "out" / "report.html").read_text())
    chart = (tmp_path / "out" / "plots" / "limits1.svg").read_text()
    assert chart.count(">steady</text>") == 1  # one engine has one row


def test_every_search_has_a_point_of_its_own_inside_the_axes(tmp_path: Path) -> None:
    """Of a search without a rate, too, the others keep their places."""
    capacities = {"steady": (41_000, 46_000, 43_000), "swift": (118_000, 121_000, 113_000)}
    for engine, of in capacities.items():
        for per_s in of:
            search(tmp_path, engine, per_s)
        search(tmp_path, engine, 1_000, capacity=None, sustainable=(), outcome="its heap is full")
    collection = collect([tmp_path])
    (limits,) = collection.limits_by_place.values()
    chart = limits_chart(limits, 1)
    assert chart and chart.rows == ("steady", "swift")
    capacity, *sustained = chart.lines
    assert [line.name for line in chart.lines] == [
        "capacity (95 % interval)",
        "sustained within 2 s",
        "sustained within 5 s",
    ]
    assert sorted(capacity.x) == sorted(of for each in capacities.values() for of in each)
    for line in (capacity, *sustained):
        assert len(set(line.y)) == len(line.y) == 6
        assert all(-0.5 < y < len(chart.rows) - 0.5 for y in line.y)
        assert [round(y) for y in line.y] == [0, 0, 0, 1, 1, 1]
    assert capacity.half is not None and capacity.half[0] == pytest.approx(0.05 * 41_000)
    assert "last point" not in chart.meaning
    write(tmp_path / "out", collection, tables(collection.runs), None)
    page = (tmp_path / "out" / "report.html").read_text()
    shown = re.search(r"Capacity, pageviews/s: swift 117,333 ± [\d,]+ \(3 searches\)", words(page))
    assert shown and "swift goes furthest" in page
    tops = [float(at) for at in re.findall(r'class="dot"[^>]*top:([\d.]+)%', page)]
    lefts = [float(at) for at in re.findall(r'class="dot"[^>]*left:([\d.]+)%', page)]
    assert len(tops) == 18 and all(0 < at < 100 for at in (*tops, *lefts))


def test_capacities_that_overlap_have_no_winner(tmp_path: Path) -> None:
    for engine, of in {"steady": (40_000, 44_000), "swift": (41_000, 45_000)}.items():
        for per_s in of:
            search(tmp_path, engine, per_s)
    answer = searches.describe_ranking(collect([tmp_path]).limits)
    assert answer.startswith("None clearly goes furthest. Capacity, pageviews/s: swift 43,000 ± ")


def test_the_answer_comes_first(logs: Path, out: Path) -> None:
    page = words((out / "report.html").read_text())
    best = "By CPU mean, steady was the cheapest (% of a core): steady"
    first = "At 4,000 pageviews/s steady and swift kept up."
    assert page.index(first) < page.index(best) < page.index("warning")
    who = tables(collect(sorted(logs.iterdir())).runs)[0]
    assert describe_answer(who)[0] == first


def test_who_fell_behind_is_in_no_ranking(tmp_path: Path) -> None:
    for spec in (RunSpec(), RunSpec(engine="swift", cpu_pct=1.0, leak=0.05)):
        run(tmp_path, spec)
    (table,) = of(tmp_path)
    assert describe_answer(table) == ["At 4,000 pageviews/s steady kept up; swift: fell behind."]


def test_only_changed_settings_are_shown(tmp_path: Path) -> None:
    collection = collect([run(tmp_path, RunSpec(settings={"KAFKA_HEAP": "8g"}))])
    write(tmp_path / "out", collection, tables(collection.runs), None)
    page = words((tmp_path / "out" / "report.html").read_text())
    assert "Changed settings kafka_heap 8g" in page
    assert "loadgen_acks" not in page


def test_lag_is_alone_in_the_first_chart(tmp_path: Path) -> None:
    (found,) = collect([run(tmp_path, RunSpec())]).runs
    charts, _ = run_charts(found)
    assert [line.name for line in charts[0].lines] == ["lag"]
    for chart in charts:
        assert any(unit in chart.y_title for unit in ("ms", "thousand", "%", "GiB"))
        assert "seconds" in chart.x_title


def test_a_bound_that_an_engine_updates_too_seldom_for_is_not_said_to_hold() -> None:
    """It was held against two of its update cycles, and that is what is said."""
    window = {"start_ms": 1_000, "end_ms": 91_000}
    rate = {"window": window, "bound_ms": 2_020, "per_s": 40_000, "lag_p50_ms": 530}
    rate |= {
        "lag_p99_ms": 1_060,
        "counted_before": 9,
        "handed_over_per_s": 40_000,
        "ended_early": False,
    }
    found = LimitRecord.model_validate(
        {
            "engine": "steady",
            "runtime": "native",
            "machine": {"cpu_model": "A", "cores": 2, "memory_gib": 8},
            "outcome": "ok",
            "sustainable": [
                {"bound_ms": bound_ms, "held_per_s": 40_000, "failed_per_s": 57_000}
                for bound_ms in (1_000, 2_000)
            ],
            "runs": [{"tag": "one", "update_interval_ms": 1_010, "trials": [rate]}],
        }
    )
    widened, as_asked = searches.describe_search(found)[-2:]
    assert "within 2.0 s, two update intervals (requested: 1 s), at 40,000 (" in widened
    assert as_asked == "steady: lag p99 within 2 s at 40,000 (not 57,000)"
    assert searches.describe_sustained(found, 1_000) == "40,000 (not 57,000), within 2.0 s"
    assert searches.describe_sustained(found, 2_000) == "40,000 (not 57,000)"
    assert searches.describe_sustained(found, 5_000) == "n/a"


def test_a_limit_of_an_older_version_is_not_read_as_one_of_today(tmp_path: Path) -> None:
    folder = tmp_path / "old_limit"
    folder.mkdir()
    (folder / "limit.json").write_text('{"schema_version": 1, "kind": "limit"}')
    with pytest.raises(UsageError, match=r"has schema version 1; this Racetrack reads 4"):
        collect([folder])


def test_what_a_folder_lacks_is_named_with_the_figures_that_need_it(tmp_path: Path) -> None:
    folder = run(tmp_path, RunSpec())
    for name in ("curves.csv", "usage.csv", "steady_sample_dt.log"):
        (folder / name).unlink()
    collection = collect([folder])
    made = tables(collection.runs)
    text = text_of(made, [folder])
    assert "curves.csv (lag, throughput and verdict)" in text
    assert "usage.csv (CPU and memory)" in text
    assert "steady_sample_dt.log (the delay dt_ms)" in text
    assert "arrivals.csv" not in text
    write(tmp_path / "out", collection, made, None)
    page = words((tmp_path / "out" / "report.html").read_text())
    assert "No curves and no lag over time" in page and "No CPU and memory over time" in page
    assert "Raw files are missing: curves.csv" in page


def test_a_copy_of_a_run_is_no_repeat(tmp_path: Path) -> None:
    first, other = run(tmp_path, RunSpec()), run(tmp_path, RunSpec(seed=2))
    copy = tmp_path / "a copy"
    shutil.copytree(first, copy)
    folders = [first, copy, other]
    collection = collect(folders)
    assert [one.path for one in collection.runs] == [first, other]
    (table,) = tables(collection.runs)
    assert [len(group.runs) for group in table.groups] == [2]
    left_out = f"left out: {copy} is a copy of {first}"
    assert left_out in text_of((table,), folders)
    write(tmp_path / "out", collection, (table,), None)
    assert f"{copy} is a copy of" in words((tmp_path / "out" / "report.html").read_text())


def test_the_runs_in_a_folder_are_taken_and_what_is_none_is_left(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    made = [run(logs, RunSpec(seed=seed)) for seed in (1, 2)]
    other_version = run(logs, RunSpec(seed=3))
    edit(other_version, schema_version=2)
    (logs / "notes").mkdir()
    collection = collect([logs])
    assert [one.path for one in collection.runs] == made
    (why,) = collection.left_out
    assert str(other_version) in why and "schema version 2" in why
    with pytest.raises(UsageError, match="schema version 2"):
        collect([other_version])


def test_a_run_that_broke_off_is_read(tmp_path: Path) -> None:
    broken = run(tmp_path, RunSpec())
    told = {key: read_run(broken)[key] for key in ("schema_version", "run_id", "tag", "engine")}
    (broken / "run.json").write_text(json.dumps(told))
    collection = collect([broken])
    write(tmp_path / "out", collection, tables(collection.runs), None)
    assert "unfinished" in words((tmp_path / "out" / "report.html").read_text())


def test_warnings_come_from_the_data(tmp_path: Path) -> None:
    short = run(tmp_path, RunSpec(window_s=8.0))
    other = RunSpec(
        engine="swift",
        runtime="compose",
        caveats=("Only an image.",),
        busy_cores=1.9,
        foreign_pct=0.0,
    )
    first, second = (collect([path]).runs[0].warnings for path in (short, run(tmp_path, other)))
    assert any("Short window, 8 s: under 30 s it may not" in warning for warning in first)
    assert any("Apache Kafka stands in for Redpanda" in warning for warning in first)
    assert not any("Short window" in warning for warning in second)
    assert "more than 90 % of all cores' time was used" in " ".join(second)
    graded = collect([short]).runs[0].graded
    assert "Short window" in " ".join(graded[Grade.DOUBTFUL])
    assert "Apache Kafka" in " ".join(graded[Grade.COMPARING])
    assert "Only an image." in second and "Only an image." not in first
    assert not any("not measured" in warning for warning in (*first, *second))
    assert not any("Apache Kafka" in warning for warning in second)


def test_a_short_time_of_samples_is_no_warning_where_more_was_judged(tmp_path: Path) -> None:
    path = run(tmp_path, RunSpec(window_s=26.0, asked={"decide_within_s": 60.0}))
    assert read_run(path)["results"]["verdict"]["window_s"] > 30
    (found,) = collect([path]).runs
    assert not any("Short window" in warning for warning in found.warnings)


@pytest.mark.parametrize(("top_share", "warns"), [(0.5, True), (0.9, False), (1.3, True)])
def test_top_is_held_against_the_kernels_account(
    tmp_path: Path, top_share: float, warns: bool
) -> None:
    (found,) = collect([run(tmp_path, RunSpec(top_share=top_share))]).runs
    told = [one for one in found.graded[Grade.WRONG] if one.startswith("CPU of steadyd: top shows")]
    assert bool(told) is warns
    if warns:
        shown = re.search(r"top shows ([\d.]+) % of a core, the kernel's account 40\.0 %", told[0])
        assert shown and float(shown[1]) == pytest.approx(40 * top_share, rel=0.05)


def test_an_engine_that_ran_elsewhere_has_no_cost(tmp_path: Path) -> None:
    """No zero is made up for it, and it is not compared by what was not measured."""
    for seed in (1, 2):
        run(tmp_path, RunSpec(seed=seed))
        run(tmp_path, RunSpec(engine="swift", elsewhere=True, seed=seed))
        run(tmp_path, RunSpec(engine="swift", elsewhere=True, seed=seed, rate=1_000))
    collection = collect(sorted(tmp_path.iterdir()))
    away = [r for r in collection.runs if r.engine == "swift"]
    for one in away:
        for key in ("cpu_mean_pct", "rss_max_gib", "cpu_s_per_million", "cpu_user_pct"):
            assert one.figures[key] is None
        assert one.figures["lag_p50_ms"] is not None
        assert one.figures["broker_cpu_mean_pct"] is not None
        assert any("CPU and memory were not measured" in warning for warning in one.warnings)
    (table,) = tables(collection.runs)
    compared = {c.key: (c.ratio, c.why_not) for c in table.comparisons}
    assert compared["cpu_mean_pct"] == (None, "not measured in every run")
    assert compared["lag_p50_ms"][0] is not None
    told = text_of((table,), sorted(tmp_path.iterdir()))
    assert "n/a" in told and "not compared (not measured in every run)" in told
    write(tmp_path / "out", collection, (table,), None)
    rows = list(csv.DictReader((tmp_path / "out" / "report.csv").open()))
    assert {row["cpu_mean_pct"] for row in rows if row["engine"] == "swift"} == {""}


def test_the_page_needs_nothing_else(out: Path) -> None:
    page = (out / "report.html").read_text()
    own = re.sub(r"/\*!.*?\*/", "", page)  # uPlot says where it comes from
    assert re.findall(r"https?://|@import|<link|<img|<iframe|\ssrc=|fetch\(", own) == []
    links = set(re.findall(r'href="([^"#]+)"', page))
    assert all((out / link).is_file() for link in links)
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(|href=")#([^)"]+)', page)) <= set(ids)


def test_hostile_names_are_only_text(tmp_path: Path) -> None:
    folder = run(tmp_path, RunSpec())
    told = read_run(folder)
    told["results"]["verdict"]["reason"] = HOSTILE
    told["results"]["processes"][HOSTILE] = told["results"]["processes"].pop("steadyd")
    usage = (folder / "usage.csv").read_text()
    (folder / "usage.csv").write_text(
        usage.replace(",steadyd,", f',"{HOSTILE}",'.replace('"x"', '""x""'))
    )
    edit(folder, results=told["results"], engine=HOSTILE, runtime=HOSTILE, outcome="ok")
    edit(folder, settings={HOSTILE: HOSTILE}, machine={"cpu_model": "[bold]x[/bold]"})
    collection = collect([folder])
    made = tables(collection.runs)
    assert "[bold]x[/bold]" in text_of(made, [folder])
    write(tmp_path / "out", collection, made, None)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<script>alert" not in page
    assert HOSTILE in words(page)


def test_what_was_published_is_marked_as_another_machines(logs: Path, out: Path) -> None:
    folders = sorted(logs.iterdir())
    assert "another machine" not in text_of(of(logs), folders)
    told = text_of(of(logs), folders, with_2022=True)
    assert "Published in 2022, on another machine" in told and "86.5" in told
    assert "2022, another machine" in (out / "report.html").read_text()
    for one in published().results:
        assert one.pageviews_per_s > 0 and one.cpu_mean_pct > 0 and one.rss_max_gib > 0
    assert published().url.startswith("https://github.com/")


def test_the_command_leaves_its_files_and_refuses_other_folders(tmp_path: Path) -> None:
    folder = run(tmp_path, RunSpec())
    done = CliRunner().invoke(race, ["report", str(folder)])
    assert done.exit_code == 0, done.output
    assert "kept up" in done.output
    made = {path.name for path in (folder / "report").iterdir()}
    assert made == {"report.html", "report.csv", "report.json", "plots"}
    kinds = ("lag", "lag_parts", "curves", "cpu", "memory")
    plots = {path.name for path in (folder / "report" / "plots").iterdir()}
    assert plots == {f"{folder.name}_{kind}.{end}" for kind in kinds for end in ("svg", "png")}
    refused = CliRunner().invoke(race, ["report", str(folder / "stack")])
    assert refused.exit_code == 2 and "no folder with one" in refused.output


def test_a_newer_versions_folder_is_refused(tmp_path: Path) -> None:
    folder = run(tmp_path, RunSpec())
    edit(folder, schema_version=4)
    with pytest.raises(UsageError, match="schema version 4"):
        collect([folder])


def test_the_same_data_make_the_same_plots(logs: Path, out: Path, tmp_path: Path) -> None:
    collection = collect(sorted(logs.iterdir())[:1])
    write(tmp_path, collection, tables(collection.runs), None)
    for path in (tmp_path / "plots").glob("*.svg"):
        assert path.read_bytes() == (out / "plots" / path.name).read_bytes()


def test_a_run_under_a_changing_load_is_no_repeat_of_one_at_its_mean(tmp_path: Path) -> None:
    run(tmp_path, STEADY)
    path = run(tmp_path, RunSpec(asked={"load": "spike 4k 8k 5s"}))
    told = read_run(path)
    assert told["results"]["load"]["max_backlog_events"] > 0
    assert told["results"]["load"]["after_peak_s"] == 0
    [table] = of(tmp_path)
    assert sorted(table.labels) == ["steady [load one rate]", "steady [load spike 4k 8k 5s]"]
    collection = collect([path])
    record = flat_record(collection.runs[0])
    assert (record["load"], record["after_peak_s"]) == ("spike 4k 8k 5s", 0)
    out = tmp_path / "out"
    out.mkdir()
    write(out, collection, tables(collection.runs), None)
    assert "spike 4k 8k 5s" in (out / "plots" / f"{path.name}_lag.svg").read_text()


def test_a_run_under_trouble_is_marked_and_is_no_repeat_of_one_without(tmp_path: Path) -> None:
    run(tmp_path, STEADY)
    path = run(tmp_path, RunSpec(asked={"faults": ("kill:debezium@15s",)}))
    [back] = read_run(path)["results"]["faults"]
    assert back["purchases"]["after_s"] == pytest.approx(5.0, abs=0.2)
    assert back["purchases"]["worst_ms"] == pytest.approx(4_700, abs=400)
    assert back["pageviews"]["after_s"] == 0
    [table] = of(tmp_path)
    assert sorted(table.labels) == ["steady [faults kill:debezium@15s]", "steady [faults none]"]
    collection = collect([path])
    out = tmp_path / "out"
    out.mkdir()
    write(out, collection, tables(collection.runs), None)
    assert "kill:debezium@15s" in (out / "plots" / f"{path.name}_lag.svg").read_text()


def test_what_has_no_value_in_a_window_without_an_update_is_absent_everywhere(
    tmp_path: Path,
) -> None:
    """A result all the same: it fell behind."""
    folder = run(tmp_path / "logs", RunSpec(silent=True))
    told = read_run(folder)
    assert (told["outcome"], told["results"]["verdict"]["kind"]) == ("ok", "fell behind")
    collection = collect([folder])
    write(tmp_path / "out", collection, tables(collection.runs), None)
    (row,) = csv.DictReader((tmp_path / "out" / "report.csv").read_text().splitlines())
    (as_json,) = json.loads((tmp_path / "out" / "report.json").read_text())["runs"]
    for key in (
        "dt_p50_ms",
        "processed_pageviews_per_s",
        "cpu_s_per_million",
        "rss_growth_gib_per_million",
    ):
        assert (row[key], as_json[key]) == ("", None), key
    assert float(row["lag_p50_ms"]) > 10_000
    shown = text_of(tables(collection.runs), [folder])
    assert "fell behind" in shown
    page = words(next((tmp_path / "out").glob("*.html")).read_text())
    assert "Fell behind: no update of the engine in 30 s" in page
    assert "nan" not in page.lower().split()


def test_the_page_shows_how_old_each_view_was(tmp_path: Path) -> None:
    path = run(tmp_path / "logs", RunSpec(view_delay_ms=1_250))
    collection = collect([path])
    write(tmp_path / "out", collection, tables(collection.runs), None)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "View lag" in page
    for name in ("item_summary.orders", "profile_views_enriched.received_at"):
        assert f'<th scope="row">{name}</th>' in page
    (row,) = csv.DictReader((tmp_path / "out" / "report.csv").read_text().splitlines())
    assert float(row["view_lag_p99_ms"]) == pytest.approx(1_250, abs=20)


def test_the_page_shows_what_a_client_got_who_read(tmp_path: Path) -> None:
    path = run(tmp_path / "logs", RunSpec(view_delay_ms=1_250, read_ms=300))
    collection = collect([path])
    write(tmp_path / "out", collection, tables(collection.runs), None)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Answers to reads" in page
    for name in ("top_viewed_items", "item_summary by item_id"):
        assert f'<th scope="row">{name}</th>' in page
    (row,) = csv.DictReader((tmp_path / "out" / "report.csv").read_text().splitlines())
    assert float(row["read_time_p99_ms"]) == pytest.approx(300, abs=2)
    # Marks of one view are 200 ms apart.
    assert 1_340 <= float(row["read_age_p99_ms"]) <= 1_552


def test_where_nobody_read_the_page_says_nothing_of_it(tmp_path: Path) -> None:
    collection = collect([run(tmp_path / "logs", RunSpec())])
    write(tmp_path / "out", collection, tables(collection.runs), None)
    assert "What a client" not in (tmp_path / "out" / "report.html").read_text()
