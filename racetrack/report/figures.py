"""Figures of a run: name, unit, format and meaning of each, their values, and warnings.

Unless a figure says otherwise, it is computed over the window that the verdict judged.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from racetrack.analysis import noise
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
from racetrack.results.verification import ViewStatus

# Costs vary by some percent from run to run: more digits would be noise.
COST_DIGITS = 3
NATIVE, MADE_HERE = "native", "compose, images made here"
# Services that every engine needs for its input beside broker and generator.
SUPPORT = ("mysql", "registry", "debezium")
SHORT_WINDOW_S = 30.0
BUSY_PCT = 90.0
# Top counts ticks of 10 ms, and its first sample begins some 0.2 s after the kernel's account.
TOP_WITHIN, TOP_WITHIN_S = 0.2, 0.3
NO_COST = "The engine's CPU and memory were not measured: none of its processes is known here."


@dataclass(frozen=True)
class Figure:
    """A figure. `key` is its column in `report.csv`, with its unit; `form` formats a value, with
    three significant digits if it is empty."""

    key: str
    title: str
    unit: str
    form: str
    means: str


FIGURES = (
    Figure(
        "cpu_mean_pct",
        "CPU mean",
        "% of a core",
        "{:,.1f}",
        "Mean CPU of all processes of the engine by the kernel's account, in percent of one core,"
        " so 200 % are two cores.",
    ),
    Figure(
        "rss_max_gib",
        "memory max",
        "GiB",
        "{:,.2f}",
        "Maximum resident memory of the engine's processes, from when the demo was loaded until the"
        " load ended; sampled every second, by the kernel's account.",
    ),
    Figure(
        "rss_max_at_s",
        "memory max at",
        "s",
        "{:,.0f}",
        "Time of the memory maximum, in seconds after the rate was set.",
    ),
    Figure(
        "pss_max_gib",
        "PSS max",
        "GiB",
        "{:,.2f}",
        "Memory of the engine's processes with shared pages counted once (proportional set size):"
        " the larger of two readings, just before and just after the sampling window. n/a where the"
        " kernel did not allow it.",
    ),
    Figure(
        "tmpfs_max_gib",
        "tmpfs max",
        "GiB",
        "{:,.2f}",
        "Files of the engine on tmpfs at the same two readings, without mapped pages, which are in"
        " the PSS.",
    ),
    Figure(
        "live_heap_gib",
        "live heap",
        "GiB",
        "{:,.2f}",
        "Heap of the engine's JVMs after a full collection, once the load was paused and the engine"
        " had time to drain. n/a without a JVM, or if one did not answer.",
    ),
    Figure(
        "cpu_s_per_million",
        "cost",
        "CPU-s/million",
        "",
        "CPU-seconds of the engine per million pageviews that it counted, by the kernel's account."
        " n/a below 1,000 pageviews, where the base cost dominates.",
    ),
    Figure(
        "lag_p50_ms",
        "lag p50",
        "ms",
        "{:,.0f}",
        "Lag is, over the partitions, the largest age of the oldest pageview that is due and not"
        " yet counted: what a reader sees, at every instant. Median over the window's time.",
    ),
    Figure(
        "lag_p99_ms",
        "lag p99",
        "ms",
        "{:,.0f}",
        "99 % of the window's time the lag was at most this.",
    ),
    Figure(
        "view_lag_p50_ms",
        "view lag p50",
        "ms",
        "{:,.0f}",
        "View lag is the age of the oldest tracer event that is due and not in a view, at every"
        " instant, of the view whose p99 is the highest (docs/views.md). Median over time.",
    ),
    Figure(
        "view_lag_p99_ms",
        "view lag p99",
        "ms",
        "{:,.0f}",
        "99 % of the window's time the lag of that view was at most this.",
    ),
    Figure(
        "read_time_p50_ms",
        "read time p50",
        "ms",
        "{:,.0f}",
        "Time from when a read was due to its answer, of the query whose p99 is the highest"
        " (docs/views.md). Median.",
    ),
    Figure(
        "read_time_p99_ms",
        "read time p99",
        "ms",
        "{:,.0f}",
        "99 % of the answers to that query took at most this.",
    ),
    Figure(
        "read_age_p50_ms",
        "read age p50",
        "ms",
        "{:,.0f}",
        "The age of the oldest tracer event that was due and not in an answer on arrival, of the"
        " query whose p99 is the highest. Median.",
    ),
    Figure(
        "read_age_p99_ms",
        "read age p99",
        "ms",
        "{:,.0f}",
        "99 % of the answers to that query were at most this old.",
    ),
    Figure("lag_max_ms", "lag max", "ms", "{:,.0f}", "The largest lag in the window."),
    Figure(
        "processing_lag_p50_ms",
        "processing lag p50",
        "ms",
        "{:,.0f}",
        "Processing lag is the lag right after an update, without the wait for the next one."
        " Median, with each update weighted by the time before it.",
    ),
    Figure(
        "processing_lag_p99_ms",
        "processing lag p99",
        "ms",
        "{:,.0f}",
        "99 % of the window's time the newest update's processing lag was at most this.",
    ),
    Figure(
        "lag_slope_pct",
        "lag slope",
        "% of real time",
        "{:,.2f}",
        "Growth of the processing lag; 1 % is 10 ms per second. The verdict compares its 98 %"
        " interval with the threshold (1 % unless set): below is kept up, above fell behind.",
    ),
    Figure(
        "dt_p50_ms",
        "dt p50",
        "ms",
        "{:,.0f}",
        "The published freshness: now minus the newest received_at that the engine has seen. A"
        " partition that lags hides behind a current one. Median over the updates in the window.",
    ),
    Figure(
        "rss_growth_gib_per_million",
        "memory growth",
        "GiB/million",
        "{:,.4f}",
        "Resident memory at the window's end minus that at its start, per million pageviews"
        " counted.",
    ),
    Figure(
        "cpu_user_pct",
        "CPU user",
        "% of a core",
        "{:,.1f}",
        "As CPU mean, in user mode alone.",
    ),
    Figure(
        "cpu_system_pct",
        "CPU system",
        "% of a core",
        "{:,.1f}",
        "As CPU mean, in the kernel alone.",
    ),
    Figure(
        "top_cpu_mean_pct",
        "CPU by top",
        "% of a core",
        "{:,.1f}",
        "Mean over the samples of top, in the sampling window, as published in 2022.",
    ),
    Figure(
        "achieved_pageviews_per_s",
        "achieved",
        "pageviews/s",
        "{:,.1f}",
        "Pageviews per second that the generator handed over in the window.",
    ),
    Figure(
        "processed_pageviews_per_s",
        "processed",
        "pageviews/s",
        "{:,.1f}",
        "Pageviews per second that the engine counted in the window; n/a where it reported no"
        " update.",
    ),
    Figure(
        "broker_cpu_mean_pct",
        "broker CPU",
        "% of a core",
        "{:,.1f}",
        "As CPU mean, for the broker.",
    ),
    Figure(
        "reader_cpu_mean_pct",
        "reader CPU",
        "% of a core",
        "{:,.1f}",
        "As CPU mean, for the client that reads the views (docs/views.md).",
    ),
    Figure(
        "support_cpu_mean_pct",
        "support CPU",
        "% of a core",
        "{:,.1f}",
        "As CPU mean, for MySQL, the registry and Debezium together: services that every engine"
        " needs for its input.",
    ),
    Figure(
        "harness_cpu_pct",
        "harness CPU",
        "% of a core",
        "{:,.1f}",
        "CPU time of the harness and its samplers, by the kernel's account.",
    ),
    Figure(
        "foreign_cpu_pct",
        "foreign CPU",
        "% of a core",
        "{:,.1f}",
        "CPU time of programs that are neither the stack's services nor the harness.",
    ),
    Figure(
        "kernel_cpu_pct",
        "kernel CPU",
        "% of a core",
        "{:,.1f}",
        "CPU time that belongs to no program: the kernel's own, for interrupts and wake-ups."
        " Engines whose threads sleep and wake often cause much of it.",
    ),
    Figure(
        "steal_pct",
        "steal",
        "% of all cores",
        "{:,.2f}",
        "CPU time that the hypervisor gave to other machines.",
    ),
    Figure(
        "core_mib_per_s",
        "speed of a core",
        "MiB/s",
        "{:,.0f}",
        "Speed of a core at a fixed piece of work (BLAKE2b), by its own CPU time. A core that is"
        " shared with another machine is slower, for everything that runs on it.",
    ),
    Figure(
        "machine_busy_pct",
        "machine busy",
        "% of all cores",
        "{:,.0f}",
        "CPU time of everything on the machine.",
    ),
)
BY_KEY = {figure.key: figure for figure in FIGURES}
# Figures of a capacity search; more depend on its bounds.
OF_SEARCHES = (
    "capacity_per_s",
    "capacity_low_per_s",
    "sustained_2s_per_s",
    "sustained_5s_per_s",
)
# Figures in tables, and figures by which engines are compared.
SHOWN = ("cpu_mean_pct", "rss_max_gib", "cpu_s_per_million", "lag_p50_ms", "lag_p99_ms")
COMPARED = ("cpu_mean_pct", "rss_max_gib", "cpu_s_per_million", "lag_p50_ms")


def number(key: str, value: float | None) -> str:
    """Format a value; `n/a` if it was not measured."""
    if value is None:
        return "n/a"
    form = BY_KEY[key].form
    return form.format(value) if form else format_significant(value)


def format_significant(value: float, digits: int = COST_DIGITS) -> str:
    """Format a number with significant digits, without an exponent: `1,230`, `76.2`, `0.0457`."""
    if not value or not math.isfinite(value):
        return f"{value:g}"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, places):,.{max(0, places)}f}"


def figures_of(run: RunRecord) -> dict[str, float | None]:
    """Return the figures of `definitions.FIGURES`; None for what was not measured."""
    found: dict[str, float | None] = dict.fromkeys(figure.key for figure in FIGURES)
    if results := run.results:
        found |= _costs(results)
        found |= _lags(results.verdict)
        if results.views:
            oldest = max(results.views, key=lambda view: view.lag_p99_ms)
            found["view_lag_p50_ms"] = finite(oldest.lag_p50_ms)
            found["view_lag_p99_ms"] = finite(oldest.lag_p99_ms)
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
        "lag_p50_ms": finite(lag.lag_p50_ms),
        "lag_p99_ms": finite(lag.lag_p99_ms),
        "lag_max_ms": finite(lag.lag_max_ms),
        "processing_lag_p50_ms": finite(lag.processing_lag_p50_ms),
        "processing_lag_p99_ms": finite(lag.processing_lag_p99_ms),
        "lag_slope_pct": lag.slope.pct,
    }


def _reads(reads: Sequence[Answers]) -> dict[str, float | None]:
    """Return the times of the slowest query, and the ages of the one with the oldest answers."""
    times, ages = [of.time for of in reads if of.time], [of.age for of in reads if of.age]
    found: dict[str, float | None] = {}
    for what, all_of in (("time", times), ("age", ages)):
        if all_of:
            worst = max(all_of, key=lambda of: of.p99_ms)
            found[f"read_{what}_p50_ms"] = finite(worst.p50_ms)
            found[f"read_{what}_p99_ms"] = finite(worst.p99_ms)
    return found


def finite(value: float) -> float | None:
    """Return None for an infinite value, which flat records do not have."""
    return value if math.isfinite(value) else None


def warnings_of(run: RunRecord) -> tuple[str, ...]:
    """Return warnings about the figures, and caveats of the engine."""
    found = [*measurement_warnings(run)]
    if (runtime := runtime_of(run)) in (NATIVE, MADE_HERE):
        found.append(
            f"Runtime {runtime}: Apache Kafka stands in for Redpanda, and Apicurio for its"
            " registry. Don't compare with runs of another runtime."
        )
    if run.results and not run.results.engine:
        found.append(NO_COST)
    return (*found, *view_caveats(run), *run.caveats)


def measurement_warnings(run: RunRecord) -> list[str]:
    """Return reasons why the figures are less certain."""
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
    """Return the runtime; locally built images are one of their own, since their broker differs."""
    made_here = described.runtime == "compose" and described.settings.get("airgap", False)
    return MADE_HERE if made_here else described.runtime


def absent_views(run: RunRecord) -> list[str]:
    """Return the views that the engine does not have, declared or found by verification."""
    found = run.verified.named(ViewStatus.ABSENT) if run.verified else []
    return list(dict.fromkeys([*run.absent_views, *found]))


def count_views(run: RunRecord) -> tuple[int, int] | None:
    """Return the engine's number of views and the workload's; None if unknown."""
    of = len(run.verified.views) if run.verified else run.workload_views
    return (of - len(absent_views(run)), of) if of else None


def view_caveats(run: RunRecord) -> list[str]:
    """Return a caveat if the engine does not have all views, since it has less to do."""
    missing, there = absent_views(run), count_views(run)
    if not (missing and there):
        return []
    has = f"{run.engine} has {there[0]} of {there[1]} views, not {', '.join(missing)}"
    return [f"{has}: less to do than an engine that has all."]
