"""From raw lines to figures: what is in the window counts, and what was not measured is None."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from racetrack.analysis import figures, raw
from tests.analysis import synthetic
from tests.report import folders
from tests.report.folders import RunSpec
from tests.run_json import read_run

START_MS = synthetic.START_MS
WINDOW = {"start_ms": START_MS, "end_ms": START_MS + 30_000}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    synthetic.write(synthetic.curves(synthetic.Race(), np.random.default_rng(1)), tmp_path)
    arrivals = [(-100, 0, 0), (0, 500, 500), (1_000, 5500, 5490)]
    arrivals += [(30_000, 120_500, 120_200), (30_100, 999_999, 999_999)]
    rows = "".join(f"{START_MS + at},{due},{handed}\n" for at, due, handed in arrivals)
    (tmp_path / "arrivals.csv").write_text("at_ms,due,handed_over\n" + rows)
    (tmp_path / "steady_sample_dt.log").write_text(
        f"timestamp={START_MS - 1000}, total=1, max_received_at=1, dt_ms=90000\n"
        f"timestamp={START_MS + 500}, total=2, max_received_at=2, dt_ms=100\n"
        f"timestamp={START_MS + 1500}, total=3, max_received_at=3, dt_ms=300.5\n"
    )
    (tmp_path / "top_samples.log").write_text(
        "name=steadyd, sample=1, CPU_PCT=50, RES_GiB=1.5000\n"
        "name=steadyd, sample=2, CPU_PCT=70, RES_GiB=2.5000\n"
        "name=broker, sample=1, CPU_PCT=5.5, RES_GiB=0.3\n"
        "name=broker, sample=2, CPU_PCT=5.5, RES_GiB=0.2500\n"
    )
    (tmp_path / "usage.csv").write_text(
        "at_ms,service,cpu_s,rss_gib\n"
        f"{START_MS - 1000},steadyd,1.00,9.000000\n"
        f"{START_MS + 500},steadyd,1.50,1.523456\n"
        f"{START_MS + 1500},steadyd,2.00,2.523456\n"
        f"{START_MS + 1500},broker,0.50,0.250000\n"
    )
    run = {
        "schema_version": 2,
        "tag": "steady_4000",
        "engine": "steady",
        "asked": {"pageviews_per_s": 4000, "wait_s": 5, "samples": 2, "delay_s": 1},
        "measured": {
            "window": WINDOW,
            "cpu_s": {
                "steadyd": {"user": 1.0, "system": 0.25},
                "broker": {"user": 0.25, "system": 0.25},
                "loadgen": {"user": 0.1, "system": 0.0},
            },
            "harness_cpu_s": 0.6,
            "end_offsets": [10, 20],
            "engine_total": 29,
        },
    }
    (tmp_path / "run.json").write_text(json.dumps(run))
    return tmp_path


def test_the_rates_are_those_of_the_window(folder: Path) -> None:
    results = figures.results(folder)
    assert results.offered_pageviews_per_s == 4000
    assert results.achieved_pageviews_per_s == 3990


def test_the_delay_is_that_of_updates_in_the_window(folder: Path) -> None:
    expected = {"mean": 200.2, "p50": 200.2, "max": 300.5, "updates": 2}
    told = figures.results(folder).dt_ms.model_dump()
    assert told.pop("next_update_s") is None
    assert told == pytest.approx(expected, abs=0.06)


def test_a_window_without_an_update_has_no_delay(folder: Path) -> None:
    told = raw.delays(folder, "steady")
    found = figures.delay(told, START_MS + 600, START_MS + 1_000)
    none = dict.fromkeys(("mean", "p50", "max"))
    assert found.model_dump() == {**none, "updates": 0, "next_update_s": 0.5}


def test_processes_have_both_of_tops_figures_and_the_kernels(folder: Path) -> None:
    steadyd = figures.results(folder).processes["steadyd"]
    assert steadyd.cpu_pct.mean == 60
    assert steadyd.cpu_pct.sd == pytest.approx(14.1421, abs=1e-4)
    assert steadyd.cpu_pct.sem == pytest.approx(10)
    assert steadyd.rss_gib.max == 2.523456  # the kernel's, not rounded as top's is
    assert steadyd.rss_gib.samples == (1.523456, 2.523456)
    assert steadyd.cpu_s == 1.25
    assert (steadyd.cpu_user_s, steadyd.cpu_system_s) == (1.0, 0.25)
    # 4,000/s over the 30 s between the first and the last row of the arrivals in the window.
    assert steadyd.cpu_s_per_million == pytest.approx(1.25 / 0.1197, rel=0.01)
    assert steadyd.rss_growth_gib_per_million == pytest.approx(1 / 0.1197, rel=0.01)


def test_memory_is_what_was_read_at_the_ends_of_the_window(folder: Path) -> None:
    (folder / "memory.csv").write_text(
        "at_ms,service,pss_gib,tmpfs_gib,took_ms\n"
        f"{START_MS - 50},steadyd,1.25,0.25,3.0\n"
        f"{START_MS - 20},broker,0.5,0.125,3.0\n"
        f"{START_MS + 30_010},steadyd,1.75,0.25,3.0\n"
        f"{START_MS + 30_040},broker,0.5,0.25,3.0\n"
    )
    (folder / "live_heap.csv").write_text(
        "at_ms,service,pid,live_heap_gib,took_ms,why_not\n"
        f"{START_MS + 31_000},steadyd,1,0.5,100.0,\n"
        f"{START_MS + 31_000},steadyd,2,0.25,100.0,\n"
        f'{START_MS + 31_000},broker,3,,100.0,"it did not listen within 5 s"\n'
    )
    processes = figures.results(folder).processes
    steadyd, broker = processes["steadyd"], processes["broker"]
    assert steadyd.pss_gib and steadyd.tmpfs_gib and broker.tmpfs_gib
    assert steadyd.pss_gib.samples == (1.25, 1.75)
    assert steadyd.tmpfs_gib.max == 0.25
    assert steadyd.live_heap_gib == 0.75
    assert broker.tmpfs_gib.samples == (0.125, 0.25)
    assert broker.live_heap_gib is None


def test_memory_that_could_not_be_read_is_none(folder: Path) -> None:
    (folder / "memory.csv").write_text(
        f"at_ms,service,pss_gib,tmpfs_gib,took_ms\n{START_MS + 500},steadyd,,,3.0\n"
    )
    steadyd = figures.results(folder).processes["steadyd"]
    assert (steadyd.pss_gib, steadyd.tmpfs_gib, steadyd.live_heap_gib) == (None, None, None)


def test_totals_and_the_harness_own_cost(folder: Path) -> None:
    results = figures.results(folder)
    assert (results.published_pageviews, results.processed_pageviews) == (30, 29)
    assert results.harness.model_dump() == {"cpu_s": 0.6, "cpu_pct": 2.0}


def test_a_run_in_which_littles_law_does_not_hold_warns_of_it(folder: Path) -> None:
    results = figures.results(folder)
    assert results.littles_law and results.verdict
    assert not results.littles_law.holds  # the made-up totals are not those of the curves
    assert [w for w in results.verdict.warnings if w.startswith("Little's law does not hold")]


def test_the_verdict_stands_with_its_numbers_and_as_plain_json(folder: Path) -> None:
    verdict = figures.results(folder).verdict
    assert verdict
    assert verdict.kind == "kept up"
    assert verdict.measured
    assert verdict.measured.slope.high_pct < 1
    json.loads(verdict.model_dump_json(), parse_constant=pytest.fail)


def test_what_was_not_measured_is_none() -> None:
    none = dict.fromkeys(("mean", "p50", "max", "next_update_s"))
    assert figures.delay([], 0, 1).model_dump() == {**none, "updates": 0}
    assert figures.rates([raw.Arrival(0, 1, 1)], 0, 1) == (None, None)
    assert figures.spread([1.0]).sd is None


@given(st.lists(st.floats(0, 1000), min_size=2, max_size=50))
def test_the_standard_error_shrinks_with_the_square_root_of_n(samples: list[float]) -> None:
    spread = figures.spread(samples)
    assert spread.sd is not None and spread.mean is not None and spread.max is not None
    assert spread.sem == pytest.approx(spread.sd / len(samples) ** 0.5, abs=1e-3)
    assert min(samples) - 1e-3 <= spread.mean <= spread.max + 1e-3


def test_a_run_with_marks_tells_how_old_its_views_were(tmp_path: Path) -> None:
    results = read_run(folders.run(tmp_path, RunSpec(delay_ms=20, view_delay_ms=1_250)))["results"]
    assert [view["name"] for view in results["views"]] == [
        "item_summary.pageviews",
        "item_summary.orders",
        "profile_views_enriched.received_at",
    ]
    for view in results["views"]:
        assert view["kind"] == "kept up"
        assert view["lag_max_ms"] == pytest.approx(1_250, abs=5)
        assert view["lag_p50_ms"] == pytest.approx(1_250 - 500 / view["marks_per_s"], abs=5)
    assert results["verdict"]["kind"] == "kept up"
    assert results["verdict"]["measured"]["lag_p50_ms"] < 1_000


def test_a_view_that_gets_ever_older_decides_though_the_count_is_current(tmp_path: Path) -> None:
    spec = RunSpec(delay_ms=20, view_delay_ms=100, view_leak=0.1)
    verdict = read_run(folders.run(tmp_path, spec))["results"]["verdict"]
    assert verdict["kind"] == "fell behind"
    assert verdict["reason"].startswith("By its view item_summary.pageviews (by way of pageviews)")


def test_a_run_without_marks_has_no_views(tmp_path: Path) -> None:
    run = read_run(folders.run(tmp_path, RunSpec()))
    assert run["results"].get("views", []) == run.get("marked_views", []) == []
