"""Every figure of a report: its name, unit, how it is written, and what it means."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """`key` is the column's name in `report.csv`, with its unit; `form` formats a value."""

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
        "Mean over the samples of top (all processes of the engine), in percent of one core, so"
        " 200 % are two cores. As published in 2022.",
    ),
    Figure(
        "rss_max_gib",
        "memory max",
        "GiB",
        "{:,.2f}",
        "The most resident memory that the engine's processes held at a sample in the window,"
        " from the kernel's account (top rounds it).",
    ),
    Figure(
        "pss_max_gib",
        "PSS max",
        "GiB",
        "{:,.2f}",
        "What the engine's processes held just before the window or just after, whichever was more,"
        " when what several of them share is counted once (proportional set size). n/a where the"
        " kernel did not let us look.",
    ),
    Figure(
        "tmpfs_max_gib",
        "tmpfs max",
        "GiB",
        "{:,.2f}",
        "What its files on tmpfs held then, but for what its processes have mapped of them: that is"
        " in its PSS.",
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
        "{:,.2f}",
        "CPU-seconds of the engine per million pageviews that it counted in the window, from the"
        " kernel's accounting of CPU time in user and system mode.",
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
        "View lag is the age of the oldest mark that is due and not in a view, at every instant, of"
        " the view whose p99 is the highest (docs/views.md). Median over the window's time.",
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
        " question whose p99 is the highest (docs/views.md). Median.",
    ),
    Figure(
        "read_time_p99_ms",
        "read time p99",
        "ms",
        "{:,.0f}",
        "99 % of the answers to that question took at most this.",
    ),
    Figure(
        "read_age_p50_ms",
        "read age p50",
        "ms",
        "{:,.0f}",
        "The age of the oldest mark that was due and not in an answer when it was there, in the"
        " question whose p99 is the highest. Median.",
    ),
    Figure(
        "read_age_p99_ms",
        "read age p99",
        "ms",
        "{:,.0f}",
        "99 % of the answers to that question were at most so old.",
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
        "cpu_user_s",
        "CPU user",
        "s",
        "{:,.2f}",
        "CPU-seconds of the engine in user mode over the window.",
    ),
    Figure(
        "cpu_system_s",
        "CPU system",
        "s",
        "{:,.2f}",
        "CPU-seconds of the engine in the kernel over the window.",
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
        "Pageviews per second that the engine counted in the window; absent where it told of no"
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
        "As CPU mean, for MySQL, the registry and Debezium together; absent from older runs, which"
        " did not sample them.",
    ),
    Figure(
        "harness_cpu_pct",
        "harness CPU",
        "% of a core",
        "{:,.1f}",
        "What measuring cost while sampling, from the kernel's account.",
    ),
    Figure(
        "foreign_cpu_pct",
        "foreign CPU",
        "% of a core",
        "{:,.1f}",
        "CPU time of programs that are neither the stack's services nor the harness, while samples"
        " were taken; absent from older runs.",
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
        "CPU time that the hypervisor gave to other machines; absent from older runs.",
    ),
    Figure(
        "core_mib_per_s",
        "speed of a core",
        "MiB/s",
        "{:,.0f}",
        "How fast known work (BLAKE2b) went on a core while samples were taken, by its own CPU"
        " time. Who shares the core makes it slower, and all that is measured beside it.",
    ),
    Figure(
        "machine_busy_pct",
        "machine busy",
        "% of all cores",
        "{:,.0f}",
        "Mean over top's header lines: everything on the machine that was not idle.",
    ),
)
BY_KEY = {figure.key: figure for figure in FIGURES}
# What the tables show, and what engines are compared by.
SHOWN = ("cpu_mean_pct", "rss_max_gib", "cpu_s_per_million", "lag_p50_ms", "lag_p99_ms")
COMPARED = ("cpu_mean_pct", "rss_max_gib", "cpu_s_per_million", "lag_p50_ms")


def number(key: str, value: float | None) -> str:
    """A value as a person reads it, `n/a` where it was not measured."""
    return "n/a" if value is None else BY_KEY[key].form.format(value)
