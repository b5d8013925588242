"""Every figure of a report: its name, unit, format and meaning.

All are of the window that the verdict judged; a figure of another one says so.
"""

import math
from dataclasses import dataclass

# Costs vary from run to run by some percent: further digits would be noise.
COST_DIGITS = 3


@dataclass(frozen=True)
class Figure:
    """`key` is the column's name in `report.csv`, with its unit; `form` formats a value, to three
    significant digits where it is empty."""

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
        "The most resident memory of the engine's processes at any second of the run, from when the"
        " demo was loaded until the load ended; by the kernel's account.",
    ),
    Figure(
        "rss_max_at_s",
        "memory max at",
        "s",
        "{:,.0f}",
        "When it had that most memory, in seconds after the rate was set.",
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
        "Its files on tmpfs at the same two readings, without what its processes have mapped of"
        " them: that is in its PSS.",
    ),
    Figure(
        "live_heap_gib",
        "live heap",
        "GiB",
        "{:,.2f}",
        "What a full collection left on the heaps of the engine's JVMs, asked for once the load had"
        " been paused and the engine given time to drain. n/a where there is no JVM, or one could"
        " not be asked.",
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
        "How long a client that reads a view waited for the answer, from when it was due, in the"
        " query whose p99 is the highest (docs/views.md). Median.",
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
        "99 % of the answers to that query were at most so old.",
    ),
    Figure("lag_max_ms", "lag max", "ms", "{:,.0f}", "The largest lag in the window."),
    Figure(
        "processing_lag_p50_ms",
        "processing lag p50",
        "ms",
        "{:,.0f}",
        "Processing lag is the lag right after an update: what the engine's work takes, without the"
        " wait for its next update. Median; each update weighs as long as the time before it.",
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
        "How fast the processing lag grows; 1 % is 10 ms per second. The verdict holds its interval"
        " (98 %) against the threshold (1 % unless set): below is kept up, above fell behind.",
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
        "CPU time that stands in no program's account: the kernel's own, for interrupts and"
        " wake-ups. Engines whose threads sleep and wake often cause much of it.",
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
# What the tables show, and what engines are compared by.
SHOWN = ("cpu_mean_pct", "rss_max_gib", "cpu_s_per_million", "lag_p50_ms", "lag_p99_ms")
COMPARED = ("cpu_mean_pct", "rss_max_gib", "cpu_s_per_million", "lag_p50_ms")


def number(key: str, value: float | None) -> str:
    """Return a value as a person reads it, `n/a` where it was not measured."""
    if value is None:
        return "n/a"
    form = BY_KEY[key].form
    return form.format(value) if form else significant(value)


def significant(value: float, digits: int = COST_DIGITS) -> str:
    """Return a number rounded to so many digits, without an exponent: `1,230`, `76.2`, `0.0457`."""
    if not value or not math.isfinite(value):
        return f"{value:g}"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, places):,.{max(0, places)}f}"
