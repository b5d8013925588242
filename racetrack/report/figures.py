"""Figures of a run, with their names, units, formats and meanings; and warnings about them.

Figures are computed over the window that the verdict judged, unless their meaning states otherwise.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from racetrack.analysis import noise
from racetrack.analysis.lag import littles_law_warning
from racetrack.results.base import Scalar, StrictModel
from racetrack.results.figures import (
    Answers,
    Results,
    TopStatistics,
    Verdict,
    VerdictKind,
)
from racetrack.results.run import RunRecord
from racetrack.results.search import LimitRecord
from racetrack.results.verification import ViewStatus

# Costs vary by a few percent from run to run, so more digits would be noise.
COST_DIGITS = 3
NATIVE, MADE_HERE = "native", "compose, images made here"
ON_KUBERNETES, SMALL = "kubernetes", "kubernetes, small"
# Services that every engine needs for its input, in addition to broker and generator.
SUPPORT = ("mysql", "registry", "debezium")
SHORT_WINDOW_S = 30.0
BUSY_PCT = 90.0
# Above it, the 99th percentile of lag includes waits for a CPU limit.
THROTTLED_PCT = 1.0
# Tolerances for a difference between top and the kernel's accounting: top counts ticks of 10 ms,
# and its first sample begins about 0.2 s later.
TOP_WITHIN, TOP_WITHIN_S = 0.2, 0.3
NO_COST = "The engine's CPU and memory were not measured: none of its processes is known here."


# Formats of values by unit; values of other units have three significant digits.
FORMS = {
    "% of a core": "{:,.1f}",
    "% of all cores": "{:,.2f}",
    "% of real time": "{:,.2f}",
    "GiB": "{:,.2f}",
    "GiB/million": "{:,.4f}",
    "MiB/s": "{:,.0f}",
    "ms": "{:,.0f}",
    "pageviews/s": "{:,.1f}",
    "s": "{:,.0f}",
}


@dataclass(frozen=True)
class Figure:
    """A figure. `key` is its column in `report.csv` and ends with the unit. `means` is the
    explanation. `own_form` replaces the format of the unit."""

    key: str
    title: str
    unit: str
    means: str
    own_form: str = ""

    @property
    def form(self) -> str:
        """Format of values; if it is empty, they have three significant digits."""
        return self.own_form or FORMS.get(self.unit, "")


FIGURES = (
    Figure(
        "cpu_mean_pct",
        "CPU mean",
        "% of a core",
        "Mean CPU use of all processes of the engine, from the kernel's accounting, in percent of"
        " one core; 200 % are two cores.",
    ),
    Figure(
        "rss_max_gib",
        "memory max",
        "GiB",
        "Maximum resident memory of the engine's processes between loading the demo and the end of"
        " the load, sampled every second from the kernel's accounting.",
    ),
    Figure(
        "rss_max_at_s",
        "memory max at",
        "s",
        "Time of the memory maximum, in seconds after the rate was set.",
    ),
    Figure(
        "pss_max_gib",
        "PSS max",
        "GiB",
        "Memory of the engine's processes with shared pages counted once (proportional set size)."
        " Read under load, after the window that was judged; n/a if the kernel denied access.",
    ),
    Figure(
        "tmpfs_max_gib",
        "tmpfs max",
        "GiB",
        "Files of the engine on tmpfs, without mapped pages, which PSS includes. Read with PSS.",
    ),
    Figure(
        "live_heap_gib",
        "live heap",
        "GiB",
        "Heap of the engine's JVMs after a full garbage collection, when the load was paused and"
        " the engine had had time to drain; n/a if there is no JVM, or if a JVM did not answer.",
    ),
    Figure(
        "cpu_s_per_million",
        "cost",
        "CPU-s/million",
        "CPU seconds of the engine per million pageviews that it counted, from the kernel's"
        " accounting; n/a below 1,000 pageviews, where the base cost dominates.",
    ),
    Figure(
        "lag_p50_ms",
        "lag p50",
        "ms",
        "Lag is the age of the oldest pageview that is due but not yet counted, at every instant"
        " and in the partition where it is largest. Median over the window's time.",
    ),
    Figure(
        "lag_p99_ms",
        "lag p99",
        "ms",
        "Lag not exceeded in 99 % of the window's time.",
    ),
    Figure(
        "view_lag_p50_ms",
        "view lag p50",
        "ms",
        "View lag is the age of the oldest tracer event that is due but not in the view, at every"
        " instant (docs/views.md). Median over time, of the view with the highest p99.",
    ),
    Figure(
        "view_lag_p99_ms",
        "view lag p99",
        "ms",
        "Lag of that view not exceeded in 99 % of the window's time.",
    ),
    Figure(
        "read_time_p50_ms",
        "read time p50",
        "ms",
        "Median response time of reads, from when a read was due to its answer, of the query with"
        " the highest p99 (docs/views.md).",
    ),
    Figure(
        "read_time_p99_ms",
        "read time p99",
        "ms",
        "99th percentile of the response time of that query.",
    ),
    Figure(
        "read_age_p50_ms",
        "read age p50",
        "ms",
        "Median age of answers: the age of the oldest tracer event that was due but missing in the"
        " answer when it arrived. Of the query with the highest p99.",
    ),
    Figure(
        "read_age_p99_ms",
        "read age p99",
        "ms",
        "99th percentile of the age of answers to that query.",
    ),
    Figure("lag_max_ms", "lag max", "ms", "The largest lag in the window."),
    Figure(
        "processing_lag_p50_ms",
        "processing lag p50",
        "ms",
        "Processing lag is the lag right after an update, so it excludes the wait for the next"
        " update. Median, with each update weighted by the time since the previous one.",
    ),
    Figure(
        "processing_lag_p99_ms",
        "processing lag p99",
        "ms",
        "Processing lag not exceeded in 99 % of the window's time.",
    ),
    Figure(
        "lag_slope_pct",
        "lag slope",
        "% of real time",
        "Growth of the processing lag; 1 % is 10 ms per second. The verdict compares its 98 %"
        " interval with the threshold (by default 1 %): kept up if the interval is below it, fell"
        " behind if it is above.",
    ),
    Figure(
        "dt_p50_ms",
        "dt p50",
        "ms",
        "Freshness as defined in 2022: the current time minus the newest received_at that the"
        " engine has counted. It does not show a lagging partition if another is current. Median"
        " over the updates in the window.",
    ),
    Figure(
        "rss_growth_gib_per_million",
        "memory growth",
        "GiB/million",
        "Growth of resident memory in the window, per million pageviews counted.",
    ),
    Figure(
        "cpu_user_pct",
        "CPU user",
        "% of a core",
        "Mean CPU use of the engine in user mode.",
    ),
    Figure(
        "cpu_system_pct",
        "CPU system",
        "% of a core",
        "Mean CPU use of the engine in kernel mode.",
    ),
    Figure(
        "top_cpu_mean_pct",
        "CPU by top",
        "% of a core",
        "Mean CPU use of the engine over the samples of top in the sampling window, as in 2022.",
    ),
    Figure(
        "achieved_pageviews_per_s",
        "achieved",
        "pageviews/s",
        "Pageviews per second that the generator handed over in the window.",
    ),
    Figure(
        "processed_pageviews_per_s",
        "processed",
        "pageviews/s",
        "Pageviews per second that the engine counted in the window; n/a if it reported no update.",
    ),
    Figure(
        "broker_cpu_mean_pct",
        "broker CPU",
        "% of a core",
        "Mean CPU use of the broker.",
    ),
    Figure(
        "reader_cpu_mean_pct",
        "reader CPU",
        "% of a core",
        "Mean CPU use of the view reader (docs/views.md).",
    ),
    Figure(
        "support_cpu_mean_pct",
        "support CPU",
        "% of a core",
        "Mean CPU use of MySQL, the registry and Debezium together, which every engine needs for"
        " its input.",
    ),
    Figure(
        "harness_cpu_pct",
        "harness CPU",
        "% of a core",
        "Mean CPU use of the harness and its samplers.",
    ),
    Figure(
        "foreign_cpu_pct",
        "foreign CPU",
        "% of a core",
        "Mean CPU use of programs that are neither the stack's services nor the harness.",
    ),
    Figure(
        "kernel_cpu_pct",
        "kernel CPU",
        "% of a core",
        "CPU time of the kernel that is not attributed to a program, for interrupts and wake-ups."
        " Engines whose threads often sleep and wake up cause much of it.",
    ),
    Figure(
        "steal_pct",
        "steal",
        "% of all cores",
        "CPU time that the hypervisor gave to other machines.",
    ),
    Figure(
        "core_mib_per_s",
        "speed of a core",
        "MiB/s",
        "Speed of a core, measured as the CPU time of a fixed piece of work (BLAKE2b). A core that"
        " is shared with another virtual machine is slower for everything that runs on it.",
    ),
    Figure(
        "machine_busy_pct",
        "machine busy",
        "% of all cores",
        "CPU use of everything on the machine.",
        own_form="{:,.0f}",
    ),
)
BY_KEY = {figure.key: figure for figure in FIGURES}
# Figures of a capacity search, without those that depend on its bounds.
OF_SEARCHES = (
    "capacity_per_s",
    "capacity_low_per_s",
    "sustained_2s_per_s",
    "sustained_5s_per_s",
)
# Figures of runs with a load profile.
OF_LOADS = ("max_backlog_events", "after_peak_s")
# Figure of a number of replicas, in percent: the factor by which capacity grows, divided by the
# factor by which replicas do.
SHARE_OF_IDEAL = "share_of_ideal_pct"
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


def format_interval(mean: float, low: float | None, high: float | None) -> str:
    """Format a mean with its interval, if it has one, such as `41.0 (38.7 to 43.3)`."""
    if low is None or high is None:
        return format_significant(mean)
    return f"{format_significant(mean)} ({format_significant(low)} to {format_significant(high)})"


def figures_of(run: RunRecord) -> dict[str, float | None]:
    """Return the values of FIGURES for a run; None for figures that were not measured."""
    found: dict[str, float | None] = dict.fromkeys(figure.key for figure in FIGURES)
    if results := run.results:
        lag, noise = results.verdict.measured, results.noise
        for part in (results, results.engine, lag, noise):
            found |= _of_same_names(part) if part else {}
        found |= _costs(results)
        found["processed_pageviews_per_s"] = results.verdict.throughput.processed_per_s
        found["lag_slope_pct"] = lag.slope.pct if lag else None
        if results.views:
            oldest = max(results.views, key=lambda view: view.lag_p99_ms)
            found["view_lag_p50_ms"] = finite(oldest.lag_p50_ms)
            found["view_lag_p99_ms"] = finite(oldest.lag_p99_ms)
        found |= _reads(results.reads)
        found["dt_p50_ms"] = results.dt_ms.p50
        found["core_mib_per_s"] = noise.core.mib_per_s if noise and noise.core else None
        found["top_cpu_mean_pct"] = _top_cpu_pct(run, results)
    return found


def _of_same_names(part: StrictModel) -> dict[str, float | None]:
    """Return the figures that have the same name in a record and in FIGURES."""
    values = {key: getattr(part, key) for key in BY_KEY if key in type(part).model_fields}
    return {key: None if value is None else finite(value) for key, value in values.items()}


def _costs(results: Results) -> dict[str, float | None]:
    found: dict[str, float | None] = {
        f"{name}_cpu_mean_pct": results.processes[name].cpu_mean_pct
        for name in ("broker", "reader")
        if name in results.processes
    }
    if support := [of.cpu_mean_pct for name, of in results.processes.items() if name in SUPPORT]:
        found["support_cpu_mean_pct"] = sum(support)
    if engine := results.engine:
        pct_per_s = engine.cpu_s and engine.cpu_mean_pct / engine.cpu_s
        found["cpu_user_pct"] = pct_per_s * engine.cpu_user_s
        found["cpu_system_pct"] = pct_per_s * engine.cpu_system_s
        if engine.rss_max:
            found["rss_max_gib"] = engine.rss_max.gib
            found["rss_max_at_s"] = engine.rss_max.at_s
    return found


def _top_cpu_pct(run: RunRecord, results: Results) -> float | None:
    means = [results.top[name].cpu_pct.mean for name in run.engine_services if name in results.top]
    known = [mean for mean in means if mean is not None]
    return sum(known) if known and len(known) == len(means) else None


def _reads(reads: Sequence[Answers]) -> dict[str, float | None]:
    """Return the response times of the slowest query, and the ages of the query with the oldest
    answers."""
    times, ages = [of.time for of in reads if of.time], [of.age for of in reads if of.age]
    found: dict[str, float | None] = {}
    for what, all_of in (("time", times), ("age", ages)):
        if all_of:
            worst = max(all_of, key=lambda of: of.p99_ms)
            found[f"read_{what}_p50_ms"] = finite(worst.p50_ms)
            found[f"read_{what}_p99_ms"] = finite(worst.p99_ms)
    return found


def finite(value: float) -> float | None:
    """Return the value, or None if it is infinite, since flat records can't contain infinity."""
    return value if math.isfinite(value) else None


class Grade(StrEnum):
    """Severities of warnings, the most serious first."""

    WRONG = "Figures may be wrong"
    DOUBTFUL = "Figures are less certain"
    COMPARING = "Before comparing"


def warnings_of(run: RunRecord) -> dict[Grade, list[str]]:
    """Return warnings about the figures, and caveats of the engine, by how much they matter."""
    contradictions = _contradictions(run)
    caveats = []
    if (runtime := runtime_of(run)) in (NATIVE, MADE_HERE, ON_KUBERNETES, SMALL):
        caveats.append(
            f"Runtime {runtime}: Apache Kafka stands in for Redpanda, and Apicurio for its"
            " registry. Don't compare with runs of another runtime."
        )
    if run.results and not run.results.engine:
        caveats.append(NO_COST)
    return {
        Grade.WRONG: contradictions,
        Grade.DOUBTFUL: [of for of in measurement_warnings(run) if of not in contradictions],
        Grade.COMPARING: [*caveats, *caveats_of(run)],
    }


def caveats_of(run: RunRecord) -> list[str]:
    """Return caveats for comparisons: other engines on the machine, missing views, and the engine's
    own."""
    found = []
    if run.beside:
        others = " and ".join(run.beside)
        found.append(
            f"{others} read the same input on this machine at the same time. An engine that shares"
            " a machine may lag and cost more than alone: compare only with engines of the same"
            " run."
        )
    return [*found, *view_caveats(run), *run.caveats]


def measurement_warnings(run: RunRecord) -> list[str]:
    """Return reasons why the figures of a run are less certain than usual."""
    if not (results := run.results):
        return noise.warnings(run)
    found = [*results.verdict.warnings, *noise.warnings(run)]
    if run.arguments and run.arguments.pageviews_per_s:  # at rate 0 there is no verdict
        found += _of_window(results.verdict)
    if results.noise and results.noise.machine_busy_pct > BUSY_PCT:
        found.append(
            f"Busy machine: more than {BUSY_PCT:.0f} % of all cores' time was used. The engine may"
            " have got too little CPU time because of other processes."
        )
    found += _throttled(run, results)
    return [*found, *(of for of in _contradictions(run) if of not in found)]


def _throttled(run: RunRecord, results: Results) -> list[str]:
    """Return a warning for each service that its CPU limit stopped for a relevant time."""
    found = []
    for name, cost in results.processes.items():
        if cost.throttled_pct is None or cost.throttled_pct <= THROTTLED_PCT:
            continue
        effect = (
            "with a higher limit it may be faster"
            if name in run.engine_services
            else "the engine may have got its input late"
        )
        found.append(
            f"CPU limit of {name}: it was used up in {cost.throttled_pct:.1f} % of the periods of"
            f" 100 ms, so {effect}. Raise it in the manifest (docs/cluster.md)."
        )
    return found


def _contradictions(run: RunRecord) -> list[str]:
    """Return warnings about two records of a run that contradict each other."""
    if not (results := run.results):
        return []
    found = []
    if results.littles_law and not results.littles_law.holds:
        found.append(littles_law_warning(results.littles_law))
    # With faults, top's figures differ anyway, because processes end between two samples.
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
    """Return the runtime. Locally built images count as a separate runtime, since they contain
    another broker, and so do pods that share nodes and cores."""
    return runtime_label(described.runtime, described.settings)


def runtime_label(runtime: str, settings: Mapping[str, Scalar], is_in_memory: bool = True) -> str:
    """Return the runtime as in `runtime_of`, and whether the services kept their data on disk."""
    if runtime == ON_KUBERNETES and settings.get("kubernetes_small", False):
        runtime = SMALL
    elif runtime == "compose" and settings.get("airgap", False):
        runtime = MADE_HERE
    return runtime if is_in_memory else f"{runtime}, data on disk"


def absent_views(run: RunRecord) -> list[str]:
    """Return the views that the engine does not create, as it declares or as verification found."""
    found = run.verified.named(ViewStatus.ABSENT) if run.verified else []
    return list(dict.fromkeys([*run.absent_views, *found]))


def count_views(run: RunRecord) -> tuple[int, int] | None:
    """Return the engine's number of views and the workload's; None if unknown."""
    of = len(run.verified.views) if run.verified else run.workload_views
    return (of - len(absent_views(run)), of) if of else None


def view_caveats(run: RunRecord) -> list[str]:
    """Return a caveat if the engine does not create all views, since then it has less work."""
    missing, there = absent_views(run), count_views(run)
    if not (missing and there):
        return []
    has = f"{run.engine} has {there[0]} of {there[1]} views, not {', '.join(missing)}"
    return [f"{has}. So it has less work than engines with all views."]
