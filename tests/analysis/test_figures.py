"""Tests of a run's figures from the lines of its raw files: only the judged window counts, and
values that were not measured are None."""

import json
from pathlib import Path

import numpy as np
import pytest

from racetrack.analysis import figures, raw
from racetrack.results import folder as runfolder
from simulations import synthetic
from tests.records import run_json
from tests.report import folders
from tests.report.folders import RunSpec
from tests.run_json import read_run

START_MS = synthetic.START_MS
MEMORY = "at_ms,service,pss_gib,tmpfs_gib,took_ms\n"
WINDOW = {"start_ms": START_MS, "end_ms": START_MS + 30_000}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    synthetic.write(synthetic.curves(synthetic.SyntheticRun(), np.random.default_rng(1)), tmp_path)
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
        "at_ms,service,cpu_s,cpu_user_s,rss_gib\n"
        f"{START_MS - 1000},steadyd,1.00,0.75,9.000000\n"
        f"{START_MS - 1000},broker,0.50,0.25,0.250000\n"
        f"{START_MS + 1000},steadyd,2.00,1.25,1.523456\n"
        f"{START_MS + 29000},steadyd,9.00,5.25,2.523456\n"
        f"{START_MS + 31000},steadyd,11.00,6.25,2.000000\n"
        f"{START_MS + 31000},broker,3.70,1.85,0.500000\n"
        f"{START_MS + 40000},steadyd,11.00,6.25,12.000000\n"
    )
    measured = {
        "window": WINDOW,
        "cpu_s": {
            "steadyd": {"user": 1.0, "system": 0.25},
            "broker": {"user": 0.25, "system": 0.25},
            "loadgen": {"user": 0.1, "system": 0.0},
        },
        "rate_set_ms": START_MS - 5_000,
        "paused_ms": START_MS + 32_000,
        "engine_total": 29,
    }
    arguments, services = {"events_per_s": 4000, "samples": 2}, ["steadyd"]
    run = {"engine_services": services, "arguments": arguments, "measured": measured}
    (tmp_path / "run.json").write_text(json.dumps(run_json(run)))
    return tmp_path


def test_rates_and_delays_are_those_of_the_window(folder: Path) -> None:
    results = figures.results(folder)
    assert results.offered_events_per_s == 4000
    assert results.achieved_events_per_s == 3990
    # Totals are those of the whole run.
    assert (results.published_events, results.processed_events) == (30, 29)
    delay = results.dt_ms
    assert (delay.mean, delay.p50, delay.max) == pytest.approx((200.2, 200.2, 300.5), abs=0.06)
    assert (delay.updates, delay.next_update_s) == (2, None)


def test_no_freshness_is_below_zero(folder: Path) -> None:
    with (folder / "steady_sample_dt.log").open("a") as log:
        log.write(f"timestamp={START_MS + 2500}, total=4, max_received_at=9, dt_ms=-3590510\n")
    results = figures.results(folder)
    assert (results.dt_ms.mean, results.dt_ms.p50, results.dt_ms.max) == (None, None, None)
    assert results.dt_ms.updates == 3
    assert any("3,590,510 ms ahead" in warning for warning in results.verdict.warnings)


def test_costs_are_the_kernels_over_the_judged_window(folder: Path) -> None:
    results = figures.results(folder)
    steadyd, broker = results.processes["steadyd"], results.processes["broker"]
    # CPU use is taken as constant between two readings, so half of the first second and half of the
    # last one count.
    assert (steadyd.cpu_s, steadyd.cpu_user_s, steadyd.cpu_system_s) == (8.5, 4.75, 3.75)
    assert steadyd.cpu_mean_pct == pytest.approx(100 * 8.5 / 30, abs=0.01)
    assert broker.cpu_s == pytest.approx(3.0)
    # The engine processed 4,000/s for 30 s: 0.12 million.
    assert steadyd.cpu_s_per_million == pytest.approx(8.5 / 0.12, rel=0.01)
    assert steadyd.rss_growth_gib_per_million == pytest.approx(1 / 0.12, rel=0.01)
    assert results.engine and results.engine.cpu_s == steadyd.cpu_s
    assert results.engine.throttled_pct is None


def test_the_maximum_of_memory_is_that_of_the_run_under_load_with_its_time(folder: Path) -> None:
    """The maximum may lie before the judged window, but not after the load was paused."""
    most = figures.results(folder).processes["steadyd"].rss_max
    assert most and (most.gib, most.at_s) == (9.0, 4.0)


def test_top_is_kept_beside_the_kernels_account_of_the_same_seconds(folder: Path) -> None:
    steadyd = figures.results(folder).top["steadyd"]
    assert steadyd.cpu_pct.mean == 60
    assert steadyd.cpu_pct.sd == pytest.approx(14.1421, abs=1e-4)
    assert steadyd.cpu_pct.sem == pytest.approx(10)
    assert steadyd.rss_gib.samples == (1.523456, 2.523456)  # unlike top's
    assert steadyd.kernel_cpu_pct == pytest.approx(100 * 1.25 / 30, abs=0.01)


def test_all_services_of_an_engine_are_added_up_at_each_instant(folder: Path) -> None:
    folders.edit(folder, engine_services=["steadyd", "broker"])
    engine = figures.results(folder).engine
    assert engine and engine.rss_max
    # The readings are from 1 s before the window and 1 s after it, so 30 of 32 s count.
    assert engine.cpu_s == pytest.approx((11.0 + 3.7 - 1.0 - 0.5) * 30 / 32, abs=0.001)
    assert engine.rss_max.gib == 9.25


THROTTLING = (  # offset from the window's start, service, periods, throttled, pod
    (-10_000, "steadyd", 900, 90, "steadyd-0"),
    (0, "steadyd", 1_000, 100, "steadyd-0"),
    (20_000, "steadyd", 1_200, 150, "steadyd-0"),
    (21_000, "steadyd", 0, 0, "steadyd-0"),  # the pod was created again
    (30_000, "steadyd", 100, 10, "steadyd-0"),
    (40_000, "steadyd", 200, 110, "steadyd-0"),
    (0, "steadyd", 0, 0, "steadyd-1"),
    (30_000, "steadyd", 100, 5, "steadyd-1"),
    (0, "broker", 0, 0, "broker-0"),
    (30_000, "broker", 0, 0, "broker-0"),
)


def test_the_share_of_throttled_periods_is_that_of_the_worst_pod(folder: Path) -> None:
    rows = "".join(
        f"{START_MS + at},{service},{periods},{throttled},0.000,{pod}\n"
        for at, service, periods, throttled, pod in THROTTLING
    )
    header = "at_ms,service,periods,throttled,throttled_s,pod\n"
    (folder / "throttling.csv").write_text(header + rows)
    found = figures.results(folder)
    assert found.processes["steadyd"].throttled_pct == 20.0  # (50 + 10) of (200 + 100)
    assert found.engine and found.engine.throttled_pct == 20.0
    assert found.processes["broker"].throttled_pct is None  # it has no CPU limit


def test_a_few_events_have_no_cost_of_each(folder: Path) -> None:
    readings = raw.usage(folder)["steadyd"]
    run = runfolder.read_run(folder)
    assert run.measured
    few, enough = (
        figures.process(readings, run.measured.window, run.measured, counted)
        for counted in (999, 1_000)
    )
    assert few.cpu_mean_pct == enough.cpu_mean_pct
    assert few.cpu_s_per_million is None and few.rss_growth_gib_per_million is None
    assert enough.cpu_s_per_million == pytest.approx(8_500)


def test_memory_is_what_was_read_at_the_ends_of_the_window(folder: Path) -> None:
    (folder / "memory.csv").write_text(
        f"{MEMORY}{START_MS - 50},steadyd,1.25,0.25,3.0\n"
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
    assert (steadyd.pss_max_gib, steadyd.tmpfs_max_gib) == (1.75, 0.25)
    assert steadyd.live_heap_gib == 0.75
    assert broker.tmpfs_max_gib == 0.25
    assert broker.live_heap_gib is None
    (folder / "memory.csv").write_text(f"{MEMORY}{START_MS + 500},steadyd,,,3.0\n")
    (folder / "live_heap.csv").unlink()
    unread = figures.results(folder).processes["steadyd"]
    assert unread.pss_max_gib is unread.tmpfs_max_gib is unread.live_heap_gib is None


def test_a_run_in_which_littles_law_does_not_hold_warns_of_it(folder: Path) -> None:
    results = figures.results(folder)
    assert results.littles_law
    assert not results.littles_law.holds  # the fixture's totals do not match the curves
    assert [w for w in results.verdict.warnings if w.startswith("Little's law does not hold")]


def test_what_was_not_measured_is_none(folder: Path) -> None:
    none = dict.fromkeys(("mean", "p50", "max", "next_update_s"))
    assert figures.delay([], 0, 1).model_dump() == {**none, "updates": 0}
    recorded = raw.delays(folder, "steady")
    between = figures.delay(recorded, START_MS + 600, START_MS + 1_000)
    assert between.model_dump() == {**none, "updates": 0, "next_update_s": 0.5}
    assert figures.rates([raw.Arrival(0, 1, 1)], 0, 1) == (None, None)
    assert figures.spread([1.0]).sd is None


def test_a_view_that_gets_ever_older_decides_though_the_count_is_current(tmp_path: Path) -> None:
    spec = RunSpec(delay_ms=20, view_delay_ms=100, view_leak=0.1)
    verdict = read_run(folders.run(tmp_path, spec))["results"]["verdict"]
    assert verdict["kind"] == "fell behind"
    assert verdict["reason"].startswith("Fell behind: lag grows by")
    assert verdict["reason"].endswith("the slowest view decides: item_summary.pageviews")


def with_cpu_use(folder: Path, pct: dict[str, float], cores: dict[str, str]) -> None:
    """Rewrite a run's settings of cores, and the CPU use of its services in percent of a core."""
    path = folder / "run.json"
    run = json.loads(path.read_text())
    run["engine_services"] = ["kstreams"]
    run["settings"] = {"broker_cpus": "", "loadgen_cpus": "", **cores}
    path.write_text(json.dumps(run))
    (folder / "top_samples.log").unlink()
    rows = [
        f"{START_MS + 1000 * s},{service},{s * used / 100},{s * used / 100},0.1\n"
        for s in range(32)
        for service, used in pct.items()
    ]
    (folder / "usage.csv").write_text("at_ms,service,cpu_s,cpu_user_s,rss_gib\n" + "".join(rows))


APART = {"engine_cpus": "1", "harness_cpus": "0"}


@pytest.mark.parametrize(
    ("pct", "cores", "verdict"),
    [
        ({"kstreams": 60, "broker": 66, "client": 31}, APART, "harness-bound"),
        ({"kstreams": 99, "broker": 66, "client": 31}, APART, "fell behind"),
        ({"kstreams": 60, "broker": 60, "client": 30}, APART, "fell behind"),
        ({"broker": 66, "client": 31}, APART, "fell behind"),
        ({"kstreams": 60, "broker": 66, "client": 31}, dict.fromkeys(APART, ""), "fell behind"),
    ],
)
def test_an_engine_is_not_blamed_if_the_cores_of_others_were_busy(
    folder: Path, pct: dict[str, float], cores: dict[str, str], verdict: str
) -> None:
    slow = synthetic.curves(synthetic.SyntheticRun(leak=0.2), np.random.default_rng(1))
    synthetic.write(slow, folder)
    with_cpu_use(folder, pct, cores)
    found = figures.results(folder).verdict
    assert found.kind == verdict
    named = "core 0 had no idle time (broker 66 %, client 31 %), while the engine's cores had some"
    assert (named in found.reason) == (verdict == "harness-bound")


def test_an_engine_that_kept_up_beside_busy_cores_is_said_to_have_kept_up(folder: Path) -> None:
    with_cpu_use(folder, {"kstreams": 60, "broker": 66, "client": 31}, APART)
    found = figures.results(folder).verdict
    assert found.kind == "kept up"
    assert any("may include waiting for the harness" in text for text in found.warnings)
