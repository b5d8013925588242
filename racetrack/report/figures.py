"""One run's figures and warnings, flat, from its `run.json`."""

import math
from collections.abc import Sequence

from racetrack.analysis import noise
from racetrack.report import verified
from racetrack.report.definitions import FIGURES
from racetrack.results.figures import (
    Answers,
    Cost,
    NoiseFigures,
    Results,
    TopStatistics,
    Verdict,
    VerdictKind,
)
from racetrack.results.run import RunRecord
from racetrack.results.search import LimitRecord

NATIVE, MADE_HERE = "native", "compose, images made here"
# Services that every engine needs for its input beside broker and generator.
SUPPORT = ("mysql", "registry", "debezium")
SHORT_WINDOW_S = 30.0
BUSY_PCT = 90.0
# Top counts ticks of 10 ms, and its first sample begins some 0.2 s after the kernel's account.
TOP_WITHIN, TOP_WITHIN_S = 0.2, 0.3
NO_COST = "The engine's CPU and memory were not measured: none of its processes is known here."


def figures_of(run: RunRecord) -> dict[str, float | None]:
    """Return the figures of `definitions.FIGURES`; None for what was not measured."""
    found: dict[str, float | None] = dict.fromkeys(figure.key for figure in FIGURES)
    if results := run.results:
        found |= _costs(results)
        found |= _lags(results.verdict)
        if results.views:
            oldest = max(results.views, key=lambda view: view.lag_p99_ms)
            found["view_lag_p50_ms"] = _finite(oldest.lag_p50_ms)
            found["view_lag_p99_ms"] = _finite(oldest.lag_p99_ms)
        found |= _reads(results.reads)
        found["dt_p50_ms"] = results.dt_ms.p50
        found["achieved_pageviews_per_s"] = results.achieved_pageviews_per_s
        found |= _noise(results.noise) if results.noise else {}
        found["top_cpu_mean_pct"] = _top_cpu_pct(run, results)
    return found


def _costs(results: Results) -> dict[str, float | None]:
    support = [of.cpu_mean_pct for name, of in results.processes.items() if name in SUPPORT]
    others: dict[str, float | None] = {
        f"{name}_cpu_mean_pct": results.processes[name].cpu_mean_pct
        for name in ("broker", "reader")
        if name in results.processes
    }
    others["support_cpu_mean_pct"] = sum(support) if support else None
    return {**others, **(_of_engine(results.engine) if results.engine else {})}


def _of_engine(engine: Cost) -> dict[str, float | None]:
    seconds = engine.cpu_s and engine.cpu_mean_pct / engine.cpu_s
    return {
        "cpu_mean_pct": engine.cpu_mean_pct,
        "cpu_user_pct": seconds * engine.cpu_user_s,
        "cpu_system_pct": seconds * engine.cpu_system_s,
        "cpu_s_per_million": engine.cpu_s_per_million,
        "rss_max_gib": engine.rss_max.gib if engine.rss_max else None,
        "rss_max_at_s": engine.rss_max.at_s if engine.rss_max else None,
        "rss_growth_gib_per_million": engine.rss_growth_gib_per_million,
        "pss_max_gib": engine.pss_max_gib,
        "tmpfs_max_gib": engine.tmpfs_max_gib,
        "live_heap_gib": engine.live_heap_gib,
    }


def _top_cpu_pct(run: RunRecord, results: Results) -> float | None:
    means = [results.top[name].cpu_pct.mean for name in run.engine_services if name in results.top]
    known = [mean for mean in means if mean is not None]
    return sum(known) if known and len(known) == len(means) else None


def _noise(found: NoiseFigures) -> dict[str, float | None]:
    return {
        "harness_cpu_pct": found.harness_cpu_pct,
        "foreign_cpu_pct": found.foreign_cpu_pct,
        "kernel_cpu_pct": found.kernel_cpu_pct,
        "steal_pct": found.steal_pct,
        "core_mib_per_s": found.core.mib_per_s if found.core else None,
        "machine_busy_pct": found.machine_busy_pct,
    }


def _lags(verdict: Verdict) -> dict[str, float | None]:
    processed = {"processed_pageviews_per_s": verdict.throughput.processed_per_s}
    if not (lag := verdict.measured):
        return {**processed}
    return {
        **processed,
        "lag_p50_ms": _finite(lag.lag_p50_ms),
        "lag_p99_ms": _finite(lag.lag_p99_ms),
        "lag_max_ms": _finite(lag.lag_max_ms),
        "processing_lag_p50_ms": _finite(lag.processing_lag_p50_ms),
        "processing_lag_p99_ms": _finite(lag.processing_lag_p99_ms),
        "lag_slope_pct": lag.slope.pct,
    }


def _reads(reads: Sequence[Answers]) -> dict[str, float | None]:
    """Return the times of the slowest query, and the ages of the one with the oldest answers."""
    times, ages = [of.time for of in reads if of.time], [of.age for of in reads if of.age]
    found: dict[str, float | None] = {}
    for what, all_of in (("time", times), ("age", ages)):
        if all_of:
            worst = max(all_of, key=lambda of: of.p99_ms)
            found[f"read_{what}_p50_ms"] = _finite(worst.p50_ms)
            found[f"read_{what}_p99_ms"] = _finite(worst.p99_ms)
    return found


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def warnings_of(run: RunRecord) -> tuple[str, ...]:
    """Return what a reader has to know before believing the figures."""
    found = [*measurement_warnings(run)]
    if (runtime := runtime_of(run)) in (NATIVE, MADE_HERE):
        found.append(
            f"Runtime {runtime}: Apache Kafka stands in for Redpanda, and Apicurio for its"
            " registry. Don't compare with runs of another runtime."
        )
    if run.results and not run.results.engine:
        found.append(NO_COST)
    return (*found, *verified.caveats(run), *run.caveats)


def measurement_warnings(run: RunRecord) -> list[str]:
    """Return what makes the figures of a run less certain."""
    if not (results := run.results):
        return noise.warnings(run)
    found = [*results.verdict.warnings, *noise.warnings(run)]
    if run.asked and run.asked.pageviews_per_s:  # at rate 0 there is nothing to decide
        found += _of_window(results.verdict)
    if results.noise and results.noise.machine_busy_pct > BUSY_PCT:
        found.append(
            f"Busy machine: over {BUSY_PCT:.0f} % of all cores were in use. The engine may have"
            " been short of CPU because of others."
        )
    # A fault ends processes between two samples of top.
    if run.measured and not run.faults:
        seconds = run.measured.window.seconds
        found += [
            warning
            for name, of in results.top.items()
            if (warning := _top_differs(name, of, seconds))
        ]
    return found


def _top_differs(name: str, of: TopStatistics, seconds: float) -> str:
    top_pct, kernel_pct = of.cpu_pct.mean, of.kernel_cpu_pct
    if top_pct is None:
        return ""
    apart_pct = abs(top_pct - kernel_pct)
    apart_s = apart_pct / 100 * seconds
    if apart_pct <= TOP_WITHIN * kernel_pct or apart_s <= TOP_WITHIN_S:
        return ""
    return (
        f"CPU of {name}: top shows {top_pct:.1f} % of a core, the kernel's account"
        f" {kernel_pct:.1f} % over the same seconds. The figures are the kernel's; don't use"
        " top_samples.log."
    )


def _of_window(verdict: Verdict) -> list[str]:
    found = []
    is_open = verdict.kind is VerdictKind.UNDECIDED
    if is_open and verdict.window_s < SHORT_WINDOW_S:
        found.append(
            f"Short window, {verdict.window_s:.0f} s: under {SHORT_WINDOW_S:.0f} s it may not"
            f" resolve a growth of {verdict.threshold_pct:g} %."
        )
    if verdict.shortest_window_s:
        found.append(f"A window of {verdict.shortest_window_s:.0f} s would probably decide.")
    return found


def runtime_of(described: RunRecord | LimitRecord) -> str:
    """Return what the services ran as: images made here hold another broker than published ones."""
    made_here = described.runtime == "compose" and described.settings.get("airgap", False)
    return MADE_HERE if made_here else described.runtime
