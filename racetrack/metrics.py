"""Registry of all figures: their keys, titles, units and meanings, and which direction is better.

All reports and the live page take names and units from here. `racetrack/analysis/windows.py`
computes the values of a window, and `racetrack/run/live/figures.py` those of a running session: a
new figure is one entry here and one computation there. Code that needs a certain figure uses the
name of its entry. Figures cover the window that the verdict judged, unless their meaning states
otherwise.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from racetrack.units import BYTES_PER_GIB

# Differences that the harness does not resolve, as `./race calibrate` shows (docs/measured.md).
LAG_WITHIN_MS = 25.0
CAPACITY_WITHIN = 0.05
COST_WITHIN = 0.05
FOREIGN_WITHIN_PCT = 2.5
RECOVERY_WITHIN_S = 1.0
# Costs vary by a few percent from run to run, so more digits would be noise.
DIGITS = 3
NOT_MEASURED, NEVER = "n/a", "never"
# Formats of values by unit; values of other units have DIGITS significant digits.
FORMS = {
    "% of a core": "{:,.1f}",
    "% of all cores": "{:,.2f}",
    "% of real time": "{:,.2f}",
    "GiB": "{:,.2f}",
    "GiB/million": "{:,.4f}",
    "MiB/s": "{:,.0f}",
    "ms": "{:,.0f}",
    "ns": "{:,.1f}",
    "events/s": "{:,.1f}",
    "/s": "{:,.0f}",
    "events": "{:,.0f}",
    "s": "{:,.0f}",
}


@dataclass(frozen=True)
class Live:
    """Presentation of a figure in a running session: in `chart` of the live page, with a line for
    each value of `labels`; and to Prometheus as `exported`, multiplied by `factor`. `panel` is true
    if it is in the panel of each engine. `look` is `reference` for the line with which others are
    compared, and `legend` for a figure that would flatten the others if it was drawn."""

    chart: str
    labels: tuple[str, ...] = ()
    exported: str = ""
    factor: float = 1.0
    panel: bool = False
    look: Literal["", "reference", "legend"] = ""


@dataclass(frozen=True)
class Metric:
    """A figure. `key` is its name in files and ends with the unit; `means` explains it in one or
    two sentences.

    A difference below `within` (relative) or `within_abs` (in `unit`) is a tie, since the harness
    does not resolve it; `error` is the key of a figure with the value's own error, which counts if
    it is larger. `per` is what has a value of its own: a window at a rate or at saturation, a whole
    run (over all its rates), a fault, or an instant of a running session. `form` replaces the
    format of the unit. `best` is the predicate of a sentence about the best engine. Engines of
    different classes `alike` (a key of `racetrack.results.classes.TITLES`) are not compared.

    `columns` are the tables with a column for it: those of loads, of whole runs, or both. `line` is
    the line of a run's summary that lists it. `live` is how a running session shows it."""

    key: str
    title: str
    unit: str
    means: str
    better: Literal["less", "more", ""] = ""
    best: str = ""
    alike: str = ""
    within: float = 0.0
    within_abs: float = 0.0
    error: str = ""
    per: Literal["window", "saturation", "run", "fault", "now"] = "window"
    form: str = ""
    columns: Literal["", "load", "run", "load run"] = ""
    line: str = ""
    live: Live | None = None

    @property
    def number_form(self) -> str:
        """Format of values; if it is empty, they have DIGITS significant digits."""
        return self.form or FORMS.get(self.unit, "")

    def number(self, value: float | None) -> str:
        """Format a value without its unit; `n/a` if it was not measured, `never` for an infinite
        time until something happens."""
        if value is None:
            return NOT_MEASURED
        if self.unit in ("s", "min") and math.isinf(value):
            return NEVER
        form = self.number_form
        return form.format(value) if form and math.isfinite(value) else significant(value)

    def text(self, value: float | None) -> str:
        """Format a value with its unit."""
        number, space = self.number(value), "" if self.unit.startswith("/") else " "
        return number if number in (NOT_MEASURED, NEVER) else f"{number}{space}{self.unit}"


def significant(value: float, digits: int = DIGITS) -> str:
    """Format a number with significant digits, without an exponent: `1,230`, `76.2`, `0.0457`."""
    if not value or not math.isfinite(value):
        return "infinite" if math.isinf(value) else f"{value:g}"
    places = _places(value, digits)
    return f"{round(value, places):,.{max(0, places)}f}"


def rounded(value: float, digits: int = DIGITS) -> float:
    """Round a number to significant digits."""
    return round(value, _places(value, digits)) if value and math.isfinite(value) else value


def _places(value: float, digits: int) -> int:
    return digits - 1 - math.floor(math.log10(abs(value)))


def sustained(bound_ms: float) -> Metric:
    """Return the figure of a search for a bound of the lag."""
    bound = f"{bound_ms / 1000:g}"
    return Metric(
        f"sustained_{bound}s_per_s",
        f"sustained within {bound} s",
        "/s",
        f"Highest rate of a search at which the p99 of the view lag stayed within {bound} s.",
        better="more",
        best=f"goes furthest within {bound} s of view lag",
        within=CAPACITY_WITHIN,
        per="run",
        columns="run",
    )


_ALL: list[Metric] = []


def _registered(metric: Metric) -> Metric:
    _ALL.append(metric)
    return metric


def _metric(key: str, title: str, unit: str, means: str, **more: Any) -> Metric:
    return _registered(Metric(key, title, unit, means, **more))


CPU_MEAN = _metric(
    "cpu_mean_pct",
    "CPU mean",
    "% of a core",
    "Mean CPU use of all processes of the engine, from the kernel's accounting, in percent of"
    " one core; 200 % are two cores.",
    better="less",
    within=COST_WITHIN,
    columns="load",
)
MEMORY = _metric(
    "memory_gib",
    "memory",
    "GiB",
    "Memory of the engine: PSS plus files on tmpfs or, if the kernel denied access, resident"
    " memory. The maximum over the rates of a run.",
    better="less",
    within=COST_WITHIN,
    per="run",
    columns="load run",
)
RSS_MAX = _metric(
    "rss_max_gib",
    "memory max",
    "GiB",
    "Maximum resident memory of the engine's processes between loading the demo and the end of"
    " the load, sampled every second from the kernel's accounting.",
    better="less",
    within=COST_WITHIN,
)
RSS_MAX_AT = _metric(
    "rss_max_at_s",
    "memory max at",
    "s",
    "Time of the memory maximum, in seconds after the rate was set.",
)
PSS_MAX = _metric(
    "pss_max_gib",
    "PSS max",
    "GiB",
    "Memory of the engine's processes with shared pages counted once (proportional set size)."
    " Read under load, after the window that was judged; n/a if the kernel denied access.",
    better="less",
)
TMPFS_MAX = _metric(
    "tmpfs_max_gib",
    "tmpfs max",
    "GiB",
    "Files of the engine on tmpfs, without mapped pages, which PSS includes. Read with PSS.",
    better="less",
)
LIVE_HEAP = _metric(
    "live_heap_gib",
    "live heap",
    "GiB",
    "Heap of the engine's JVMs after a full garbage collection, when the load was paused and"
    " the engine had had time to drain; n/a if there is no JVM, or if a JVM did not answer.",
    better="less",
)
CPU_PER_MILLION = _metric(
    "cpu_s_per_million",
    "cost",
    "CPU-s/million",
    "CPU seconds of the engine per million events that it counted, from the kernel's"
    " accounting; n/a below 1,000 events, where the base cost dominates.",
    better="less",
    best="uses the least CPU time",
    within=COST_WITHIN,
    columns="load",
)
LAG_P50 = _metric(
    "lag_p50_ms",
    "lag p50",
    "ms",
    "Lag is the age of the oldest event that is due but not yet counted, at every instant"
    " and in the partition where it is largest. Median over the window's time.",
    better="less",
    within_abs=LAG_WITHIN_MS,
    columns="load",
    line="lag",
)
LAG_P99 = _metric(
    "lag_p99_ms",
    "lag p99",
    "ms",
    "Lag not exceeded in 99 % of the window's time.",
    better="less",
    within_abs=LAG_WITHIN_MS,
    columns="load",
    line="lag",
)
LAG_MAX = _metric(
    "lag_max_ms",
    "lag max",
    "ms",
    "The largest lag in the window.",
    line="lag",
)
PROCESSING_LAG_P50 = _metric(
    "processing_lag_p50_ms",
    "processing lag p50",
    "ms",
    "Processing lag is the lag right after an update, so it excludes the wait for the next"
    " update. Median, with each update weighted by the time since the previous one.",
    better="less",
    line="lag",
)
PROCESSING_LAG_P99 = _metric(
    "processing_lag_p99_ms",
    "processing lag p99",
    "ms",
    "Processing lag not exceeded in 99 % of the window's time.",
    better="less",
)
VIEW_LAG_ERROR = _metric(
    "view_lag_error_ms",
    "view lag error",
    "ms",
    "View lag may be too low by up to this: the time between two tracer events of the view.",
)
VIEW_LAG_P50 = _metric(
    "view_lag_p50_ms",
    "view lag p50",
    "ms",
    "View lag is the age of the oldest tracer event that is due but not in the view, at every"
    " instant (docs/views.md). Median over time, of the view with the highest p99.",
    better="less",
    within_abs=LAG_WITHIN_MS,
    error=VIEW_LAG_ERROR.key,
)
VIEW_LAG_P99 = _metric(
    "view_lag_p99_ms",
    "view lag p99",
    "ms",
    "Lag of that view not exceeded in 99 % of the window's time.",
    better="less",
    best="is the freshest",
    within_abs=LAG_WITHIN_MS,
    error=VIEW_LAG_ERROR.key,
    columns="load",
)
READ_TIME_P50 = _metric(
    "read_time_p50_ms",
    "read time p50",
    "ms",
    "Median response time of reads, from when a read was due to its answer, of the query with"
    " the highest p99 (docs/views.md).",
    better="less",
    within_abs=LAG_WITHIN_MS,
)
READ_TIME_P99 = _metric(
    "read_time_p99_ms",
    "read time p99",
    "ms",
    "99th percentile of the response time of that query. Of views that are published elsewhere, a"
    " client has a copy, which answers.",
    better="less",
    best="answers fastest",
    alike="results",
    within_abs=LAG_WITHIN_MS,
    columns="load",
)
READ_AGE_P50 = _metric(
    "read_age_p50_ms",
    "read age p50",
    "ms",
    "Median age of answers: the age of the oldest tracer event that was due but missing in the"
    " answer when it arrived. Of the query with the highest p99.",
    better="less",
    within_abs=LAG_WITHIN_MS,
)
READ_AGE_P99 = _metric(
    "read_age_p99_ms",
    "read age p99",
    "ms",
    "99th percentile of the age of answers to that query.",
    better="less",
    within_abs=LAG_WITHIN_MS,
)
LAG_SLOPE = _metric(
    "lag_slope_pct",
    "lag slope",
    "% of real time",
    "Growth of the processing lag; 1 % is 10 ms per second. The verdict compares its 98 %"
    " interval with the threshold (by default 1 %): kept up if the interval is below it, fell"
    " behind if it is above.",
)
DT_P50 = _metric(
    "dt_p50_ms",
    "dt p50",
    "ms",
    "Freshness as defined in 2022: the current time minus the newest received_at that the"
    " engine has counted. It does not show a lagging partition if another is current. Median"
    " over the updates in the window.",
    better="less",
)
RSS_GROWTH = _metric(
    "rss_growth_gib_per_million",
    "memory growth",
    "GiB/million",
    "Growth of resident memory in the window, per million events counted.",
    better="less",
)
CPU_USER = _metric(
    "cpu_user_pct",
    "CPU user",
    "% of a core",
    "Mean CPU use of the engine in user mode.",
    better="less",
)
CPU_SYSTEM = _metric(
    "cpu_system_pct",
    "CPU system",
    "% of a core",
    "Mean CPU use of the engine in kernel mode.",
    better="less",
)
TOP_CPU = _metric(
    "top_cpu_mean_pct",
    "CPU by top",
    "% of a core",
    "Mean CPU use of the engine over the samples of top in the sampling window, as in 2022.",
)
ACHIEVED = _metric(
    "achieved_events_per_s",
    "achieved",
    "events/s",
    "Events per second that the generator handed over in the window.",
)
PROCESSED = _metric(
    "processed_events_per_s",
    "processed",
    "events/s",
    "Events per second that the engine counted in the window; n/a if it reported no update.",
)
BROKER_CPU = _metric(
    "broker_cpu_mean_pct",
    "broker CPU",
    "% of a core",
    "Mean CPU use of the broker.",
    better="less",
)
BROKER_FOR_ENGINE = _metric(
    "broker_for_engine_cpu_s_per_million",
    "broker for the engine",
    "CPU-s/million",
    "CPU seconds of the broker per million events, without those that it uses at this rate while"
    " a client only reads the input: a difference, which noise may take below 0.",
    better="less",
    columns="load",
)
READER_CPU = _metric(
    "reader_cpu_mean_pct",
    "reader CPU",
    "% of a core",
    "Mean CPU use of the view reader (docs/views.md).",
)
CLIENT_CPU = _metric(
    "client_cpu_mean_pct",
    "client CPU",
    "% of a core",
    "Mean CPU use of the clients that receive the engine's results in processes of their own.",
    columns="load",
)
GENERATOR_CPU = _metric(
    "generator_cpu_mean_pct",
    "generator CPU",
    "% of a core",
    "Mean CPU use of the load generator.",
)
SUPPORT_CPU = _metric(
    "support_cpu_mean_pct",
    "support CPU",
    "% of a core",
    "Mean CPU use of MySQL, the registry and Debezium together, which every engine needs for"
    " its input.",
)
HARNESS_CPU = _metric(
    "harness_cpu_pct",
    "harness CPU",
    "% of a core",
    "Mean CPU use of the harness and its samplers.",
    live=Live("noise"),
)
FOREIGN_CPU = _metric(
    "foreign_cpu_pct",
    "foreign CPU",
    "% of a core",
    "Mean CPU use of programs that are neither the stack's services nor the harness.",
    within_abs=FOREIGN_WITHIN_PCT,
    live=Live("noise", exported="foreign_cpu_cores", factor=0.01),
)
KERNEL_CPU = _metric(
    "kernel_cpu_pct",
    "kernel CPU",
    "% of a core",
    "CPU time of the kernel that is not attributed to a program, for interrupts and wake-ups."
    " Engines whose threads often sleep and wake up cause much of it.",
)
STEAL = _metric(
    "steal_pct",
    "steal",
    "% of all cores",
    "CPU time that the hypervisor took, for other machines or itself.",
    live=Live("noise", exported="steal_ratio", factor=0.01),
)
CORE_SPEED = _metric(
    "core_mib_per_s",
    "speed of a core",
    "MiB/s",
    "MiB of BLAKE2b per second of CPU time.",
)
MEMORY_READ = _metric(
    "memory_read_ns",
    "read from memory",
    "ns",
    "Median time of a read at a random place of 64 MiB, longer where another virtual"
    " machine uses memory and caches.",
)
MACHINE_BUSY = _metric(
    "machine_busy_pct",
    "machine busy",
    "% of all cores",
    "CPU use of everything on the machine.",
    form="{:,.0f}",
    live=Live("noise", look="legend"),
)
CAPACITY = _metric(
    "capacity_per_s",
    "saturation throughput",
    "/s",
    "Also called capacity: the rate at which the slowest view's count grows while the"
    " engine always has a backlog.",
    better="more",
    best="has the highest throughput",
    within=CAPACITY_WITHIN,
    per="saturation",
    columns="run",
)
MEMORY_FULL_AFTER = _metric(
    "memory_full_after_min",
    "heap full after",
    "min",
    "At half of the capacity: minutes after the first warm-up until the engine's heap would be full"
    " of live objects, if these keep growing per event as they did until the end of saturation;"
    " never if they did not grow by 1 % of the heap, n/a if by 1 to 5 %, or without a JVM.",
    better="more",
    per="saturation",
    form="{:,.0f}",
    columns="run",
)
SHARE_OF_IDEAL = _metric(
    "share_of_ideal_pct",
    "share of ideal",
    "% of ideal",
    "Growth of capacity since the fewest replicas, in percent of the growth of replicas.",
    better="more",
    per="run",
    form="{:,.0f}",
    columns="run",
)
SUSTAINED = (_registered(sustained(1_000)), _registered(sustained(5_000)))
SATURATED_COST = _metric(
    "saturated_cpu_s_per_million",
    "cost at saturation",
    "CPU-s/million",
    "CPU seconds of the engine per million events at saturation.",
    better="less",
    best="uses the least CPU time when saturated",
    within=COST_WITHIN,
    per="saturation",
    columns="run",
)
SATURATED_BROKER = _metric(
    "saturated_broker_for_engine_cpu_s_per_million",
    "broker for the engine at saturation",
    "CPU-s/million",
    "CPU seconds of the broker for the engine at saturation, likewise per million events.",
    better="less",
    per="saturation",
    columns="run",
)
BASE_CPU = _metric(
    "base_cpu_pct",
    "base CPU",
    "% of a core",
    "CPU use of the engine at rate 0, extrapolated by a line through the rates of a run; n/a if"
    " its use at these is not on a line.",
    better="less",
    best="has the lowest base CPU use",
    within_abs=FOREIGN_WITHIN_PCT,
    per="run",
    columns="run",
)
MARGINAL_COST = _metric(
    "marginal_cpu_s_per_million",
    "marginal cost",
    "CPU-s/million",
    "CPU seconds per further million events: the slope of that line.",
    better="less",
    within=COST_WITHIN,
    per="run",
    columns="run",
)
IDLE_SHARE = _metric(
    "idle_share_pct",
    "idle share",
    "% of the time",
    "Share of the window at saturation in which the engine may have been idle.",
    per="saturation",
)
MAX_BACKLOG = _metric(
    "max_backlog_events",
    "backlog max",
    "events",
    "With a load profile: the largest number of events that were due but not counted.",
    better="less",
)
AFTER_PEAK = _metric(
    "after_peak_s",
    "recovery",
    "s",
    "With a load profile: seconds from the end of a spike until the lag was normal again; 0 if it"
    " was normal before the end, n/a if it did not recover in this run.",
    better="less",
    form="{:,.1f}",
)
COUNTED_BEFORE = _metric(
    "counted_before_events",
    "counted before the fault",
    "events",
    "Events that the engine had counted when the fault began.",
    per="fault",
    columns="run",
)
RATE_AT_FAULT = _metric(
    "rate_at_fault_events_per_s",
    "rate at the fault",
    "events/s",
    "Events per second that the generator handed over in the window with the fault.",
    per="fault",
    columns="run",
)
UP_AFTER = _metric(
    "up_after_s",
    "up after",
    "s",
    "Seconds from the beginning of a fault until the services passed their health checks again and"
    " the engine's views were there.",
    better="less",
    within_abs=RECOVERY_WITHIN_S,
    per="fault",
    form="{:,.1f}",
    columns="run",
)
NORMAL_AFTER = _metric(
    "normal_after_s",
    "recovery time",
    "s",
    "Seconds from the beginning of a fault until the services were up and the lags of the count and"
    " of all traced views normal: at most 2 s, or their maximum in the ten seconds before. A run"
    " watches for up to five minutes; what was not normal by then has that as a lower bound.",
    better="less",
    best="recovers fastest",
    within_abs=RECOVERY_WITHIN_S,
    per="fault",
    form="{:,.1f}",
    columns="run",
)
LOST = _metric(
    "lost_events",
    "lost",
    "events",
    "Events that a view lacked after a fault, when the engine had had time to drain: of the view"
    " that lacked most, n/a unless views were verified.",
    better="less",
    per="fault",
    columns="run",
)
COUNTED_TWICE = _metric(
    "counted_twice_events",
    "counted twice",
    "events",
    "Events that a view counted too often after a fault, likewise.",
    better="less",
    per="fault",
    columns="run",
)
WRONG_VIEWS = _metric(
    "wrong_views",
    "views wrong",
    "views",
    "Views that were wrong after a fault, likewise.",
    better="less",
    per="fault",
    columns="run",
)

# Figures of a running session, as of now; the noise figures above are among them.
OFFERED = _metric(
    "offered_per_s",
    "offered",
    "/s",
    "Events due per second.",
    per="now",
    live=Live("rate", exported="offered_per_second", look="reference"),
)
PUBLISHED = _metric(
    "published_per_s",
    "published",
    "/s",
    "Events published to the broker per second.",
    per="now",
    live=Live("rate", exported="published_per_second"),
)
LAG = _metric(
    "lag_ms",
    "lag",
    "ms",
    "Age of the oldest event that is due but missing in the view.",
    per="now",
    live=Live("lag", ("engine", "view"), "lag_seconds", 0.001, panel=True),
)
COUNTED = _metric(
    "counted_per_s",
    "counted",
    "/s",
    "Events counted by the engine per second.",
    per="now",
    live=Live("rate", ("engine",), "counted_per_second", panel=True),
)
BACKLOG = _metric(
    "backlog_events",
    "backlog",
    "events",
    "Events that are due but not counted.",
    per="now",
    live=Live("backlog", ("engine",), "backlog_events", panel=True),
)
READ_TIME = _metric(
    "read_ms",
    "read time",
    "ms",
    "Median time to answer a read.",
    per="now",
    live=Live("reads", ("engine",), "read_seconds", 0.001, panel=True),
)
CPU = _metric(
    "cpu_pct",
    "CPU",
    "% of a core",
    "CPU time in user and kernel mode between two readings, divided by the time between them.",
    per="now",
    live=Live("cpu", ("service",), "cpu_cores", 0.01, panel=True),
)
RSS = _metric(
    "rss_gib",
    "resident memory",
    "GiB",
    "Resident memory of all processes of a service.",
    per="now",
    live=Live("memory", ("service",), "memory_bytes", BYTES_PER_GIB, panel=True),
)
BROWSER_CPU = _metric(
    "browser_cpu_pct",
    "browsers",
    "% of a core",
    "CPU use of web browsers on this machine.",
    per="now",
    live=Live("noise"),
)
# Charts of the live page: title and meaning of each.
CHARTS = {
    "rate": (
        "Rate",
        "events per second: offered, published to the broker, counted by the engines",
    ),
    "lag": (
        "Lag",
        "age of the oldest event that is due but not in the view: the highest of each second",
    ),
    "cpu": ("CPU", "% of a core"),
    "memory": ("Memory", "resident"),
    "noise": ("Noise", "steal, CPU of other programs"),
}

# In the order in which they are written and shown.
METRICS: Mapping[str, Metric] = {metric.key: metric for metric in _ALL if metric.per != "now"}
LIVE: Mapping[str, tuple[Metric, Live]] = {
    metric.key: (metric, metric.live) for metric in _ALL if metric.live
}
# Columns of tables: figures at a load, and those of whole runs.
AT_RATE = tuple(metric for metric in METRICS.values() if "load" in metric.columns)
OVERALL = (
    *(metric for metric in METRICS.values() if metric.columns == "run"),
    *(metric for metric in AT_RATE if "run" in metric.columns),
)
# Figures that decide which engine is better, in the order of the answers.
QUESTIONS = (
    VIEW_LAG_P99,
    *SUSTAINED,
    CAPACITY,
    CPU_PER_MILLION,
    SATURATED_COST,
    BASE_CPU,
    READ_TIME_P99,
    NORMAL_AFTER,
)
_SUSTAINED = re.compile(r"sustained_(\d+(?:\.\d+)?)s_per_s")


def is_registered(key: str) -> bool:
    """Return whether there is a figure with this key; another version may have had others."""
    return key in METRICS or _SUSTAINED.fullmatch(key) is not None


def metric_of(key: str) -> Metric:
    """Return the figure with this key; users may choose the bounds of sustained rates."""
    if key not in METRICS and (match := _SUSTAINED.fullmatch(key)):
        return sustained(1000 * float(match[1]))
    return METRICS[key]
