"""Models of `results` in `run.json`: lag, verdict, costs, freshness and recoveries.

All figures are computed over the judged window (`verdict.from_ms` to `verdict.until_ms`), unless a
description names another one.
"""

from collections.abc import Mapping
from enum import StrEnum

from pydantic import Field

from racetrack.results.base import InfinityAsNull, StrictModel


class Slope(StrictModel):
    """Growth in percent of real time (1 % is 10 ms per second) with its interval."""

    pct: float = Field(description="Theil-Sen slope.")
    low_pct: float = Field(description="Lower end.")
    high_pct: float = Field(description="Upper end.")


class LagShare(StrictModel):
    """Share of one stage in the processing lag."""

    p50_ms: InfinityAsNull = Field(description="Median, milliseconds.")
    slope: Slope | None = Field(description="Its growth; null if the verdict did not depend on it.")


class LagAtMost(StrictModel):
    """A point of the lag's distribution over time."""

    share: float = Field(ge=0, le=1, description="Share of the window's time.")
    lag_ms: InfinityAsNull = Field(
        description="The lag was at most this for that share of the time."
    )


class Lag(StrictModel):
    """The lag behind a verdict, milliseconds; null is infinite.

    Lag is the age of the oldest pageview that is due and not counted, at every instant: what a
    reader of the view sees. Processing lag is the lag right after an update, without the wait for
    the next one; its quantiles weight each update by the time before it.
    """

    slope: Slope = Field(description="Of the processing lag.")
    lag_p50_ms: InfinityAsNull = Field(description="Median over the window's time.")
    lag_p90_ms: InfinityAsNull = Field(description="90 % of the time at most this.")
    lag_p99_ms: InfinityAsNull = Field(description="99 % of the time at most this.")
    lag_max_ms: InfinityAsNull = Field(description="Largest.")
    lag_distribution: tuple[LagAtMost, ...] = Field(description="By rising share.")
    processing_lag_p50_ms: InfinityAsNull = Field(description="Median.")
    processing_lag_p99_ms: InfinityAsNull = Field(description="99 % of the time at most this.")
    processing_lag_max_ms: InfinityAsNull = Field(description="Largest.")
    generator: LagShare
    broker: LagShare
    engine: LagShare


class Throughput(StrictModel):
    """Pageviews per second from the curves."""

    offered_per_s: float = Field(description="Due by the schedule.")
    handed_over_per_s: float = Field(description="Given to the generator's client library.")
    published_per_s: float = Field(description="In the broker.")
    processed_per_s: float | None = Field(
        description="Counted by the engine; null if it reported no update in the window."
    )


class VerdictKind(StrEnum):
    """Kind of verdict."""

    KEPT_UP = "kept up"
    FELL_BEHIND = "fell behind"
    GENERATOR_BOUND = "generator-bound"
    BROKER_BOUND = "broker-bound"
    UNDECIDED = "undecided"


class Verdict(StrictModel):
    """Verdict on whether the engine kept up, see docs/verdict.md."""

    kind: VerdictKind = Field(description="The verdict.")
    reason: str = Field(description="The reason, with numbers.")
    warnings: tuple[str, ...] = Field(description="Reasons to doubt it.")
    threshold_pct: float = Field(
        description="Growth that counts as falling behind, percent of real time."
    )
    from_ms: int = Field(
        description="Start of the judged window, epoch milliseconds: the end of the transient, or"
        " the start of the sampling window."
    )
    until_ms: int = Field(description="End of the judged window, epoch milliseconds.")
    window_s: float = Field(
        description="Seconds judged: less than the window if the recording ends early."
    )
    updates: int = Field(description="Updates of the engine in them.")
    next_update_s: float | None = Field(
        default=None,
        description="Seconds from the window's end to the engine's next update; null if none came.",
    )
    asked_per_s: float = Field(description="Requested rate.")
    throughput: Throughput
    measured: Lag | None = Field(description="null if no slope could be computed.")
    shortest_window_s: float | None = Field(
        description="Estimated length of a window that would decide; null if unknown, or if this"
        " one did."
    )


class Spread(StrictModel):
    """Statistics over samples; null without samples."""

    mean: float | None = Field(description="Mean.")
    sd: float | None = Field(description="Sample standard deviation; null for one sample.")
    sem: float | None = Field(description="Standard error of the mean; null for one sample.")
    max: float | None = Field(description="Largest sample.")
    samples: tuple[float, ...] = Field(description="In order.")


class TopStatistics(StrictModel):
    """CPU and memory of a service in the sampling window, as in the experiment of 2022."""

    cpu_pct: Spread = Field(description="Samples of top, percent of one core.")
    rss_gib: Spread = Field(description="Resident memory, GiB, from the kernel's account.")
    kernel_cpu_pct: float = Field(
        description="CPU by the kernel's account over the same seconds, percent of one core."
    )


class MemoryMax(StrictModel):
    """Maximum resident memory, from when the demo was loaded until the load ended."""

    gib: float = Field(description="GiB.")
    at_s: float = Field(description="Seconds after the rate was set; below 0: before it.")


class Cost(StrictModel):
    """CPU and memory of a service, or of all services of the engine, from kernel counters."""

    cpu_mean_pct: float = Field(description="Mean CPU, percent of one core.")
    cpu_s: float = Field(description="CPU seconds, user and system.")
    cpu_user_s: float = Field(description="CPU seconds in user mode.")
    cpu_system_s: float = Field(description="CPU seconds in the kernel.")
    cpu_s_per_million: float | None = Field(
        default=None,
        description="CPU seconds per million pageviews counted by the engine; null below 1,000"
        " pageviews, where the base cost dominates.",
    )
    rss_max: MemoryMax | None = Field(
        default=None, description="Over the whole run, not only the judged window."
    )
    rss_growth_gib_per_million: float | None = Field(
        default=None,
        description="Growth of resident memory per million pageviews; null as above.",
    )
    pss_max_gib: float | None = Field(
        default=None,
        description="Proportional set size, GiB (shared pages split among their processes): the"
        " larger of two readings, just before and just after the sampling window. null if the"
        " kernel did not allow it.",
    )
    tmpfs_max_gib: float | None = Field(
        default=None,
        description="Its files on tmpfs, GiB, without mapped pages, which are in pss_max_gib; the"
        " same two readings; null as above.",
    )
    live_heap_gib: float | None = Field(
        default=None,
        description="Heap of its JVMs after a full collection, with the load paused, GiB; null"
        " without a JVM, or if one did not answer.",
    )


class Freshness(StrictModel):
    """Freshness as in 2022: now minus the newest received_at seen, milliseconds."""

    mean: float | None = Field(description="Mean over updates.")
    p50: float | None = Field(description="Median.")
    max: float | None = Field(description="Largest.")
    updates: int = Field(description="Number of updates.")
    next_update_s: float | None = Field(
        default=None,
        description="Seconds from the window's end to the next update; null if none came.",
    )


class CoreSpeed(StrictModel):
    """Speed of a core, MiB of BLAKE2b per second of CPU time. A core that is shared with another
    virtual machine is slower."""

    mib_per_s: float = Field(description="Mean in the interval.")
    fastest_mib_per_s: float = Field(description="Fastest second of the run.")

    @property
    def pct(self) -> float:
        """Percent of the fastest second."""
        return 100 * self.mib_per_s / self.fastest_mib_per_s


class NoiseFigures(StrictModel):
    """Means of the machine's activity in an interval, in `results` the judged window; null:
    unknown on this machine. See docs/noise.md."""

    seconds: float = Field(description="Length of the interval.")
    foreign_cpu_pct: float | None = Field(
        description="CPU time of programs that are neither services nor the harness, percent of"
        " one core."
    )
    steal_pct: float = Field(
        description="CPU time that the hypervisor gave to others, percent of all cores' time."
    )
    busy_pct: float = Field(description="CPU time of everything, percent of one core.")
    machine_busy_pct: float = Field(description="The same, percent of all cores' time.")
    harness_cpu_pct: float = Field(
        description="CPU time of the harness and its samplers, percent of one core."
    )
    kernel_cpu_pct: float | None = Field(
        default=None,
        description="CPU time of no program: the kernel's for interrupts and wake-ups, and its"
        " threads'; percent of one core.",
    )
    load_1_min: float = Field(description="Load average over a minute.")
    mhz: float | None = Field(description="Mean frequency of the cores.")
    waited_for_cpu_pct: float | None = Field(
        description="Share of the time with a process waiting for a core (PSI), percent."
    )
    waited_for_memory_pct: float | None = Field(description="The same for memory.")
    waited_for_io_pct: float | None = Field(description="The same for input and output.")
    core: CoreSpeed | None = Field(
        default=None, description="Speed of a core; null if not measured."
    )


class Recovery(StrictModel):
    """Recovery of a lag after a fault."""

    normal_ms: float = Field(description="Maximum lag before the fault, or 2 s if that is more.")
    worst_ms: float | None = Field(
        description="Largest lag until it was normal again; null is infinite."
    )
    after_s: float | None = Field(
        description="Seconds from the start of the fault; null if lag did not recover in the run."
    )


class FaultRecovery(StrictModel):
    """Recovery from one fault."""

    fault: str = Field(description="As on the command line.")
    pageviews: Recovery = Field(description="From due to counted by the engine.")
    purchases: Recovery | None = Field(
        default=None, description="From due to Debezium's topic; absent without one."
    )

    @property
    def lags(self) -> Mapping[str, Recovery]:
        """Recoveries by kind of load."""
        return {
            "pageviews": self.pageviews,
            **({"purchases": self.purchases} if self.purchases else {}),
        }


class LittlesLaw(StrictModel):
    """Little's law, a check of two records of a run against each other: the number of waiting
    pageviews is their rate times their age. If it does not hold, the verdict has a warning."""

    waiting: float = Field(
        description="Mean of due minus counted pageviews in the window, from arrivals.csv and the"
        " totals in the log of freshness."
    )
    rate_times_age: float = Field(
        description="The same from curves.csv: per partition, the rate times the mean age of its"
        " oldest pageview, plus half a pageview."
    )
    ratio: float | None = Field(description="rate_times_age / waiting; null if none waited.")
    tolerance: float = Field(description="Allowed difference, pageviews.")
    holds: bool = Field(description="Whether the difference is within the tolerance.")


class ViewLag(StrictModel):
    """View lag: age of the oldest tracer event that is due and not in the view, at every instant
    of the window, milliseconds; null is infinite. See docs/views.md."""

    name: str = Field(description="View and column.")
    source: str = Field(description="Source of tracer events: the main topic, or a table by CDC.")
    tracer_events_per_s: float = Field(description="Tracer events of this view that became due.")
    updates: int = Field(description="Observed changes of the tracer events in it.")
    kind: VerdictKind = Field(description="The verdict on this view alone.")
    reason: str = Field(description="The reason, with numbers.")
    lag_p50_ms: InfinityAsNull = Field(description="Median over the window's time.")
    lag_p90_ms: InfinityAsNull = Field(description="90 % of the time at most this.")
    lag_p99_ms: InfinityAsNull = Field(description="99 % of the time at most this.")
    lag_max_ms: InfinityAsNull = Field(description="Largest.")


class Quantiles(StrictModel):
    """Quantiles over answers or instants, milliseconds; null is infinite."""

    p50_ms: InfinityAsNull = Field(description="Median.")
    p99_ms: InfinityAsNull = Field(description="99 % of them at most this.")


class CdcLag(StrictModel):
    """Age of the oldest insert of the watched table that was due and had not passed a stage of CDC,
    ten times a second, each up to 0.1 s too high."""

    inserts_per_s: float = Field(description="Inserts that became due.")
    in_database: Quantiles = Field(description="Due and not committed.")
    sent: Quantiles = Field(description="Due and not sent by Debezium, by its own clock.")
    in_topic: Quantiles = Field(description="Due and not in the topic that the engine reads.")


class Answers(StrictModel):
    """Answers to a query that a client sends on a schedule (READS_PER_SECOND), of reads that were
    due in the window. See docs/views.md."""

    query: str = Field(description="View, and the column of its filter.")
    due: int = Field(description="Reads that became due.")
    answered: int = Field(description="Of these, answered by the end of the run.")
    errors: int = Field(description="Of these, refused or failed.")
    first_error: str | None = Field(description="Message of the first error.")
    rows_max: int | None = Field(description="Rows of the largest answer; null without one.")
    time: Quantiles | None = Field(
        description="From due to answered, including the wait for the previous answer; infinite"
        " without an answer; null if none was due."
    )
    service_time: Quantiles | None = Field(
        default=None,
        description="From sent to answered, without that wait, of answers only; null without one.",
    )
    age: Quantiles | None = Field(
        description="Age of the oldest tracer event that was due and not in the answer on arrival;"
        " null without tracer events or without an answer."
    )


class WindowWrites(StrictModel):
    """Latency as in Yahoo's benchmark, of the windows of event time that end in the judged window,
    and the lag meanwhile. See docs/workloads.md."""

    length_ms: int = Field(description="Length of a window.")
    windows: int = Field(description="Number of windows.")
    after_end_p50_ms: InfinityAsNull = Field(
        description="Median time from the end of a window until its last event was counted; below 0"
        " if it was counted before."
    )
    after_end_max_ms: InfinityAsNull = Field(description="Maximum of the same.")
    lag_max_ms: InfinityAsNull = Field(
        description="Maximum lag from the start of the judged window until the last of these was"
        " written."
    )


class Results(StrictModel):
    """Figures over the judged window."""

    offered_pageviews_per_s: float | None = Field(description="Due by the schedule.")
    achieved_pageviews_per_s: float | None = Field(description="Handed over.")
    published_pageviews: int = Field(description="Sum of the end offsets, over the whole run.")
    processed_pageviews: int | None = Field(
        description="Counted by the engine, over the whole run."
    )
    verdict: Verdict
    views: tuple[ViewLag, ...] = Field(
        default=(), description="One per traced view; empty without tracer events."
    )
    reads: tuple[Answers, ...] = Field(
        default=(), description="One per query; empty without reads."
    )
    cdc: CdcLag | None = Field(default=None, description="null if not followed.")
    window_writes: WindowWrites | None = Field(
        default=None, description="null if the workload has no windows of event time."
    )
    dt_ms: Freshness
    engine: Cost | None = Field(
        default=None,
        description="All services of the engine together; null if no process of it is known.",
    )
    processes: dict[str, Cost] = Field(description="Each service of the stack, the engine's first.")
    top: dict[str, TopStatistics] = Field(
        default_factory=dict,
        description="By service, in the sampling window.",
    )
    noise: NoiseFigures | None = Field(default=None, description="null if it could not be read.")
    littles_law: LittlesLaw | None = Field(
        default=None,
        description="null if a side is unknown, or a fault lost counts.",
    )
    faults: tuple[FaultRecovery, ...] = Field(
        default=(), description="One per fault: when lag was normal again."
    )
