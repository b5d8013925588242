"""What `run.json` holds under `results`: lag, verdict, costs, freshness and recoveries.

All figures are of one window, the one that the verdict judged (`verdict.from_ms` to
`verdict.until_ms`); where a figure has another one, its description says so.
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
    """One link's share of the processing lag."""

    p50_ms: InfinityAsNull = Field(description="Median, milliseconds.")
    slope: Slope | None = Field(
        description="How it grows; null where the verdict did not depend on it."
    )


class LagAtMost(StrictModel):
    """A point of the lag's distribution over time."""

    share: float = Field(ge=0, le=1, description="Share of the window's time.")
    lag_ms: InfinityAsNull = Field(description="For so much of it, the lag was at most this.")


class Lag(StrictModel):
    """The lag behind a verdict, milliseconds; null is without end.

    Lag is the age of the oldest pageview that is due and not counted, at every instant: what a
    reader of the view sees. Processing lag is the same right after an update, so without the wait
    for it; its quantiles are over time too: each update weighs as long as the time before it.
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
        description="Counted by the engine; null if it told of no update in the window: how many of"
        " those that it told of later it had counted by then, nobody knows."
    )


class VerdictKind(StrEnum):
    """What a run says of its engine."""

    KEPT_UP = "kept up"
    FELL_BEHIND = "fell behind"
    GENERATOR_BOUND = "generator-bound"
    BROKER_BOUND = "broker-bound"
    UNDECIDED = "undecided"


class Verdict(StrictModel):
    """Did it keep up? See docs/verdict.md."""

    kind: VerdictKind = Field(description="The verdict.")
    reason: str = Field(description="In words, with numbers.")
    warnings: tuple[str, ...] = Field(description="What to know before believing it.")
    threshold_pct: float = Field(
        description="Growth that counts as falling behind, percent of real time."
    )
    from_ms: int = Field(
        description="Start of the judged window, epoch milliseconds: where the transient ended, or"
        " the sampling window's start."
    )
    until_ms: int = Field(description="End of the judged window, epoch milliseconds.")
    window_s: float = Field(
        description="Seconds that were judged: less than the window where the recording ends early."
    )
    updates: int = Field(description="Updates of the engine in them.")
    next_update_s: float | None = Field(
        default=None,
        description="Seconds from the window's end to the engine's next update; null if none came.",
    )
    asked_per_s: float = Field(description="Rate asked for.")
    throughput: Throughput
    measured: Lag | None = Field(description="null where no slope could be computed.")
    shortest_window_s: float | None = Field(
        description="An estimate of the window that would decide; null where that is not known, or"
        " where this one did."
    )


class Spread(StrictModel):
    """Statistics over samples; null where there is no sample."""

    mean: float | None = Field(description="Mean.")
    sd: float | None = Field(description="Sample standard deviation; null for one sample.")
    sem: float | None = Field(description="Standard error of the mean; null for one sample.")
    max: float | None = Field(description="Largest sample.")
    samples: tuple[float, ...] = Field(description="In order.")


class TopStatistics(StrictModel):
    """One service in the sampling window, as the published experiment measured it."""

    cpu_pct: Spread = Field(description="Samples of top, percent of one core.")
    rss_gib: Spread = Field(description="Resident memory, GiB, from the kernel's account.")
    kernel_cpu_pct: float = Field(
        description="CPU by the kernel's account over the same seconds, percent of one core."
    )


class MemoryMax(StrictModel):
    """The most resident memory of a run, from when the demo was loaded until the load ended."""

    gib: float = Field(description="GiB.")
    at_s: float = Field(description="Seconds after the rate was set; below 0: before it.")


class Cost(StrictModel):
    """CPU and memory of a service, or of all services of the engine, by the kernel's account."""

    cpu_mean_pct: float = Field(description="Mean CPU, percent of one core.")
    cpu_s: float = Field(description="CPU seconds, user and system.")
    cpu_user_s: float = Field(description="CPU seconds in user mode.")
    cpu_system_s: float = Field(description="CPU seconds in the kernel.")
    cpu_s_per_million: float | None = Field(
        default=None,
        description="CPU seconds per million pageviews that the engine counted; null below 1,000"
        " pageviews, where the base cost dominates.",
    )
    rss_max: MemoryMax | None = Field(
        default=None, description="Over the whole run, not the judged window."
    )
    rss_growth_gib_per_million: float | None = Field(
        default=None,
        description="Growth of resident memory per million pageviews; null as above.",
    )
    pss_max_gib: float | None = Field(
        default=None,
        description="Resident memory, GiB, with shared pages split among the processes that share"
        " them: the larger of two readings, just before and just after the sampling window. null"
        " where the kernel did not allow it.",
    )
    tmpfs_max_gib: float | None = Field(
        default=None,
        description="Its files on tmpfs, GiB, without what its processes have mapped of them, which"
        " is in pss_max_gib; the same two readings; null as above.",
    )
    live_heap_gib: float | None = Field(
        default=None,
        description="What a full collection left on the heaps of its JVMs after the load was"
        " paused, GiB; null where there is no JVM, or one did not answer.",
    )


class Freshness(StrictModel):
    """The published freshness: now minus the newest received_at seen, milliseconds."""

    mean: float | None = Field(description="Mean over updates.")
    p50: float | None = Field(description="Median.")
    max: float | None = Field(description="Largest.")
    updates: int = Field(description="How many.")
    next_update_s: float | None = Field(
        default=None,
        description="Seconds from the window's end to the next update; null if none came.",
    )


class CoreSpeed(StrictModel):
    """Speed of a core at a fixed piece of work, MiB of BLAKE2b per second of CPU time. A core that
    is shared with another machine is slower, for everything that runs on it."""

    mib_per_s: float = Field(description="Mean in the interval.")
    fastest_mib_per_s: float = Field(description="In the fastest second of the run until its end.")

    @property
    def pct(self) -> float:
        """Percent of the fastest second."""
        return 100 * self.mib_per_s / self.fastest_mib_per_s


class NoiseFigures(StrictModel):
    """Means of what the machine did in an interval, the judged window in `results`; null: not
    known here. See docs/noise.md."""

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
        description="CPU time that no program's account holds: the kernel's for interrupts and"
        " wake-ups, and its threads'; percent of one core.",
    )
    load_1_min: float = Field(description="Load average over a minute.")
    mhz: float | None = Field(description="Mean frequency of the cores.")
    waited_for_cpu_pct: float | None = Field(
        description="Share of the time in which some process waited for a core (PSI), percent."
    )
    waited_for_memory_pct: float | None = Field(description="The same for memory.")
    waited_for_io_pct: float | None = Field(description="The same for input and output.")
    core: CoreSpeed | None = Field(
        default=None, description="Speed of a core; null where it was not measured."
    )


class Recovery(StrictModel):
    """How a lag came back after a fault."""

    normal_ms: float = Field(description="What lag was at most before it, or 2 s if that is more.")
    worst_ms: float | None = Field(
        description="Largest lag until it was normal again; null is without end."
    )
    after_s: float | None = Field(
        description="Seconds from the fault's beginning; null if it was not within the record."
    )


class FaultRecovery(StrictModel):
    """A fault that has passed."""

    fault: str = Field(description="As it was given.")
    pageviews: Recovery = Field(description="From due to counted by the engine.")
    purchases: Recovery | None = Field(
        default=None, description="From due to Debezium's topic; absent where there is none."
    )

    @property
    def lags(self) -> Mapping[str, Recovery]:
        """Those that were followed, by name."""
        return {
            "pageviews": self.pageviews,
            **({"purchases": self.purchases} if self.purchases else {}),
        }


class LittlesLaw(StrictModel):
    """What waits is the rate times its age: two records of one run held against each other. A run
    in which it does not hold says so among the verdict's warnings."""

    waiting: float = Field(
        description="Mean of due minus counted in the window, by arrivals.csv and the totals in the"
        " log of freshness, pageviews."
    )
    rate_times_age: float = Field(
        description="The same by curves.csv: for each partition the rate times the mean age of its"
        " oldest pageview, and half a pageview, pageviews."
    )
    ratio: float | None = Field(description="The second by the first; null if none waited.")
    tolerance: float = Field(description="How far they may differ, pageviews.")
    holds: bool = Field(description="Whether they differ by no more.")


class ViewLag(StrictModel):
    """View lag: age of the oldest tracer event that is due and not in the view, at every instant
    of the window, milliseconds; null is infinite. See docs/views.md."""

    name: str = Field(description="View and column.")
    source: str = Field(description="Source of tracer events: the main topic, or a table by CDC.")
    tracer_events_per_s: float = Field(description="Tracer events of this view that became due.")
    updates: int = Field(description="Observed changes of the tracer events in it.")
    kind: VerdictKind = Field(description="The verdict on this view alone.")
    reason: str = Field(description="In words, with numbers.")
    lag_p50_ms: InfinityAsNull = Field(description="Median over the window's time.")
    lag_p90_ms: InfinityAsNull = Field(description="90 % of the time at most this.")
    lag_p99_ms: InfinityAsNull = Field(description="99 % of the time at most this.")
    lag_max_ms: InfinityAsNull = Field(description="Largest.")


class Quantiles(StrictModel):
    """Over answers or instants, milliseconds; null is without end."""

    p50_ms: InfinityAsNull = Field(description="Median.")
    p99_ms: InfinityAsNull = Field(description="99 % of them at most this.")


class CdcWay(StrictModel):
    """Age of the oldest insert of the watched table that was due and had not passed a stage of CDC,
    ten times a second, each up to 0.1 s too high."""

    inserts_per_s: float = Field(description="Inserts that became due.")
    in_database: Quantiles = Field(description="Due and not committed.")
    sent: Quantiles = Field(description="Due and not sent by Debezium, by its own clock.")
    in_topic: Quantiles = Field(
        description="Due and not in the topic that the engine reads: that and the broker."
    )


class Answers(StrictModel):
    """What a client got who read a view on a schedule (READS_PER_SECOND), of those reads that were
    due in the window. See docs/views.md."""

    query: str = Field(description="View, and the column that it was asked by.")
    due: int = Field(description="Reads that became due.")
    answered: int = Field(description="Of these, answered by the end of the run.")
    errors: int = Field(description="Of these, refused or failed.")
    first_error: str | None = Field(description="What the first of these said.")
    rows_max: int | None = Field(description="Rows of the largest answer; null without one.")
    time: Quantiles | None = Field(
        description="From due to answered, with the wait for the answer to the one before; of one"
        " without an answer without end; null if none was due."
    )
    service_time: Quantiles | None = Field(
        default=None,
        description="From asked to answered: without that wait, and of answers only; null without"
        " one.",
    )
    age: Quantiles | None = Field(
        description="Age of the oldest tracer event that was due and not in the answer on arrival;"
        " null without tracer events or without an answer."
    )


class WindowWrites(StrictModel):
    """What Yahoo's benchmark published, of the windows of event time that end in the judged
    window, and what it hides. See docs/workloads.md."""

    length_ms: int = Field(description="Of a window.")
    windows: int = Field(description="How many there were.")
    after_end_p50_ms: InfinityAsNull = Field(
        description="From a window's end until its last event was counted, median; below 0 if that"
        " was before."
    )
    after_end_max_ms: InfinityAsNull = Field(description="The most that it took in any of them.")
    lag_max_ms: InfinityAsNull = Field(
        description="The greatest lag at any instant from the judged window's start until the"
        " last of these was written."
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
        default=(), description="Of each query; none where nobody read."
    )
    cdc: CdcWay | None = Field(default=None, description="null where nobody followed it.")
    window_writes: WindowWrites | None = Field(
        default=None, description="null where the workload has no windows of event time."
    )
    dt_ms: Freshness
    engine: Cost | None = Field(
        default=None,
        description="All services of the engine together; null where none of its processes is"
        " known.",
    )
    processes: dict[str, Cost] = Field(description="Each service of the stack, the engine's first.")
    top: dict[str, TopStatistics] = Field(
        default_factory=dict,
        description="By service, in the sampling window, which is not the judged one.",
    )
    noise: NoiseFigures | None = Field(default=None, description="null where it could not be read.")
    littles_law: LittlesLaw | None = Field(
        default=None,
        description="null where one side is not known, or what was counted was lost by a fault.",
    )
    faults: tuple[FaultRecovery, ...] = Field(
        default=(), description="Of each fault that has passed, when lag was normal again."
    )
