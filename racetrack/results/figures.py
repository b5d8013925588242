"""Models of `results` in `run.json`: lag, verdict, costs, freshness and recoveries.

All figures are computed over the judged window (`verdict.from_ms` to `verdict.until_ms`), unless
their description names another window.
"""

from collections.abc import Mapping
from enum import StrEnum

from pydantic import Field

from racetrack.metrics import (
    ACHIEVED,
    AFTER_PEAK,
    CPU_MEAN,
    CPU_PER_MILLION,
    FOREIGN_CPU,
    HARNESS_CPU,
    KERNEL_CPU,
    LIVE_HEAP,
    MACHINE_BUSY,
    MAX_BACKLOG,
    MEMORY_READ,
    PROCESSING_LAG_P50,
    PROCESSING_LAG_P99,
    PSS_MAX,
    RSS_GROWTH,
    STEAL,
    TMPFS_MAX,
)
from racetrack.results.base import InfinityAsNull, StrictModel, figure


class Slope(StrictModel):
    """Growth of a lag in percent of real time (1 % is 10 ms per second), with an interval."""

    pct: float = Field(description="Theil-Sen slope.")
    low_pct: float = Field(description="Lower end of the interval.")
    high_pct: float = Field(description="Upper end of the interval.")


class LagShare(StrictModel):
    """Part of the processing lag that one component causes."""

    p50_ms: InfinityAsNull = Field(description="Median, milliseconds.")
    slope: Slope | None = Field(
        description="Growth of this part; null if the verdict did not depend on it."
    )


class LagAtMost(StrictModel):
    """A point of the distribution of the lag over time."""

    share: float = Field(ge=0, le=1, description="Share of the window's time.")
    lag_ms: InfinityAsNull = Field(
        description="The lag was at most this for that share of the time."
    )


class LagOverTime(StrictModel):
    """Percentiles of a lag over the window's time. A percentile is null if the oldest event was due
    before the recording began."""

    lag_p50_ms: InfinityAsNull = Field(description="Median lag over the window's time.")
    lag_p90_ms: InfinityAsNull = Field(description="Lag not exceeded in 90 % of the time.")
    lag_p99_ms: InfinityAsNull = Field(description="Lag not exceeded in 99 % of the time.")
    lag_max_ms: InfinityAsNull = Field(description="Largest lag.")
    more_than_ms: dict[str, int] = Field(
        default_factory=dict,
        description="Lower bounds of those percentiles that are null, by name: the part of the lag"
        " that was recorded.",
    )


class Lag(LagOverTime):
    """The lag on which a verdict is based, in milliseconds; null stands for infinity.

    Lag is the age of the oldest event that is due but not counted. It is defined at every
    instant, and is the delay that a reader of the view sees. Processing lag is the lag right after
    an update; it excludes the wait for the next update. Its quantiles weight each update by the
    time since the previous update.
    """

    slope: Slope = Field(description="Growth of the processing lag.")
    lag_distribution: tuple[LagAtMost, ...] = Field(description="Points in order of `share`.")
    processing_lag_p50_ms: InfinityAsNull = figure(PROCESSING_LAG_P50)
    processing_lag_p99_ms: InfinityAsNull = figure(PROCESSING_LAG_P99)
    processing_lag_max_ms: InfinityAsNull = Field(description="Largest processing lag.")
    generator: LagShare
    broker: LagShare
    engine: LagShare


class Throughput(StrictModel):
    """Rates in events per second, from `curves.csv`."""

    offered_per_s: float = Field(description="Due by the schedule.")
    handed_over_per_s: float = Field(description="Handed to the generator's Kafka client.")
    published_per_s: float = Field(description="Stored in the broker.")
    processed_per_s: float | None = Field(
        description="Counted by the engine; null if it reported no update in the window."
    )


class VerdictKind(StrEnum):
    """Possible verdicts."""

    KEPT_UP = "kept up"
    FELL_BEHIND = "fell behind"
    GENERATOR_BOUND = "generator-bound"
    BROKER_BOUND = "broker-bound"
    HARNESS_BOUND = "harness-bound"
    UNDECIDED = "undecided"


# Verdicts that name another component than the engine.
BOUND_BY_OTHERS = frozenset(
    {VerdictKind.GENERATOR_BOUND, VerdictKind.BROKER_BOUND, VerdictKind.HARNESS_BOUND}
)


class Verdict(StrictModel):
    """Verdict on whether the engine kept up, see docs/verdict.md."""

    kind: VerdictKind = Field(description="The verdict.")
    reason: str = Field(description="The reason, with numbers.")
    warnings: tuple[str, ...] = Field(description="Reasons to doubt the verdict.")
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
    updates: int = Field(description="Number of the engine's updates in these seconds.")
    next_update_s: float | None = Field(
        default=None,
        description="Seconds from the window's end to the engine's next update; null if none came.",
    )
    requested_per_s: float = Field(description="Requested rate.")
    throughput: Throughput
    measured: Lag | None = Field(description="null if no slope could be computed.")
    shortest_window_s: float | None = Field(
        description="Estimated length of a window that would give a decision; null if unknown, or"
        " if this window gave one."
    )


class Spread(StrictModel):
    """Statistics over samples; null without samples."""

    mean: float | None = Field(description="Mean.")
    sd: float | None = Field(description="Sample standard deviation; null for one sample.")
    sem: float | None = Field(description="Standard error of the mean; null for one sample.")
    max: float | None = Field(description="Largest sample.")
    samples: tuple[float, ...] = Field(description="Samples in order of time.")


class TopStatistics(StrictModel):
    """CPU and memory of a service in the sampling window, as in the experiment of 2022."""

    cpu_pct: Spread = Field(description="Samples of top, percent of one core.")
    rss_gib: Spread = Field(description="Resident memory, GiB, from the kernel's accounting.")
    kernel_cpu_pct: float = Field(
        description="CPU use in the same seconds from the kernel's accounting, percent of one core."
    )


class MemoryMax(StrictModel):
    """Maximum resident memory in the time from loading the demo to the end of the load."""

    gib: float = Field(description="GiB.")
    at_s: float = Field(
        description="When it was reached, in seconds after the rate was set; may be negative."
    )


class Cost(StrictModel):
    """CPU and memory of the engine, or of one service, from kernel counters; null if unknown."""

    cpu_mean_pct: float = figure(CPU_MEAN)
    cpu_s: float = Field(description="CPU seconds, user and system.")
    cpu_user_s: float = Field(description="CPU seconds in user mode.")
    cpu_system_s: float = Field(description="CPU seconds in kernel mode.")
    cpu_s_per_million: float | None = figure(CPU_PER_MILLION, default=None)
    rss_max: MemoryMax | None = Field(
        default=None, description="Largest value in the whole run, not only the judged window."
    )
    rss_growth_gib_per_million: float | None = figure(RSS_GROWTH, default=None)
    pss_max_gib: float | None = figure(PSS_MAX, default=None)
    tmpfs_max_gib: float | None = figure(TMPFS_MAX, default=None)
    live_heap_gib: float | None = figure(LIVE_HEAP, default=None)
    throttled_pct: float | None = Field(
        default=None,
        description="Share of the kernel's periods (mostly 100 ms) in which the pod used up its CPU"
        " limit and was stopped until the next, percent. Of several pods, the largest. null without"
        " a limit, and outside of Kubernetes.",
    )


class Freshness(StrictModel):
    """Freshness as in the experiment of 2022: current time minus the newest `received_at` that the
    engine has counted, in milliseconds."""

    mean: float | None = Field(
        description="Mean over updates; null if a `received_at` was ahead of the clock."
    )
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
    """Mean activity of the machine in an interval; in `results` this is the judged window. Values
    that the machine does not provide are null. See docs/noise.md."""

    seconds: float = Field(description="Length of the interval.")
    foreign_cpu_pct: float | None = figure(FOREIGN_CPU)
    steal_pct: float = figure(STEAL)
    throttled_pct: float | None = Field(
        default=None,
        description="Time for which CPU quotas of control groups stopped services or the harness,"
        " percent of one core.",
    )
    busy_pct: float = Field(description="All CPU time used, percent of one core.")
    machine_busy_pct: float = figure(MACHINE_BUSY)
    harness_cpu_pct: float = figure(HARNESS_CPU)
    kernel_cpu_pct: float | None = figure(KERNEL_CPU, default=None)
    load_1_min: float = Field(description="Mean of the one-minute load average.")
    mhz: float | None = Field(description="Mean frequency of the cores.")
    waited_for_cpu_pct: float | None = Field(
        description="Share of the time in which a process waited for a core (PSI), percent."
    )
    waited_for_memory_pct: float | None = Field(
        description="Share of the time in which a process waited for memory (PSI), percent."
    )
    waited_for_io_pct: float | None = Field(
        description="Share of the time in which a process waited for input or output (PSI),"
        " percent."
    )
    core: CoreSpeed | None = Field(
        default=None, description="Speed of a core; null if not measured."
    )
    memory_read_ns: float | None = figure(MEMORY_READ, default=None)


class Recovery(StrictModel):
    """Recovery of a lag after a fault."""

    normal_ms: float = Field(description="Largest lag before the fault, but at least 2 s.")
    worst_ms: float | None = Field(
        description="Largest lag until it was normal again; null stands for infinity."
    )
    after_s: float | None = Field(
        description="Seconds from the start of the fault until the lag was normal again; null if it"
        " was not in this run."
    )


class FaultRecovery(StrictModel):
    """Recovery of the lags from one fault."""

    fault: str = Field(description="The fault in the syntax of `--fault`.")
    events: Recovery = Field(description="Lag between due and counted by the engine.")
    views: Recovery | None = Field(
        default=None,
        description="Lag of the traced view that needed longest; absent without tracer events.",
    )
    purchases: Recovery | None = Field(
        default=None,
        description="Lag between due and in Debezium's topic; absent if the run does not use CDC.",
    )

    @property
    def lags(self) -> Mapping[str, Recovery]:
        """Recoveries by what lags: `events`, `views` or `purchases`."""
        named = {"events": self.events, "views": self.views, "purchases": self.purchases}
        return {name: lag for name, lag in named.items() if lag}


class LoadEffect(StrictModel):
    """Effect of a load profile on the engine, from its start until the load was paused."""

    max_backlog_events: int = figure(MAX_BACKLOG)
    max_backlog_before_events: int | None = Field(
        default=None,
        description="The same number in the 10 s before a spike; null without one.",
    )
    recovery: Recovery | None = Field(
        default=None, description="Recovery of the lag from a spike; null without a spike."
    )
    after_peak_s: float | None = figure(AFTER_PEAK, default=None)


class LittlesLaw(StrictModel):
    """Comparison of two independent records of a run by Little's law: the mean number of waiting
    events equals their rate times their mean age. If it does not, the verdict has a warning."""

    waiting: float = Field(
        description="Mean number of due but uncounted events in the window, from arrivals.csv"
        " and the totals in the freshness log."
    )
    rate_times_age: float = Field(
        description="The same number computed from curves.csv: the rate of each partition times the"
        " mean age of its oldest event, plus half an event."
    )
    ratio: float | None = Field(description="rate_times_age / waiting; null if none waited.")
    tolerance: float = Field(description="Allowed difference, events.")
    holds: bool = Field(description="Whether the difference is within the tolerance.")


class ViewLag(LagOverTime):
    """View lag: the age of the oldest tracer event that is due but not in the view, at every
    instant of the window, in milliseconds; null stands for infinity. See docs/views.md."""

    name: str = Field(description="View and column.")
    source: str = Field(description="Source of tracer events: the main topic, or a table by CDC.")
    tracer_events_per_s: float = Field(description="Tracer events of this view that became due.")
    error_ms: float | None = Field(
        None,
        description="The lag may be too low by up to this: the mean time between two tracer events"
        " of the view. If one partition is behind the others, by up to as many times more as there"
        " are partitions. null: fewer than two in the window.",
    )
    updates: int = Field(description="Observed changes of the view's tracer rows.")
    kind: VerdictKind = Field(description="The verdict on this view alone.")
    reason: str = Field(description="The reason, with numbers.")


class Quantiles(StrictModel):
    """Quantiles of a set of values, in milliseconds; null stands for infinity."""

    p50_ms: InfinityAsNull = Field(description="Median.")
    p99_ms: InfinityAsNull = Field(description="99th percentile.")


class CdcLag(StrictModel):
    """Age of the oldest insert into the watched table that is due but has not passed a stage of
    CDC. The ages are sampled ten times a second, and are up to 0.1 s too high."""

    inserts_per_s: float = Field(description="Inserts per second that became due.")
    in_database: Quantiles = Field(description="Age of the oldest insert not committed in MySQL.")
    sent: Quantiles = Field(
        description="Age of the oldest insert not sent by Debezium, according to its clock."
    )
    in_topic: Quantiles = Field(
        description="Age of the oldest insert not in the topic that the engine reads."
    )


class Answers(StrictModel):
    """Answers to one query of the view reader, which reads on a schedule (READS_PER_SECOND). Covers
    the reads that were due in the window. See docs/views.md."""

    query: str = Field(description="View, and the column of its filter.")
    due: int = Field(description="Number of reads that became due.")
    answered: int = Field(description="Number of due reads answered by the end of the run.")
    errors: int = Field(description="Number of due reads that were refused or failed.")
    first_error: str | None = Field(description="Message of the first error.")
    rows_max: int | None = Field(
        description="Number of rows of the largest answer; null without an answer."
    )
    time: Quantiles | None = Field(
        description="Response time from due to answered, including the wait for the previous"
        " answer; infinite for a read without an answer; null if no read was due."
    )
    service_time: Quantiles | None = Field(
        default=None,
        description="Response time from sent to answered; null without an answer.",
    )
    age: Quantiles | None = Field(
        description="Age of the oldest tracer event that was due but missing in the answer when the"
        " answer arrived; null without tracer events or without an answer."
    )


class WindowWrites(StrictModel):
    """Latency as defined by Yahoo's benchmark, for the event-time windows that end in the judged
    window, and the lag during the same time. See docs/workloads.md."""

    length_ms: int = Field(description="Length of an event-time window.")
    windows: int = Field(description="Number of event-time windows.")
    after_end_p50_ms: InfinityAsNull = Field(
        description="Median time from the end of an event-time window until its last event was"
        " counted; negative if the event was counted before the end."
    )
    after_end_max_ms: InfinityAsNull = Field(description="Maximum of the same time.")
    lag_max_ms: InfinityAsNull = Field(
        description="Maximum lag from the start of the judged window until the last of these"
        " event-time windows was written; null if its beginning was not recorded."
    )
    more_than_ms: int | None = Field(
        default=None, description="Lower bound of lag_max_ms if that is null."
    )


class StartLag(StrictModel):
    """Largest lag from when the rate was set until the judged window begins: mostly the backlog
    that arose while the engine loaded its demo."""

    seconds: float = Field(description="Length of this time.")
    view: str | None = Field(description="The view with this lag; null for the engine's count.")
    lag_max_ms: InfinityAsNull = Field(
        description="The lag, milliseconds; null if its beginning was not recorded."
    )
    more_than_ms: int | None = Field(
        default=None, description="Lower bound of lag_max_ms if that is null."
    )


class Results(StrictModel):
    """Figures over the judged window."""

    offered_events_per_s: float | None = Field(description="Due by the schedule.")
    achieved_events_per_s: float | None = figure(ACHIEVED)
    published_events: int = Field(description="Sum of the end offsets at the end of the run.")
    processed_events: int | None = Field(
        description="Events counted by the engine by the end of the run."
    )
    deleted_unread_events: int = Field(
        default=0,
        description="Events that the broker deleted before the engine had counted them; a lower"
        " bound if the engine had not drained. Above 0, all figures that depend on lag are blank.",
    )
    verdict: Verdict
    start: StartLag | None = Field(
        default=None, description="null unless its lag is larger than those in the judged window."
    )
    views: tuple[ViewLag, ...] = Field(
        default=(), description="One per traced view; empty without tracer events."
    )
    reads: tuple[Answers, ...] = Field(
        default=(), description="One per query; empty without reads."
    )
    cdc: CdcLag | None = Field(default=None, description="null if the run did not record inserts.")
    window_writes: WindowWrites | None = Field(
        default=None, description="null if the workload has no event-time windows."
    )
    dt_ms: Freshness
    engine: Cost | None = Field(
        default=None,
        description="All services of the engine together; null if none of its processes is known.",
    )
    processes: dict[str, Cost] = Field(description="Each service of the stack, the engine's first.")
    top: dict[str, TopStatistics] = Field(
        default_factory=dict,
        description="By service, in the sampling window.",
    )
    noise: NoiseFigures | None = Field(default=None, description="null if it could not be read.")
    littles_law: LittlesLaw | None = Field(
        default=None,
        description="null if either record is unknown, or if counts were lost in a fault.",
    )
    faults: tuple[FaultRecovery, ...] = Field(
        default=(), description="Recovery from each injected fault."
    )
    load: LoadEffect | None = Field(default=None, description="null without a load profile.")
